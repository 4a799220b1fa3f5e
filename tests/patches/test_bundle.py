"""A bundle patches an install with nothing but Python, and gives its bytes back."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import perform
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


def test_a_failure_half_way_is_rolled_back(install: mini.Mini, bundle: Path) -> None:
    before = mini.snapshot(install.site)
    # The last thing that it copies is missing.
    shutil.rmtree(bundle / "beside" / "ddtree_runtime")

    code, said = run(bundle, install.site)
    assert (code, "every byte is as it was before" in said) == (5, True)
    assert mini.snapshot(install.site) == before


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
