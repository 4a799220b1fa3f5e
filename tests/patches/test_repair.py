"""Every state has a way out, and the commands that are named lead there."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.analyzers.targets.resolve import open_target
from ddtree.patches import journal
from ddtree.patches.errors import RecoveryPending
from ddtree.patches.journal import Phase
from ddtree.patches.place import place_of
from ddtree.patches.status import State
from ddtree.patches.verify.precondition import ready
from tests.analyzers.targets import installs

from . import mini
from .far import box

PIP = ["-m", "pip", "install", "--force-reinstall", "--no-deps", "vllm==0.32.0"]


@pytest.fixture
def install(tmp_path: Path) -> mini.Mini:
    """A tiny install in an environment with an interpreter."""
    return box.make(tmp_path).install


def interpreter(install: mini.Mini) -> str:
    with open_target(str(install.site)) as target:
        return str(place_of(target).python)


def reinstalled(install: mini.Mini) -> None:
    """What the command of pip's would do."""
    shutil.rmtree(install.site / "vllm")
    shutil.rmtree(install.site / f"vllm-{mini.VERSION}.dist-info")
    installs.installed(install.site, "vllm", mini.VERSION, mini.FILES)


def refused(install: mini.Mini) -> ConflictError:
    with pytest.raises(ConflictError) as caught, ready(str(install.site), None):
        pass
    return caught.value


@pytest.mark.parametrize("tracked", [True, False])
def test_a_patched_file_that_somebody_changed(install: mini.Mini, tracked: bool) -> None:
    """Status, verify, apply and revert name the same command, and it leads to what was changed."""
    stock = mini.snapshot(install.site)
    mini.applied(install)
    install.edit(mini.CONFIG, lambda text: text + "# mine\n")
    if not tracked:
        shutil.rmtree(install.state)
    (command,) = install.status().repair
    assert command == f"ddtree patch {install.site} --revert --allow-local-edits"
    for action in (install.apply, install.revert):
        with pytest.raises(ConflictError) as caught:
            action()
        assert caught.value.hint == command
    assert refused(install).hint == command

    install.revert(local_edits=True)
    install.edit(mini.CONFIG, lambda text: text.replace("# mine\n", ""))
    assert mini.snapshot(install.site) == stock
    assert install.status().state == State.STOCK


def test_a_patched_file_that_is_gone(install: mini.Mini) -> None:
    """Status, verify, apply and revert name the same command, and it leads to stock."""
    stock = mini.snapshot(install.site)
    mini.applied(install)
    (install.site / mini.CONFIG).unlink()
    first, second = install.status().repair
    assert shlex.split(first) == [interpreter(install), *PIP]
    assert second == f"ddtree patch {install.site} --revert"
    for action in (install.apply, install.revert):
        with pytest.raises(ConflictError) as caught:
            action()
        assert caught.value.hint == first
    assert refused(install).hint == first

    reinstalled(install)
    install.revert()
    assert mini.snapshot(install.site) == stock
    assert install.status().state == State.STOCK


@pytest.mark.parametrize("name", ["hooks.py", "mine.py"])
def test_a_runtime_that_somebody_changed(install: mini.Mini, name: str) -> None:
    """vLLM need not be installed again for it."""
    stock = mini.snapshot(install.site)
    mini.applied(install)
    (install.site / "ddtree_runtime" / name).write_text("# mine\n")
    first, second = install.status().repair
    with pytest.raises(ConflictError) as caught:
        install.revert()
    assert caught.value.hint == first == f"rm -r {install.site / 'ddtree_runtime'}"
    assert second == f"ddtree patch {install.site} --revert"

    subprocess.run(shlex.split(first), check=True)
    install.revert()
    assert mini.snapshot(install.site) == stock


def test_a_stock_install_that_somebody_changed(install: mini.Mini) -> None:
    """It needs no repair."""
    install.edit(mini.CONFIG, lambda text: text + "# mine\n")
    status = install.status()
    assert status.state == State.STOCK
    said = f"Not patched. Somebody else changed 1 file of this vLLM: {mini.CONFIG}."
    assert status.sentence == said
    assert status.repair == ()
    assert refused(install).hint == f"ddtree patch {install.site} --apply"


def test_a_change_elsewhere_is_said_and_hinders_nothing(install: mini.Mini) -> None:
    """A file that no recipe edits."""
    install.edit("vllm/other.py", lambda text: text + "# mine\n")
    assert "Somebody else changed 1 file of this vLLM: vllm/other.py." in install.status().sentence
    assert install.status().repair == ()
    assert refused(install).hint == f"ddtree patch {install.site} --apply"
    mini.applied(install)


def test_a_lost_patch_under_a_change(install: mini.Mini) -> None:
    """Apply would refuse that too."""
    mini.applied(install)
    reinstalled(install)
    assert install.status().repair == (f"ddtree patch {install.site} --apply",)
    assert refused(install).hint.endswith("--apply")


def test_what_uv_installed_without_pip_comes_back_with_uv(install: mini.Mini) -> None:
    """There is no pip to run."""
    (folder,) = install.site.glob("vllm-*.dist-info")
    (folder / "INSTALLER").write_text("uv")
    shutil.rmtree(install.site / "pip", ignore_errors=True)
    mini.applied(install)
    (install.site / mini.CONFIG).unlink()
    command, _ = install.status().repair
    start = ["uv", "pip", "install", "--python", interpreter(install), "--reinstall", "--no-deps"]
    assert shlex.split(command) == [*start, "vllm==0.32.0"]


@pytest.mark.parametrize("phase", [Phase.APPLYING, Phase.REVERTING])
def test_verify_after_a_command_that_was_killed(install: mini.Mini, phase: Phase) -> None:
    """It is not taken for a patch that was lost, and verify itself writes nothing."""
    mini.applied(install)
    with open_target(str(install.site)) as target:
        (found,) = journal.journals(place_of(target))
    journal.enter(found, phase)
    before = mini.snapshot(install.root)
    with (
        pytest.raises(RecoveryPending, match="interrupted") as caught,
        ready(str(install.site), None),
    ):
        pass
    assert (caught.value.exit_code, caught.value.hint) == (
        6, f"ddtree patch {install.site} --status",
    )  # fmt: skip
    assert mini.snapshot(install.root) == before
    assert install.status().state == State.STOCK
    assert refused(install).hint.endswith("--apply")
