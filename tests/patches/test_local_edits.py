"""Promise 10: a site with a series of its own in the files that get hooked keeps it, both ways."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.cli.render.patch import plain
from ddtree.patches import forms, perform
from ddtree.patches.errors import AnchorError
from ddtree.patches.perform import Options
from ddtree.patches.status import FileState, State
from ddtree.patches.verify.precondition import ready
from tests.analyzers.targets import installs

from . import mini, releases

FLAG = "--allow-local-edits"
# Edits of a file with anchors, none of which is near one of them.
SERIES = {
    mini.RUNNER: ("import os\n", "import os\n\n# Of this site.\nRETRIES = 3\n"),
    mini.CONFIG: ("import copy\n", "import copy\nimport math\n"),
}


@pytest.fixture
def install(install: mini.Mini, monkeypatch: pytest.MonkeyPatch) -> mini.Mini:
    """A tiny release that this ddtree knows, with other people's edits."""
    monkeypatch.setattr(forms, "FORMS", mini.forms())
    for file, (old, new) in SERIES.items():
        install.edit(file, lambda text, old=old, new=new: text.replace(old, new, 1))  # type: ignore[misc]  # defaults
    return install


def test_the_plan_is_about_what_is_there(install: mini.Mini) -> None:
    plan = install.plan()
    assert plan.local_edits == (mini.CONFIG, mini.RUNNER)
    assert all(b"_ddtree_hook" in item.new for item in plan.edits)
    assert "RETRIES = 3\n" in plan.diff
    assert f"but for the hooks: {mini.CONFIG}, {mini.RUNNER}." in " ".join(plan.notes)
    shown = plain.render(perform.Planned(plan)).splitlines()[-1]
    assert shown == f"run: ddtree patch {install.site} --apply {FLAG} --plan {plan.id}"


def test_a_flag_is_asked_for(install: mini.Mini) -> None:
    mini.refused(install, f"edited by somebody else: {mini.CONFIG}, {mini.RUNNER}")
    actions: tuple[Callable[[], object], ...] = (
        install.apply,
        lambda: perform.bundle(install.options, install.root / "b"),
    )
    for action in actions:
        with pytest.raises(ConflictError) as caught:
            action()
        assert FLAG in caught.value.expected
        assert caught.value.hint == f"ddtree patch {install.site} {FLAG}"
        assert "reinstall" not in f"{caught.value}{caught.value.expected}{caught.value.hint}"


@pytest.mark.parametrize("journal", [True, False])
def test_exactly_these_bytes_come_back(install: mini.Mini, journal: bool) -> None:
    before = mini.snapshot(install.site)
    assert isinstance(install.apply(local_edits=True), perform.Applied)
    status = install.status()
    assert (status.state, status.repair) == (State.APPLIED, ())
    # That other people's edits are beneath is still said.
    assert status.foreign == (mini.CONFIG, mini.RUNNER)
    if not journal:
        shutil.rmtree(install.state)
        with pytest.raises(ConflictError) as caught:
            install.revert()
        assert caught.value.hint == f"ddtree patch {install.site} --revert {FLAG}"
    install.revert(local_edits=not journal)
    assert mini.snapshot(install.site) == before


def test_a_bundle_of_it_needs_no_flag(install: mini.Mini) -> None:
    before = mini.snapshot(install.site)
    folder = install.root / "bundle"
    perform.bundle(install.with_(local_edits=True), folder)
    # Its modules know real releases alone.
    known = folder / "modules/ddtree/patches/known_forms.py"
    facts = (folder / "plan.json").read_text()
    assert known.is_file()
    assert f'"{mini.CONFIG}"' in facts.partition('"local_edits"')[2]
    assert mini.snapshot(install.site) == before


def test_a_stock_install_with_a_series_needs_no_repair(install: mini.Mini) -> None:
    status = install.status()
    assert status.state == State.STOCK
    assert status.repair == ()
    with pytest.raises(ConflictError) as caught, ready(str(install.site), None):
        pass
    assert caught.value.hint == f"ddtree patch {install.site} --apply"


TOUCHED = {
    "body": ("        return logits\n", "        return logits * 2\n"),
    "decorator": ("    def _sample(", "    @staticmethod\n    def _sample("),
    "parameters": ("spec_decode_metadata):", "spec_decode_metadata, mine=None):"),
}


@pytest.mark.parametrize("how", TOUCHED)
def test_a_function_that_was_touched_is_named(install: mini.Mini, how: str) -> None:
    install.edit(mini.RUNNER, lambda text: text.replace(*TOUCHED[how]))
    for allowed in (False, True):
        with pytest.raises(AnchorError, match=r"changed GPUModelRunner\._sample,") as caught:
            install.apply(local_edits=allowed)
        assert "reinstall" not in f"{caught.value.expected}{caught.value.hint}"
        assert caught.value.hint == f"ddtree inspect host {install.site}"


