"""The V2 model runner (vllm/v1/worker/gpu/model_runner.py)."""
