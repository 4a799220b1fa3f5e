"""What is sent to the target: the harness, the tiny models, and the job, in one archive."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...analyzers.errors import DdtreeError
from .harness import plan

HERE = Path(__file__).resolve().parent
HARNESS = HERE / "harness"
MODELS = HERE / "models"
STANDIN = HERE / "standin"
PACKAGE = "ddtree_harness"
TINY = ("tiny-qwen3-target", "tiny-dflash-drafter")
# Triton finds its devices as entry points of what is installed.
DEVICE = "ddtree_triton_cpu"
METADATA = {
    "METADATA": f"Metadata-Version: 2.1\nName: {DEVICE.replace('_', '-')}\nVersion: 1\n",
    "entry_points.txt": f"[triton.backends]\ncpu = {DEVICE}\n",
}
# What a CPU build of vLLM is called; up to 0.31.0, vLLM looks for Triton only where it finds one.
NAME = {"vllm-0+cpu.dist-info/METADATA": "Metadata-Version: 2.1\nName: vllm\nVersion: 0+cpu\n"}


def boot() -> str:
    """The program that unpacks an archive from its stdin and runs it."""
    return (HARNESS / "boot.py").read_text(encoding="utf-8")


def packed(job: Mapping[str, Any]) -> bytes:
    """The archive of the harness and a job.

    Raises:
        DdtreeError: the tiny models are not there, so that this ddtree is damaged.
    """
    return framed(_files(job))


def framed(files: Iterable[tuple[str, bytes]]) -> bytes:
    """An archive of files by name, as `boot` reads it: its length in a line, then its bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    data = buffer.getvalue()
    return f"{len(data)}\n".encode() + data


def standin() -> Iterator[tuple[str, bytes]]:
    """The files that make Triton's interpreter a device, below a folder for `sys.path`."""
    for path in sorted(STANDIN.glob("*.py")):
        yield f"{DEVICE}/{path.name}", path.read_bytes()
    for entry, text in METADATA.items():
        yield f"{DEVICE}-1.dist-info/{entry}", text.encode()


def name() -> Iterator[tuple[str, bytes]]:
    """The files that name an install of another name `vllm`, below a folder for `sys.path`."""
    for path, text in NAME.items():
        yield path, text.encode()


def _files(job: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    for path in sorted(HARNESS.glob("*.py")):
        yield f"{PACKAGE}/{path.name}", path.read_bytes()
    for folder, brought in ((plan.STANDIN, standin()), (plan.NAME, name())):
        for entry, data in brought:
            yield f"{folder}/{entry}", data
    yield "job.json", json.dumps(job).encode()
    if job["model"] is not None:
        return
    for model in TINY:
        files = sorted((MODELS / model).glob("*"))
        if not any(path.suffix == ".safetensors" for path in files):
            raise DdtreeError(
                f"{MODELS / model} holds no model",
                expected="the tiny models that come with ddtree",
                hint="python -m pip install --force-reinstall ddtree",
            )
        for path in files:
            yield f"models/{model}/{path.name}", path.read_bytes()
