"""The inputs are what they claim to be: positives accept any root-to-node path, and all of it.

The Triton kernels run under Triton's interpreter, which must be chosen before Triton is imported:
hence one process of its own for all of them.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from tests.analyzers import inputs, overlay, topologies

# Their walk is in a library that these tests do not install.
_COMPILED = {"compiled_op", "foreign_kernel"}
_RUNNABLE = [name for name in inputs.POSITIVES if name not in _COMPILED]


def test_every_runnable_positive_accepts_the_same_paths_as_a_plain_walk() -> None:
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", __name__, *_RUNNABLE],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == _RUNNABLE


@pytest.mark.parametrize("name", inputs.NEGATIVES)
def test_negatives_are_importable_python_with_an_entry(name: str) -> None:
    compile(inputs.NEGATIVES[name], name, "exec")
    assert overlay.parameters(inputs.NEGATIVES[name])


def _load(name: str) -> types.ModuleType:
    path = Path(__file__).parent / "positives" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _without_numba() -> None:
    """Run what numba would compile as plain Python, where numba is not installed."""
    if importlib.util.find_spec("numba") is None:
        stand_in = types.ModuleType("numba")
        setattr(stand_in, "njit", lambda **_: lambda function: function)  # noqa: B010
        sys.modules["numba"] = stand_in


def _check(name: str) -> None:
    module = _load(name)
    wanted = overlay.parameters(inputs.POSITIVES[name])
    for seed in range(6):
        forms = topologies.step(seed)
        got = module.verify(*(forms[parameter] for parameter in wanted))
        assert got.tolist() == topologies.expected(forms).tolist(), (name, seed)


if __name__ == "__main__":
    _without_numba()
    for each in sys.argv[1:]:
        _check(each)
        sys.stdout.write(f"{each}\n")
