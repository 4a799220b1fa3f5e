"""Kernels of tree speculative decoding, each beside its reference."""
