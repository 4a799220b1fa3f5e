"""The V1 model runner (vllm/v1/worker/gpu_model_runner.py)."""
