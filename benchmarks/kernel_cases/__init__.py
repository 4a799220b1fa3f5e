"""What `benchmarks/kernels.py` measures: a module per unit with `cases() -> Iterator[Case]`."""
