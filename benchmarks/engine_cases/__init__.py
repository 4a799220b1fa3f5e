"""What `benchmarks/engine.py` and `benchmarks/bf16.py` run; the engine's Python runs `far/`."""
