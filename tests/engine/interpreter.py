"""What lets vLLM's V2 model runner run on a CPU: Triton's interpreter and a stand-in for a device.

The stand-in's folder goes on `PYTHONPATH` together with `TRITON_INTERPRET=1`, and never without:
where the stand-in can be imported, vLLM believes that Triton works.
"""

from __future__ import annotations

from pathlib import Path

from ddtree.patches.verify.archive import standin

ENVIRONMENT = {"VLLM_USE_V2_MODEL_RUNNER": "1", "TRITON_INTERPRET": "1"}


def write(folder: Path) -> Path:
    """Write the stand-in below a new folder, which is returned."""
    for name, data in standin():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder
