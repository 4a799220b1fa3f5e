"""What is said of a change that did not go through is how things stand."""

from __future__ import annotations

import os
import shutil
import stat
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import apply as engine
from ddtree.patches import disk, journal, perform, undo
from ddtree.patches.errors import RecoveryPending, RolledBack
from ddtree.patches.journal import Journal, Phase
from ddtree.patches.status import State

from . import mini, users

commons = users.commons


def full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device", "somewhere")


def failing_from(phase: Phase) -> Callable[[Journal, Phase], Journal]:
    """A journal that takes no entry of this phase any more."""
    real = journal.enter

    def enter(found: Journal, wanted: Phase) -> Journal:
        if wanted == phase:
            full()
        return real(found, wanted)

    return enter


# A revert that never began


def test_a_revert_that_cannot_be_written_down_says_that_the_patch_is_live(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    mini.applied(install)
    before = mini.snapshot(install.root)
    monkeypatch.setattr(journal, "enter", failing_from(Phase.REVERTING))
    with pytest.raises(RolledBack, match=r"did not begin.*the patch is whole and live") as caught:
        install.revert()
    assert caught.value.exit_code == 5
    assert mini.snapshot(install.root) == before
    monkeypatch.undo()
    monkeypatch.setenv("DDTREE_STATE", str(install.state))
    assert install.status().state == State.APPLIED


def test_a_revert_whose_originals_cannot_be_written_changes_nothing(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    mini.applied(install)
    before = mini.snapshot(install.root)
    real = disk.write_new

    def write(path: Path, data: bytes, like: disk.Attributes) -> None:
        if path.name.startswith(".rejection_sampler_utils"):
            full()
        real(path, data, like)

    with monkeypatch.context() as broken:
        broken.setattr(disk, "write_new", write)
        with pytest.raises(RolledBack, match=r"somewhere.*nothing was changed"):
            install.revert()
    assert mini.snapshot(install.root) == before
    install.revert()


def test_the_state_folder_is_looked_at_before_a_revert(
    commons: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install = theirs(commons, monkeypatch)
    users.by(install.apply)
    before = mini.snapshot(commons)
    folders = [path for path in install.state.rglob("*") if path.is_dir()]
    (kept,) = [path for path in folders if (path / "journal.json").exists()]
    kept.chmod(0o500)
    with pytest.raises(ConflictError, match=r"the journal goes to .* cannot be written to"):
        users.by(install.revert)
    kept.chmod(0o700)
    assert mini.snapshot(commons) == before
    users.by(install.revert)


def test_a_full_disk_is_noticed_before_a_revert(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    mini.applied(install)
    before = mini.snapshot(install.root)
    real = os.statvfs

    def statvfs(path: Path) -> os.statvfs_result:
        fields = list(real(path))
        fields[4] = 3
        return os.statvfs_result(fields)

    with monkeypatch.context() as broken:
        broken.setattr(os, "statvfs", statvfs)
        with pytest.raises(ConflictError, match="bytes free"):
            install.revert()
    assert mini.snapshot(install.root) == before
    install.revert()


# An apply whose last entry fails


def test_an_apply_that_cannot_be_written_down_is_taken_back(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = mini.snapshot(install.site)
    monkeypatch.setattr(journal, "enter", failing_from(Phase.APPLIED))
    with pytest.raises(RolledBack, match="every byte is as it was before"):
        install.apply()
    assert mini.snapshot(install.site) == before
    assert not list(install.state.rglob("*.json"))


def test_an_apply_whose_last_entry_is_there_went_through(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only that a disk would not confirm it, for good."""
    real = journal.enter

    def enter(found: Journal, phase: Phase) -> Journal:
        done = real(found, phase)
        if phase == Phase.APPLIED:
            full()
        return done

    with monkeypatch.context() as broken:
        broken.setattr(journal, "enter", enter)
        outcome = install.apply()
    assert isinstance(outcome, perform.Applied)
    assert any("The patch is whole and live" in note for note in outcome.notes)
    assert install.status().state == State.APPLIED


def test_an_undo_that_fails_says_what_is_live(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(engine, "check", full)
        broken.setattr(undo, "_set_aside", full)
        with pytest.raises(RecoveryPending, match=r"; the patch is whole and live$"):
            install.apply()
    assert install.status().state == State.STOCK


# Ctrl-C


def stopped(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_in_a_revert_says_what_is_left_to_do(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = mini.snapshot(install.site)
    mini.applied(install)
    wanted = f"run: ddtree patch {install.site} --status"
    with monkeypatch.context() as broken:
        broken.setattr(undo, "compiled", stopped)
        with pytest.raises(KeyboardInterrupt, match="vLLM runs") as caught:
            install.revert()
        assert str(caught.value).endswith(wanted)
        # And once more, in what finishes it.
        with pytest.raises(KeyboardInterrupt, match="vLLM runs") as caught:
            install.status()
        assert str(caught.value).endswith(wanted)
    assert install.status().state == State.STOCK
    assert mini.snapshot(install.site) == before


def test_ctrl_c_before_anything_changed_says_so(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    mini.applied(install)
    before = mini.snapshot(install.root)
    with monkeypatch.context() as broken:
        broken.setattr("ddtree.patches.revert.stage", stopped)
        with pytest.raises(KeyboardInterrupt, match="nothing was changed, and the patch is whole"):
            install.revert()
    assert mini.snapshot(install.root) == before


def test_ctrl_c_twice_in_an_apply_says_what_is_left_to_do(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = mini.snapshot(install.site)
    with monkeypatch.context() as broken:
        broken.setattr(engine, "check", stopped)
        broken.setattr(undo, "_set_aside", stopped)
        with pytest.raises(KeyboardInterrupt, match=r"the patch is whole and live; .*--status"):
            install.apply()
    assert install.status().state == State.STOCK
    assert mini.snapshot(install.site) == before


# Those who may write, and not give files away


def theirs(root: Path, monkeypatch: pytest.MonkeyPatch) -> mini.Mini:
    install = mini.make(root / "theirs")
    users.given(install.root)
    monkeypatch.setenv("DDTREE_STATE", str(install.state))
    return install


def open_to_all(root: Path) -> None:
    for path in (root, *root.rglob("*")):
        if path.is_dir():
            path.chmod(0o777)


def test_a_revert_by_who_may_write_and_not_chown_is_refused(
    commons: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole, with the names of the files; and the owner's own revert gives every byte back."""
    install = mini.make(commons / "shared")
    open_to_all(install.site)
    monkeypatch.setenv("DDTREE_STATE", str(commons / "state"))
    before = mini.snapshot(install.site)
    install.apply()
    open_to_all(install.site)
    patched = mini.snapshot(install.site)
    own = commons / "own"
    own.mkdir()
    users.given(own)

    with monkeypatch.context() as other:
        other.setenv("DDTREE_STATE", str(own / "state"))
        for action in (install.revert, lambda: install.revert(force=True)):
            with pytest.raises(ConflictError, match=r"belongs to user 0, group 0") as caught:
                users.by(action)
            assert all(str(install.site / file) in caught.value.found for file in mini.EDITED)
        assert not (own / "state").exists()
    assert mini.snapshot(install.site) == patched
    install.revert()
    assert mini.snapshot(install.site) == before


@pytest.mark.parametrize("what", ["__pycache__", "runtime", "sticky"])
def test_what_only_the_owner_may_remove_is_an_obstacle_too(
    commons: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    install = theirs(commons, monkeypatch)
    users.by(install.apply)
    if what == "sticky":
        os.chown(install.site, 0, 0)
        os.chown(install.site / "ddtree_runtime", 0, 0)
        install.site.chmod(0o777 | stat.S_ISVTX)
    else:
        of_root = install.site / ("ddtree_runtime" if what == "runtime" else "vllm/config")
        (of_root / "__pycache__").mkdir()
        (of_root / "__pycache__" / "vllm.cpython-311.pyc").write_bytes(b"")
    patched = mini.snapshot(install.root)
    with pytest.raises(ConflictError, match=r"cannot be written to|somebody else's"):
        users.by(install.revert)
    assert mini.snapshot(install.root) == patched


def test_an_access_list_is_no_obstacle(install: mini.Mini) -> None:
    """Whoever has one, and not its mode, may read."""
    mini.applied(install)
    path = install.site / "ddtree_runtime" / "hooks.py"
    entries = [(1, 6, -1), (2, 4, 65534), (4, 0, -1), (16, 4, -1), (32, 0, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    os.setxattr(path, "system.posix_acl_access", acl)
    assert install.status().state == State.APPLIED
    install.revert()


def test_a_link_to_a_folder_of_no_use_is_named(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handle knows no name, and the message does."""
    real = os.fchown

    def fchown(handle: int, uid: int, gid: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    path = install.site / mini.RUNNER
    if os.geteuid() == 0:
        os.chown(path, 12, 34)
    else:
        pytest.skip("only root can give files away")
    with monkeypatch.context() as broken:
        broken.setattr(os, "fchown", fchown)
        with pytest.raises(RolledBack, match=r"Operation not permitted: .*\.gpu_model_runner\.py"):
            install.apply()
    assert real is os.fchown
    shutil.rmtree(install.state, ignore_errors=True)
