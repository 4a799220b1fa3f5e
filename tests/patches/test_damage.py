"""A runtime that is damaged or gone: vLLM is stock without trees, and starts none with them."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ddtree.analyzers.install.names import dotted_name
from ddtree.patches import marks
from ddtree.patches.distribution import DIST_INFO, distribution
from ddtree.patches.status import State
from tests.analyzers.targets import installs

from . import mini, users

commons = users.commons


def replaced(data: str | bytes) -> Callable[[Path], object]:
    """Damages a file by other content."""
    return lambda path: path.write_bytes(data if isinstance(data, bytes) else data.encode())


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": replaced(""),
    "truncated": replaced(mini.HOOKS[: mini.HOOKS.index("    def decorate")] + "    def dec"),
    "nulls": replaced(b"\0" * 512),
    "not utf-8": replaced(b"# \xff\xfe\nimport os\n"),
    "raises": replaced("raise RuntimeError('broken')\n"),
    "folder": folder,
    "unreadable": lambda path: path.chmod(0),
}
# Calls what is hooked, with trees and without, in the order of the words.
USE = f"""
import importlib, sys
for name in {[dotted_name(file) for file in mini.EDITED]!r}:
    importlib.import_module(name)
from vllm.config.vllm import VllmConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
config, arguments = VllmConfig(), EngineArgs()
config.additional_config = {{}}
assert config.num_speculative_tokens == 3
assert arguments.create_engine_config(headless=True) is arguments
assert VllmConfig.num_speculative_tokens.__doc__ == "How many."
assert GPUModelRunner(config)._sample(spec_decode_metadata=1, logits=2) == 2
for given in (dict(ddtree=dict(budget=3)), dict(other=1, ddtree=None)):
    config.additional_config = arguments.additional_config = given
    for use in (arguments.create_engine_config, lambda: config.num_speculative_tokens):
        try:
            use()
        except RuntimeError as error:
            print(error)
        else:
            print("served")
"""


def use(site: Path) -> list[str]:
    """What importing and configuring the tiny vLLM prints, in a process of this user's own."""
    command = [sys.executable, "-I", "-B", "-c", f"import sys; sys.path[:0] = [{str(site)!r}]{USE}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("how", [how for how in DAMAGE if how != "unreadable"])
def test_off_is_stock_and_on_is_a_refusal(install: mini.Mini, how: str) -> None:
    mini.applied(install)
    assert use(install.site) == ["served"] * 4
    path = install.site / "ddtree_runtime" / "hooks.py"
    DAMAGE[how](path)

    said = use(install.site)
    assert len(said) == 4
    for line in said:
        assert line.startswith("ddtree: trees are configured, and their runtime cannot be loaded (")
        assert "ddtree patch --status" in line
        assert '"ddtree" from --additional-config' in line
    assert install.status().state == State.DAMAGED


def test_a_refusal_that_nobody_catches_is_one_line(install: mini.Mini) -> None:
    mini.applied(install)
    DAMAGE["empty"](install.site / "ddtree_runtime" / "hooks.py")
    given = "arguments.additional_config = dict(ddtree=dict(budget=3))"
    lines = [f"import sys; sys.path[:0] = [{str(install.site)!r}]{USE}", given]
    code = "\n".join([*lines, "arguments.create_engine_config()"])

    command = [sys.executable, "-I", "-B", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("ddtree: trees are configured, and their runtime cannot be")


def forget(*packages: str) -> None:
    """Have these packages imported anew by whoever imports them next."""
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]


def imported(site: Path) -> list[str]:
    """The same in this process, of which every module of the tiny vLLM is forgotten."""
    forget("vllm", "ddtree_runtime")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(site))
    importlib.invalidate_caches()
    said: list[str] = []
    scope: dict[str, Any] = {"print": said.append}
    exec(compile(USE, "use", "exec"), scope)
    return [str(line) for line in said]


def of_root(path: Path) -> None:
    os.chown(path, 0, 0)
    path.chmod(0o700)


@pytest.mark.parametrize("hide", [lambda path: path.chmod(0), of_root])
@pytest.mark.parametrize("what", ["ddtree_runtime/hooks.py", "ddtree_runtime"])
def test_what_a_server_s_user_cannot_read(
    commons: Path, monkeypatch: pytest.MonkeyPatch, what: str, hide: Callable[[Path], None]
) -> None:
    """Who runs a server is judged by who may read vLLM, whoever asks for the status."""
    install = mini.make(commons / "theirs")
    users.given(install.root)
    monkeypatch.setenv("DDTREE_STATE", str(install.state))
    before = mini.snapshot(install.site)
    users.by(install.apply)
    assert users.by(lambda: imported(install.site)) == ["served"] * 4

    hide(install.site / what)
    said = users.by(lambda: imported(install.site))
    assert len(said) == 4
    assert all("their runtime cannot be loaded" in line for line in said)
    for status in (install.status(), users.by(install.status)):
        assert status.state == State.DAMAGED
        assert what in status.unreadable
        assert status.sentence.endswith("can read its runtime.")
        assert status.repair == (f"ddtree patch {install.site} --revert",)
    install.revert()
    assert mini.snapshot(install.site) == before


def loaded(site: Path) -> str:
    """Why the real runtime's package cannot be loaded; empty if it can."""
    forget("ddtree_runtime")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.syspath_prepend(site)
        try:
            importlib.import_module("ddtree_runtime")
        # The hooks in vLLM catch as much.
        except Exception as error:  # noqa: BLE001
            return f"{type(error).__name__}: {error}"
        finally:
            forget("ddtree_runtime")
    return ""


def test_every_file_of_the_real_runtime_counts(tmp_path: Path) -> None:
    """Half of a file is often Python, too, and would do half of the work."""
    files = distribution()
    installs.write(tmp_path, files)
    assert loaded(tmp_path) == ""
    own = [name for name in files if name.startswith("ddtree_runtime/")]
    assert len(own) > 40
    for name in own:
        if name == "ddtree_runtime/__init__.py":
            # What looks is not looked at by itself, and nothing else is in it.
            continue
        lines = files[name].splitlines(keepends=True)
        for data in (b"", b"".join(lines[: len(lines) // 2]), files[name] + b"# mine\n", None):
            path = tmp_path / name
            path.unlink() if data is None else path.write_bytes(data)
            assert (name in loaded(tmp_path)) == (data != files[name])
        path.write_bytes(files[name])
    assert loaded(tmp_path) == ""
    # What pip removed of the metadata alone is no damage.
    shutil.rmtree(tmp_path / DIST_INFO)
    assert loaded(tmp_path) == ""


def test_a_runtime_that_only_its_group_reads(install: mini.Mini) -> None:
    mini.applied(install)
    hooks = install.site / "ddtree_runtime" / "hooks.py"
    for mode, state in ((0o600, State.DAMAGED), (0o640, State.DAMAGED), (0o644, State.APPLIED)):
        hooks.chmod(mode)
        assert install.status().state == state
    # As private as vLLM itself.
    (install.site / "vllm" / "__init__.py").chmod(0o600)
    hooks.chmod(0o600)
    assert install.status().state == State.APPLIED


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("guard", [marks.GUARD, marks.CONFIG_GUARD, marks._FORMER])
def test_a_guard_of_any_release_is_taken_out(guard: str, ends: str) -> None:
    """What an older ddtree wrote, too; no journal is needed for it."""
    parts = ["import os\n", guard, "\n\nclass A:\n    pass\n"]
    before, lines, after = (part.replace("\n", ends).encode() for part in parts)
    assert marks.unedited(before + lines + after) == before + after
