"""What lets vLLM's V2 model runner run on a CPU: Triton's interpreter and a stand-in for a device.

The folder `path` goes on `PYTHONPATH` together with `TRITON_INTERPRET=1`, and never without: where
the stand-in can be imported, vLLM believes that Triton works.
"""

from __future__ import annotations

from pathlib import Path

PATH = Path(__file__).parent / "path"

ENVIRONMENT = {"VLLM_USE_V2_MODEL_RUNNER": "1", "TRITON_INTERPRET": "1"}
