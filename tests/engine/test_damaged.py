"""A damaged runtime beside a real vLLM: it is configured without trees, and not with them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from . import environment, installs, runs

CONFIGURE = """
import importlib, json, sys
from vllm.engine.arg_utils import EngineArgs
for name in sys.argv[2].split():
    importlib.import_module(name)
given = json.loads(sys.argv[1])
kept = EngineArgs(**given).create_engine_config()
print("stock", kept.speculative_config.num_speculative_tokens, kept.num_speculative_tokens)
try:
    EngineArgs(**given, additional_config={"ddtree": {"budget": 16}}).create_engine_config()
except Exception as error:
    print("refused", " ".join(str(error).split()))
"""
MODULES = (
    "vllm.v1.worker.gpu_model_runner",
    "vllm.v1.worker.gpu.model_runner",
    "vllm.v1.sample.rejection_sampler",
    "vllm.model_executor.layers.attention.attention",
)
ENGINE = {**runs.engine(), **runs.dflash()}


def half(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.unlink()
    path.write_bytes(b"".join(lines[: len(lines) // 2]))


def empty(path: Path) -> None:
    path.unlink()
    path.touch()


DAMAGE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "truncated": ("v1/runner.py", half),
    "empty": ("hooks.py", empty),
    "gone": ("kernels/tree/walk/vectorised.py", Path.unlink),
}


@pytest.mark.engine
@pytest.mark.parametrize(
    "how",
    [pytest.param(how, marks=() if how == "truncated" else pytest.mark.extended) for how in DAMAGE],
)
def test_trees_are_refused_where_the_configuration_is_made(how: str, tmp_path: Path) -> None:
    """In the first process, before a model is loaded, in a sentence; without trees it is stock."""
    python = installs.patched(environment.engine_python(), tmp_path / "env")
    name, damage = DAMAGE[how]
    (package,) = tmp_path.glob("env/lib/python*/site-packages/ddtree_runtime")
    damage(package / name)

    command = [str(python), "-c", CONFIGURE, json.dumps(ENGINE), " ".join(MODULES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith(("stock", "refused"))]
    assert said[0] == "stock 7 7"
    assert len(said) == 2
    assert "ddtree: trees are configured, and their runtime cannot be loaded (" in said[1]
    assert "run: ddtree patch --status" in said[1]
