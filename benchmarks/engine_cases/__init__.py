"""What `benchmarks/engine.py` and `benchmarks/bf16.py` run; `far/` runs in the engine's interpreter."""
