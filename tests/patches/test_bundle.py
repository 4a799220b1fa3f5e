"""A bundle patches an install with nothing but Python, and gives its bytes back."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import lock, perform
from ddtree.patches.place import Place
from ddtree.patches.status import State
from tests.analyzers.targets import installs

from . import mini


def run(folder: Path, *arguments: object) -> tuple[int, str]:
    command = [sys.executable, "-I", "-B", str(folder / "apply.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def bundle(install: mini.Mini, tmp_path: Path) -> Path:
    folder = tmp_path / "new" / "bundle"
    before = installs.snapshot(install.site)
    outcome = perform.bundle(install.options, folder)
    assert isinstance(outcome, perform.Bundled)
    assert installs.snapshot(install.site) == before
    return folder


def test_it_patches_like_apply_and_reverts(install: mini.Mini, bundle: Path) -> None:
    before = mini.snapshot(install.site)
    install.apply()
    wanted = mini.snapshot(install.site)
    install.revert()

    assert run(bundle, install.site)[0] == 0
    assert mini.snapshot(install.site) == wanted
    stamps = installs.snapshot(install.site)
    assert run(bundle, install.site) == (0, "nothing to do\n")
    assert installs.snapshot(install.site) == stamps
    status = install.status()
    assert (status.state, status.plan_id) == (State.APPLIED, perform_id(bundle))
    assert run(bundle, install.site, "--revert")[0] == 0
    assert mini.snapshot(install.site) == before
    assert run(bundle, install.site, "--revert") == (0, "nothing to do\n")


def perform_id(bundle: Path) -> str:
    return str(json.loads((bundle / "plan.json").read_text())["plan"])


@pytest.mark.parametrize("journal", [True, False])
@pytest.mark.parametrize("record", [True, False])
def test_ddtree_gives_back_what_a_bundle_did(
    install: mini.Mini, bundle: Path, journal: bool, record: bool
) -> None:
    """And a bundle gives back what it did, although nobody else knows the originals any more."""
    (listed,) = install.site.glob("vllm-*/RECORD")
    text = listed.read_text()
    before = mini.snapshot(install.site)
    for by_bundle in (True, False):
        run(bundle, install.site)
        if not journal:
            shutil.rmtree(install.state)
            if not record:
                listed.unlink()
        state = State.APPLIED if journal else State.UNTRACKED
        assert install.status().state == state
        if by_bundle:
            assert run(bundle, install.site, "--revert")[0] == 0
        else:
            # The edits are their own inverse; without a record, that has to be enough.
            install.revert(local_edits=not (journal or record))
        listed.write_text(text)
        assert mini.snapshot(install.site) == before


def test_other_bytes_are_refused(install: mini.Mini, bundle: Path) -> None:
    install.edit(mini.CONFIG, lambda text: text + "# mine\n")
    before = installs.snapshot(install.site)

    code, said = run(bundle, install.site)
    assert (code, "vllm/config/vllm.py" in said) == (4, True)
    assert installs.snapshot(install.site) == before


def test_files_that_are_not_those_of_the_bundle_are_refused(
    install: mini.Mini, bundle: Path
) -> None:
    """Although nobody recorded what they were."""
    (listed,) = install.site.glob("vllm-*/RECORD")
    listed.unlink()
    test_other_bytes_are_refused(install, bundle)


@pytest.mark.parametrize(
    "name",
    [
        "new/vllm/config/vllm.py",
        "beside/ddtree_runtime/hooks.py",
        "modules/ddtree/patches/recipes/v2.py",
    ],
)
@pytest.mark.parametrize("change", [Path.unlink, partial(Path.write_text, data="other")])
def test_a_damaged_bundle_is_refused(
    install: mini.Mini, bundle: Path, name: str, change: Callable[[Path], object]
) -> None:
    before = installs.snapshot(install.site)
    change(bundle / name)

    code, said = run(bundle, install.site)
    assert (code, str(bundle / name) in said) == (4, True)
    assert installs.snapshot(install.site) == before


@pytest.mark.parametrize("text", ["{", "[]", "{}", "null"])
def test_a_bundle_without_a_plan_is_refused(install: mini.Mini, bundle: Path, text: str) -> None:
    (bundle / "plan.json").write_text(text)

    assert run(bundle, install.site)[0] == 4


def test_a_bundle_of_other_files_than_its_plan_is_refused(install: mini.Mini, bundle: Path) -> None:
    """Also where every file is the one that is listed, as somebody who changed both would do it."""
    before = installs.snapshot(install.site)
    path = bundle / "new" / mini.CONFIG
    was = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(path.read_text() + "import evil\n")
    listed = (bundle / "plan.json").read_text()
    assert listed.count(was) == 2
    now = hashlib.sha256(path.read_bytes()).hexdigest()
    (bundle / "plan.json").write_text(listed.replace(was, now))

    code, said = run(bundle, install.site)
    assert (code, f"whose plan is not {install.plan().id}" in said) == (4, True)
    assert installs.snapshot(install.site) == before


def test_a_symbolic_link_comes_back(install: mini.Mini, bundle: Path, tmp_path: Path) -> None:
    path = install.site / mini.RUNNER
    path.rename(tmp_path / "elsewhere.py")
    path.symlink_to(tmp_path / "elsewhere.py")
    before = mini.snapshot(install.site)

    assert run(bundle, install.site)[0] == 0
    assert not path.is_symlink()
    assert run(bundle, install.site, "--revert")[0] == 0
    assert mini.snapshot(install.site) == before


def test_files_that_somebody_put_into_the_runtime_are_named(
    install: mini.Mini, bundle: Path
) -> None:
    run(bundle, install.site)
    (install.site / "ddtree_runtime" / "mine.py").write_text("")

    code, said = run(bundle, install.site, "--revert")
    assert (code, "ddtree_runtime/mine.py" in said) == (4, True)


def test_a_runtime_that_pip_removed_is_half_of_a_revert(install: mini.Mini, bundle: Path) -> None:
    before = mini.snapshot(install.site)
    run(bundle, install.site)
    (install.site / "ddtree_runtime" / "hooks.py").unlink()

    assert run(bundle, install.site)[0] == 4
    assert run(bundle, install.site, "--revert")[0] == 0
    assert mini.snapshot(install.site) == before


def test_one_change_at_a_time(install: mini.Mini, bundle: Path) -> None:
    place = Place(install.site, install.site, install.site / "vllm", None, None)
    with lock.locked(place):
        code, said = run(bundle, install.site)
    assert (code, "another ddtree is changing" in said) == (4, True)
    assert run(bundle, install.site)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code"), [(("/nowhere",), 3), (("--help",), 2), (("a", "b"), 2)]
)
def test_a_wrong_command_line(bundle: Path, arguments: tuple[str, ...], code: int) -> None:
    assert run(bundle, *arguments)[0] == code


def test_hard_links_and_modes(install: mini.Mini, bundle: Path, tmp_path: Path) -> None:
    other = tmp_path / "cache.py"
    path = install.site / mini.RUNNER
    path.chmod(0o640)
    other.hardlink_to(path)

    run(bundle, install.site)
    assert other.read_text() == mini.FILES[mini.RUNNER]
    assert path.stat().st_mode & 0o777 == 0o640


def test_it_says_what_it_does(install: mini.Mini, bundle: Path) -> None:
    plan = install.plan()
    facts = json.loads((bundle / "plan.json").read_text())

    assert facts["plan"] == plan.id
    assert (bundle / "plan.diff").read_text() == plan.diff
    assert {path.name for path in bundle.iterdir()} == {
        "apply.py", "plan.json", "plan.diff", "old", "new", "beside", "modules",
    }  # fmt: skip


def test_an_existing_folder_is_left_alone(install: mini.Mini, bundle: Path) -> None:
    with pytest.raises(ConflictError, match="is there already"):
        perform.bundle(install.options, bundle)


def test_a_bundle_of_a_patched_install_is_refused(install: mini.Mini, tmp_path: Path) -> None:
    install.apply()

    with pytest.raises(ConflictError, match="is patched already"):
        perform.bundle(install.options, tmp_path / "bundle")
