"""What a change that was killed leaves, and a patch whose vLLM is gone: seen, named, taken away."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError, TargetError
from ddtree.cli.render.patch import exit_code, plain
from ddtree.patches import apply as engine
from ddtree.patches import bytecode, perform, undo
from ddtree.patches.far import remote
from ddtree.patches.status import State, Status
from ddtree.patches.verify.precondition import ready

from . import mini
from .far import box

PLAN = "0123456789ab"
# Of a bundle of an older release, and of a plan whose journal is gone.
LEFT = {
    "bundle": (".ddtree-bundle/ddtree_runtime/hooks.py", "vllm/config/.vllm.py.ddtree-bundle"),
    "plan": (
        f".ddtree-{PLAN}/ddtree_runtime/hooks.py",
        f".ddtree-{PLAN}.ddtree_runtime/hooks.py",
        f"vllm/v1/sample/.rejection_sampler.py.ddtree-{PLAN}",
    ),
}
# What only looks like it.
OTHERS = (".ddtree/notes", "vllm/config/.vllm.py.swp", "vllm/config/vllm.py.ddtree-0123456789ab")


def write(install: mini.Mini, names: tuple[str, ...]) -> None:
    for name in names:
        path = install.site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("left\n")


def named(names: tuple[str, ...]) -> tuple[str, ...]:
    """Of a folder that was left, the folder."""
    return tuple(
        sorted({name if name.startswith("vllm/") else name.split("/")[0] for name in names})
    )


@pytest.mark.parametrize("kind", LEFT)
def test_every_command_names_them_and_a_revert_removes_them(install: mini.Mini, kind: str) -> None:
    write(install, OTHERS)
    before = mini.snapshot(install.site)
    write(install, LEFT[kind])

    status = install.status()
    assert (status.state, status.whole) == (State.REMNANTS, False)
    assert tuple(sorted(status.leftovers)) == named(LEFT[kind])
    assert status.repair == (f"ddtree patch {install.site} --revert",)
    assert all(name in install.plan().notes[-1] for name in status.leftovers)
    assert exit_code(status) == 1
    assert plain.render(status).count("\nleft over: ") == len(status.leftovers)
    outcome = install.revert()
    assert isinstance(outcome, perform.Reverted)
    assert mini.snapshot(install.site) == before
    assert install.status().state == State.STOCK


@pytest.mark.parametrize("kind", LEFT)
def test_an_apply_removes_them_first(install: mini.Mini, kind: str) -> None:
    install.apply()
    wanted = mini.snapshot(install.site)
    install.revert()
    write(install, LEFT[kind])

    mini.applied(install)
    assert mini.snapshot(install.site) == wanted


@pytest.mark.parametrize("journal", [True, False])
def test_a_revert_of_a_whole_patch_removes_them(install: mini.Mini, journal: bool) -> None:
    before = mini.snapshot(install.site)
    mini.applied(install)
    write(install, LEFT["bundle"])
    if not journal:
        shutil.rmtree(install.state)

    assert install.status().whole
    assert tuple(sorted(install.status().leftovers)) == named(LEFT["bundle"])
    install.revert()
    assert mini.snapshot(install.site) == before


def test_bytecode_that_a_killed_bundle_did_not_remove_goes(install: mini.Mini) -> None:
    write(install, LEFT["bundle"])
    cached = install.site / "vllm/config/__pycache__/vllm.cpython-311.pyc"
    cached.parent.mkdir()
    cached.write_bytes(b"stale")

    install.revert()
    assert not cached.exists()
    assert bytecode.compiled(mini.place_of(install), mini.CONFIG) == []


@pytest.mark.parametrize("step", ["_stage", "_activate"])
def test_a_killed_apply_whose_journal_is_gone(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """As where a home is thrown away with its container."""
    before = mini.snapshot(install.site)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(engine, step, crash)
        broken.setattr(engine, "roll_back", crash)
        with pytest.raises(KeyboardInterrupt):
            install.apply()
    shutil.rmtree(install.state)
    if step == "_activate":
        assert install.status().state == State.REMNANTS
    install.revert()
    assert mini.snapshot(install.site) == before
    assert install.status().state == State.STOCK


def uninstalled(install: mini.Mini) -> None:
    """What `pip uninstall vllm` does."""
    shutil.rmtree(install.site / "vllm")
    shutil.rmtree(install.site / f"vllm-{mini.VERSION}.dist-info")


@pytest.mark.parametrize("target", ["site", "package"])
@pytest.mark.parametrize("journal", [True, False])
def test_a_patch_whose_vllm_was_uninstalled(install: mini.Mini, journal: bool, target: str) -> None:
    mini.applied(install)
    if not journal:
        shutil.rmtree(install.state)
    uninstalled(install)
    asked = str(install.site / "vllm" if target == "package" else install.site)

    status = perform.status(install.with_(target=asked))
    assert isinstance(status, Status)
    assert (status.state, status.version) == (State.REMNANTS, None)
    assert status.leftovers == ("ddtree_runtime", "ddtree_runtime-0.1.0.dist-info")
    assert ("its journal is in" in status.sentence) == journal
    for action in (perform.plan, perform.apply):
        with pytest.raises(TargetError, match=r"no vLLM .*is left.*: ddtree_runtime") as caught:
            action(install.with_(target=asked))
        assert caught.value.hint == f"ddtree patch {asked} --revert"
    with pytest.raises(TargetError, match="is left"):
        perform.bundle(install.with_(target=asked), install.root / "bundle")
    with pytest.raises(TargetError, match="is left"), ready(asked, None):
        pass

    perform.revert(install.with_(target=asked))
    assert list(install.site.iterdir()) == []
    assert not [path for path in install.state.rglob("*") if path.is_file()]


def test_nothing_of_a_patch_is_nothing(install: mini.Mini) -> None:
    uninstalled(install)
    with pytest.raises(TargetError, match="holds no vLLM and is no environment"):
        install.status()
    with pytest.raises(TargetError):
        install.revert()


def test_an_interrupted_revert_whose_vllm_was_uninstalled(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    mini.applied(install)
    with monkeypatch.context() as broken:
        broken.setattr(undo, "_set_aside", interrupted)
        with pytest.raises(KeyboardInterrupt):
            install.revert()
    uninstalled(install)
    install.revert()
    assert list(install.site.iterdir()) == []


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_is_left_elsewhere_is_seen_from_here(tmp_path: Path) -> None:
    there = box.make(tmp_path)
    mini.applied(there.install)
    uninstalled(there.install)
    status = there.status()
    assert status.state == State.REMNANTS
    assert status.repair == (f"ddtree patch user@box --python {there.far.python} --revert",)
    with pytest.raises(TargetError, match="is left"):
        remote.plan(there.far, there.options)
    assert isinstance(remote.revert(there.far, there.options), perform.Reverted)
    assert not list(there.install.site.glob("ddtree*"))
    with pytest.raises(TargetError):
        there.status()


def test_a_real_pip_knows_of_its_own_files_alone(tmp_path: Path) -> None:
    """The command that a user would type, in an environment of its own."""
    there = box.make(tmp_path)
    install = there.install
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, "-m", "ensurepip"], check=True, capture_output=True)
    mini.applied(install)
    command = [str(python), "-m", "pip", "uninstall", "--yes", "--quiet", "vllm"]
    subprocess.run(command, check=True, capture_output=True)
    assert not (install.site / "vllm" / "__init__.py").exists()

    target = str(tmp_path / "env")
    status = perform.status(install.with_(target=target))
    assert isinstance(status, Status)
    assert status.state == State.REMNANTS
    perform.revert(install.with_(target=target))
    assert not list(install.site.glob("ddtree*"))
    with pytest.raises(TargetError) as caught:
        perform.status(install.with_(target=target))
    assert "is left" not in caught.value.found


ACTIONS: dict[str, Callable[[perform.Options], perform.Outcome]] = {
    "plan": perform.plan,
    "apply": perform.apply,
}


@pytest.mark.parametrize("action", ACTIONS)
def test_half_a_patch_without_a_journal_is_refused(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """It is more than what was left: some files hold hooks."""
    before = mini.snapshot(install.site)
    mini.applied(install)
    shutil.rmtree(install.state)
    shutil.rmtree(install.site / "ddtree_runtime")
    write(install, LEFT["plan"])
    with pytest.raises(ConflictError) as caught:
        ACTIONS[action](install.options)
    assert caught.value.hint == f"ddtree patch {install.site} --revert"
    install.revert()
    assert mini.snapshot(install.site) == before
