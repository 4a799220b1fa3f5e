"""A bundle patches an install with nothing but Python, and gives its bytes back."""

from __future__ import annotations

import json
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
    assert run(bundle, install.site, "--revert")[0] == 0
    assert mini.snapshot(install.site) == before
    assert run(bundle, install.site, "--revert") == (0, "nothing to do\n")


def test_ddtree_gives_back_what_a_bundle_did(install: mini.Mini, bundle: Path) -> None:
    before = mini.snapshot(install.site)
    run(bundle, install.site)

    assert install.status().state == State.UNTRACKED
    install.revert()
    assert mini.snapshot(install.site) == before


def test_other_bytes_are_refused(install: mini.Mini, bundle: Path) -> None:
    install.edit(mini.CONFIG, lambda text: text + "# mine\n")
    before = installs.snapshot(install.site)

    code, said = run(bundle, install.site)
    assert (code, "vllm/config/vllm.py" in said) == (4, True)
    assert installs.snapshot(install.site) == before


@pytest.mark.parametrize("name", ["new/vllm/config/vllm.py", "beside/ddtree_runtime/hooks.py"])
@pytest.mark.parametrize("change", [Path.unlink, partial(Path.write_text, data="other")])
def test_a_damaged_bundle_is_refused(
    install: mini.Mini, bundle: Path, name: str, change: Callable[[Path], object]
) -> None:
    before = installs.snapshot(install.site)
    change(bundle / name)

    code, said = run(bundle, install.site)
    assert (code, str(bundle / name) in said) == (4, True)
    assert installs.snapshot(install.site) == before


def test_a_bundle_without_a_plan_is_refused(install: mini.Mini, bundle: Path) -> None:
    (bundle / "plan.json").write_text("{")

    assert run(bundle, install.site)[0] == 5


def test_a_symbolic_link_is_refused(install: mini.Mini, bundle: Path, tmp_path: Path) -> None:
    path = install.site / mini.RUNNER
    path.rename(tmp_path / "elsewhere.py")
    path.symlink_to(tmp_path / "elsewhere.py")
    before = installs.snapshot(install.site)

    code, said = run(bundle, install.site)
    assert (code, "a symbolic link" in said) == (4, True)
    assert installs.snapshot(install.site) == before


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
    assert (code, "something else is changing" in said) == (4, True)
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
        "apply.py", "plan.json", "plan.diff", "old", "new", "beside",
    }  # fmt: skip


def test_an_existing_folder_is_left_alone(install: mini.Mini, bundle: Path) -> None:
    with pytest.raises(ConflictError, match="is there already"):
        perform.bundle(install.options, bundle)


def test_a_bundle_of_a_patched_install_is_refused(install: mini.Mini, tmp_path: Path) -> None:
    install.apply()

    with pytest.raises(ConflictError, match="is patched already"):
        perform.bundle(install.options, tmp_path / "bundle")
