"""What is sent to the target: the harness, the tiny models, and the job, in one archive."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...analyzers.errors import DdtreeError

HERE = Path(__file__).resolve().parent
HARNESS = HERE / "harness"
MODELS = HERE / "models"
PACKAGE = "ddtree_harness"
TINY = ("tiny-qwen3-target", "tiny-dflash-drafter")


def boot() -> str:
    """The program that unpacks an archive from its stdin and runs it."""
    return (HARNESS / "boot.py").read_text(encoding="utf-8")


def packed(job: Mapping[str, Any]) -> bytes:
    """The archive, as `boot` reads it: its length in a line, then its bytes.

    Raises:
        DdtreeError: the tiny models are not there, so that this ddtree is damaged.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in _files(job):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    data = buffer.getvalue()
    return f"{len(data)}\n".encode() + data


def _files(job: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    for path in sorted(HARNESS.glob("*.py")):
        yield f"{PACKAGE}/{path.name}", path.read_bytes()
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
