"""What `ddtree verify` sends to the target: it runs there, and reports in lines of JSON.

Nothing here imports torch, vllm or the runtime when it is loaded; functions do.
"""
