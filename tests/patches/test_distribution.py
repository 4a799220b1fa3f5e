"""The runtime as pip sees it, and how it finds its kernels."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from ddtree.analyzers.errors import DdtreeError
from ddtree.patches import distribution
from ddtree.patches.status import FileState, State
from tests import checkout
from tests.analyzers.targets import installs

from . import mini

# The modules that write to a disk.
WRITERS = {"patches/disk.py"}
MUTATING = {
    "rename", "replace_file", "unlink", "rmdir", "mkdir", "symlink_to", "hardlink_to", "chmod",
    "fchmod", "chown", "fchown", "lchown", "setxattr", "write_bytes", "write_text", "touch",
    "rmtree", "copytree", "copyfile", "copy2", "move", "truncate", "utime", "makedirs", "remove",
}  # fmt: skip


def pip(prefix: Path, *arguments: str) -> str:
    command = [sys.executable, "-P", "-m", "pip", "--python", str(prefix / "bin" / "python")]
    done = subprocess.run(
        [*command, "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def environment(tmp_path: Path) -> mini.Mini:
    """A tiny install in a virtual environment."""
    prefix = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    (site,) = prefix.glob("lib/python*/site-packages")
    return mini.make(tmp_path, site=site)


def test_pip_lists_checks_and_removes_it(environment: mini.Mini, tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    before = mini.snapshot(environment.site)
    environment.apply()

    assert "ddtree-runtime" in pip(prefix, "list")
    assert "No broken requirements found" in pip(prefix, "check")
    listed = pip(prefix, "show", "-f", "ddtree-runtime")
    assert "ddtree_runtime/kernels/tree/__init__.py" in listed
    pip(prefix, "uninstall", "--yes", "ddtree-runtime")
    assert not list(environment.site.glob("ddtree_runtime*"))

    # What is left is a vLLM whose hooks do nothing, and the journal still gives it back.
    code = "import vllm.v1.worker.gpu_model_runner as m; print(m.GPUModelRunner(3).config)"
    python = str(prefix / "bin" / "python")
    done = subprocess.run([python, "-I", "-B", "-c", code], capture_output=True, check=True)
    assert done.stdout == b"3\n"
    status = environment.status()
    assert status.state == State.DAMAGED
    assert set(status.files.values()) == {FileState.PATCHED}
    environment.revert()
    assert mini.snapshot(environment.site) == before


def test_nothing_of_it_lies_inside_of_vllm(install: mini.Mini) -> None:
    install.apply()
    assert (install.site / "ddtree_runtime" / "__init__.py").is_file()
    assert not [path for path in install.site.glob("vllm/**/*") if "ddtree" in path.name]


def test_kernels_travel_byte_for_byte_and_code_only(tmp_path: Path) -> None:
    runtime, _ = mini.beside(tmp_path)
    files = distribution.distribution(runtime)
    prefix = "ddtree_runtime/kernels/"
    kernels = {path.removeprefix(prefix): data for path, data in files.items() if prefix in path}

    assert "tree/walk/kernel.py" in kernels
    assert {path.rpartition(".")[2] for path in kernels} == {"py"}
    root = checkout.ROOT / "kernels"
    assert all((root / path).read_bytes() == data for path, data in kernels.items())
    assert {path for path in kernels if not path.startswith("tree/")} == {"__init__.py"}


def test_a_link_to_the_kernels_is_not_followed(tmp_path: Path) -> None:
    runtime, kernels = mini.beside(tmp_path)
    before = distribution.distribution(runtime, kernels)
    (runtime / "kernels").symlink_to(kernels)

    assert distribution.distribution(runtime, kernels) == before


def test_record_is_right(tmp_path: Path) -> None:
    files = distribution.distribution(*mini.beside(tmp_path))
    name = f"{distribution.DIST_INFO}/RECORD"
    lines = files[name].decode().splitlines()

    assert sorted(line.partition(",")[0] for line in lines) == sorted(files)
    assert f"{name},," in lines
    for path, data in files.items():
        assert path == name or installs.record_line(path, data) in lines


def test_a_ddtree_without_its_runtime_says_so(tmp_path: Path) -> None:
    with pytest.raises(DdtreeError, match=r"holds no hooks\.py"):
        distribution.distribution(tmp_path)


def test_only_one_module_writes() -> None:
    calls = {}
    for name in checkout.files():
        if name.startswith("patches/") and name.endswith(".py"):
            tree = ast.parse((checkout.ROOT / name).read_text("utf-8"))
            calls[name] = {ast.unparse(node.func) for node in ast.walk(tree)
                           if isinstance(node, ast.Call)}  # fmt: skip
    engine = {name for name in calls if not name.startswith(("patches/runtime", "patches/verify"))}
    assert {"patches/apply.py", *WRITERS} <= engine
    for name in sorted(engine - WRITERS):
        # Calls of the one module are what the others are for.
        others = {call for call in calls[name] if not call.startswith("disk.")}
        assert not {call for call in others if call.rpartition(".")[2] in MUTATING}, name
