"""A patch that no journal of this user tells of: by a bundle, of another user, copied or moved."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import perform
from ddtree.patches.distribution import distribution
from ddtree.patches.recipe import all_recipes, hooked_files
from ddtree.patches.status import FileState, State, Status
from ddtree.patches.verify.precondition import ready

from . import mini, releases

HOOKS = "ddtree_runtime/hooks.py"
PYTHON = Path("/somewhere/python")


@pytest.fixture
def untracked(install: mini.Mini) -> mini.Mini:
    """A patched install whose journal is gone."""
    mini.applied(install)
    shutil.rmtree(install.state)
    return install


def beside(install: mini.Mini) -> dict[str, bytes]:
    return distribution(install.root / "runtime", install.root / "kernels")


def test_a_whole_patch_is_whole(untracked: mini.Mini) -> None:
    """Nothing is to be repaired, and a second apply changes nothing."""
    before = mini.snapshot(untracked.site)
    status = untracked.status()
    assert (status.state, status.whole) == (State.UNTRACKED, True)
    assert (status.runtime, status.repair, status.outdated) == ((), (), False)
    assert status.sentence.endswith("Every file is as this ddtree makes it.")
    assert isinstance(untracked.apply(), Status)
    assert isinstance(perform.plan(untracked.options), Status)
    with pytest.raises(ConflictError, match=r"is patched already$"):
        perform.bundle(untracked.options, untracked.root / "bundle")
    assert mini.snapshot(untracked.site) == before


def test_files_of_other_releases_recipes_are_not_missed(install: mini.Mini) -> None:
    """A release is edited where its own recipe says, and asked about nothing else."""
    others = set(hooked_files(all_recipes())) - set(mini.EDITED)
    assert others
    for file in others:
        path = install.site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("VALUE = 1\n")
    assert set(install.status().files) == set(mini.EDITED)
    mini.applied(install)
    shutil.rmtree(install.state)
    assert install.status().whole
    with ready(str(install.site), PYTHON, beside(install)) as found:
        assert len(found.modules) == len(mini.EDITED)


@pytest.mark.parametrize("version", ["0.20.1", "0.24.0", "0.32.0"])
def test_a_whole_patch_of_a_real_release(tmp_path: Path, state: Path, version: str) -> None:
    """With the real runtime, and every file that any recipe knows."""
    site = releases.copy(version, tmp_path)
    assert isinstance(perform.apply(perform.Options(str(site))), perform.Applied)
    shutil.rmtree(state)
    with ready(str(site), PYTHON) as found:
        assert found.status.state == State.UNTRACKED
        assert found.status.whole
    perform.revert(perform.Options(str(site)))
    after = perform.status(perform.Options(str(site)))
    assert isinstance(after, Status)
    assert after.state == State.STOCK


def test_a_whole_patch_can_be_verified(untracked: mini.Mini) -> None:
    """Also in the place that it was copied to."""
    copied = untracked.root / "copy" / "site-packages"
    shutil.copytree(untracked.site, copied)
    for site in (untracked.site, copied):
        with ready(str(site), PYTHON, beside(untracked)) as found:
            assert found.status.whole
            assert len(found.modules) == len(mini.EDITED)


def test_a_copied_patch_can_be_reverted(install: mini.Mini) -> None:
    """Byte for byte, while the original stays patched."""
    stock = mini.snapshot(install.site)
    mini.applied(install)
    copied = install.root / "copy" / "site-packages"
    shutil.copytree(install.site, copied, symlinks=True)
    perform.revert(install.with_(target=str(copied)))
    assert mini.snapshot(copied) == stock
    assert install.status().state == State.APPLIED


def test_a_runtime_of_another_content_is_named_file_by_file(untracked: mini.Mini) -> None:
    """And nothing else is."""
    (untracked.site / HOOKS).write_text("# mine\n")
    status = untracked.status()
    assert not status.whole
    assert status.runtime == (HOOKS,)
    assert "Not all of it is as this ddtree makes it" in status.sentence
    assert status.repair == (f"ddtree patch {untracked.site} --revert",)
    with pytest.raises(ConflictError), ready(str(untracked.site), PYTHON, beside(untracked)):
        pass


def test_a_runtime_that_is_gone_is_named_as_a_whole(untracked: mini.Mini) -> None:
    """One name for all of its files."""
    shutil.rmtree(untracked.site / "ddtree_runtime")
    assert untracked.status().runtime == ("ddtree_runtime",)
    assert not untracked.status().whole


def test_a_runtime_without_hooks(install: mini.Mini) -> None:
    """Left over; a revert takes it away."""
    stock = mini.snapshot(install.site)
    for path, data in beside(install).items():
        file = install.site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    status = install.status()
    assert (status.state, status.whole) == (State.UNTRACKED, False)
    assert "without its hooks" in status.sentence
    install.revert()
    assert mini.snapshot(install.site) == stock


STATIC = "    @staticmethod\n"
LINE = '    @_ddtree_hook("v1.sample")\n'


@pytest.mark.parametrize(
    "change",
    [
        # A hook less, one elsewhere, one with another name, one twice, a guard that is text.
        lambda text: text.replace(LINE, ""),
        lambda text: text.replace(LINE, "").replace(STATIC, STATIC + LINE),
        lambda text: text.replace("v1.sample", "v1.other"),
        lambda text: text.replace(LINE, LINE + LINE),
        lambda text: text.replace("\ntry:\n", '\n"""\ntry:\n').replace(
            "function: function\n", 'function: function\n"""\n'
        ),
    ],
)  # fmt: skip
def test_other_hooks_are_another_patch(untracked: mini.Mini, change: Callable[[str], str]) -> None:
    """Each leaves RECORD's bytes when it is taken out, and still is not what was meant."""
    before = (untracked.site / mini.RUNNER).read_text()
    untracked.edit(mini.RUNNER, change)
    assert (untracked.site / mini.RUNNER).read_text() != before
    assert not untracked.status().whole


def test_foreign_lines_beside_hooks(untracked: mini.Mini) -> None:
    """What RECORD does not confirm is no patch of ddtree's alone."""
    untracked.edit(mini.CONFIG, lambda text: text + "# mine\n")
    status = untracked.status()
    assert status.files[mini.CONFIG] == FileState.CHANGED
    assert not status.whole
    assert status.repair == (f"ddtree patch {untracked.site} --revert --allow-local-edits",)


def test_a_record_that_says_nothing_confirms_nothing(untracked: mini.Mini) -> None:
    """Without the originals' hashes nobody knows what the hooks were put into."""
    (record,) = untracked.site.glob("vllm-*/RECORD")
    record.unlink()
    assert not untracked.status().whole
