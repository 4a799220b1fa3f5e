"""What is sent to a target starts there in an environment that says nothing of how to verify."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from ddtree.patches.verify import archive

DIRECTOR = b"""
import json, os
def main(folder):
    print(json.dumps([folder, dict(os.environ)]), flush=True)
"""


def packed() -> bytes:
    """An archive with a harness that says where and in what environment it runs."""
    files = {"__init__.py": b"", "director.py": DIRECTOR}
    return archive.framed((f"{archive.PACKAGE}/{name}", text) for name, text in files.items())


def test_variables_that_would_change_what_is_verified_are_not_inherited() -> None:
    """Those of Python and of Triton's interpreter; what else the target has set stays."""
    told = {"TRITON_INTERPRET": "1", "PYTHONPATH": "/elsewhere", "VLLM_USE_V2_MODEL_RUNNER": "0"}
    with subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", archive.boot()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **told},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # Its stdin stays open, or it would stop.
        process.stdin.write(packed())
        process.stdin.flush()
        said = process.stdout.read()
    assert process.returncode == 0
    folder, environment = json.loads(said)
    assert {"TRITON_INTERPRET", "PYTHONPATH"}.isdisjoint(environment)
    assert environment["VLLM_USE_V2_MODEL_RUNNER"] == "0"
    assert environment["PATH"] == os.environ["PATH"]
    assert environment["TMPDIR"] == f"{folder}/tmp"
    assert not Path(folder).exists()