def test_comments_layout_and_docstrings_touch_nothing(install: mini.Mini) -> None:
    changed = '        """Sample."""\n        # Why not.\n        return (logits)\n'
    install.edit(mini.RUNNER, lambda text: text.replace("        return logits\n", changed))
    before = mini.snapshot(install.site)
    assert isinstance(install.apply(local_edits=True), perform.Applied)
    install.revert()
    assert mini.snapshot(install.site) == before


def test_a_series_on_top_of_a_patch_is_kept(tmp_path: Path) -> None:
    """Edits that came after the hooks: these go, and the edits stay."""
    install = mini.make(tmp_path)
    wanted = (install.site / mini.CONFIG).read_text() + "# mine\n"
    mini.applied(install)
    install.edit(mini.CONFIG, lambda text: text + "# mine\n")

    status = install.status()
    assert status.files[mini.CONFIG] == FileState.CHANGED
    command = f"ddtree patch {install.site} --revert {FLAG}"
    assert status.repair == (command,)
    with pytest.raises(ConflictError, match="changed since") as caught:
        install.revert()
    assert caught.value.hint == command
    outcome = install.revert(local_edits=True)
    assert isinstance(outcome, perform.Reverted)
    assert mini.CONFIG in outcome.sentence
    assert (install.site / mini.CONFIG).read_text() == wanted
    assert install.status().state == State.STOCK


def test_an_edit_between_a_crash_and_the_next_command_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recovery takes its own lines back, and ends."""
    install = mini.make(tmp_path)
    wanted = (install.site / mini.CONFIG).read_text() + "# mine\n"

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("ddtree.patches.apply.check", crash)
        broken.setattr("ddtree.patches.apply.roll_back", crash)
        with pytest.raises(KeyboardInterrupt):
            install.apply()
    install.edit(mini.CONFIG, lambda text: text + "# mine\n")

    status = install.status()
    assert status.state == State.STOCK
    assert f"has lost its hooks alone: {mini.CONFIG}" in status.notes[0]
    assert (install.site / mini.CONFIG).read_text() == wanted


@pytest.mark.parametrize("version", ["0.20.1", "0.24.0", "0.32.0"])
def test_a_series_in_a_real_release(tmp_path: Path, version: str) -> None:
    """Every file that gets hooked is edited, and every function in it is known."""
    site = releases.copy(version, tmp_path)
    planned = perform.plan(Options(str(site)))
    assert isinstance(planned, perform.Planned)
    for item in planned.plan.edits:
        path = site / item.file
        path.unlink()
        path.write_bytes(item.old + b"\n# Of this site.\n_OF_THIS_SITE = 1\n")
    before = mini.snapshot(site / "vllm")

    options = Options(str(site), local_edits=True)
    assert isinstance(perform.apply(options), perform.Applied)
    perform.revert(Options(str(site)))
    assert mini.snapshot(site / "vllm") == before


# A lost journal, and builds that no index has


def test_a_git_checkout_is_told_git(tmp_path: Path) -> None:
    site = installs.write(tmp_path / "checkout", mini.FILES)
    installs.write(site, {"pyproject.toml": "[project]\nname='vllm'\nversion='0.32.0'\n"})
    mini.beside(tmp_path)
    install = mini.Mini(tmp_path, site)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", "-C", str(site), *identity, *words], check=True)
    before = mini.snapshot(site / "vllm")
    install.apply(force=True)
    shutil.rmtree(install.state)

    status = install.status()
    assert status.state == State.UNTRACKED
    first, second = status.repair
    assert shlex.split(first)[:5] == ["git", "-C", str(site), "checkout", "--"]
    with pytest.raises(ConflictError) as caught:
        install.revert()
    assert caught.value.hint == first
    subprocess.run(shlex.split(first), check=True)
    assert second == f"ddtree patch {site} --revert"
    install.revert()
    assert mini.snapshot(site / "vllm") == before
    assert install.status().state == State.STOCK


BUILDS = {
    "nightly": ("0.32.1.dev7+g1234567", {}),
    "local": ("0.32.0+site", {}),
    "wheel": ("0.32.0", {"direct_url.json": '{"url": "file:///x.whl", "archive_info": {}}'}),
}


@pytest.mark.parametrize("build", BUILDS)
def test_a_build_that_no_index_has_is_never_reinstalled(tmp_path: Path, build: str) -> None:
    version, more = BUILDS[build]
    install = mini.make(tmp_path, version)
    installs.write(install.site, installs.metadata("vllm", version, mini.FILES, more))
    # A release of the index comes back from there.
    other = mini.make(tmp_path / "other")
    for one, comes_back in ((install, False), (other, True)):
        mini.applied(one)
        (one.site / mini.CONFIG).unlink()
        repair = one.status().repair
        assert ("pip install" in repair[0]) == comes_back
        assert repair[1] == f"ddtree patch {one.site} --revert"
        with pytest.raises(ConflictError) as caught:
            one.revert()
        assert caught.value.hint == repair[0]
