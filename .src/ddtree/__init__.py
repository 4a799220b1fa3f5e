"""ddtree: tree-structured speculative decoding for an installed vLLM."""

__version__ = "0.1.0"
