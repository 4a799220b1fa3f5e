"""Tree verification inside a running vLLM; copied beside it as a package of its own."""
