"""A Triton device called `cpu`; the interpreter runs the kernels, so nothing is compiled for it."""
