"""What `benchmarks/kernels.py` measures: one module per unit, each with `cases() -> Iterator[Case]`."""
