"""A plan without edits: nothing of vLLM changes, and every command knows what a plug-in is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import perform
from ddtree.patches.assignments import hooked, said_of
from ddtree.patches.distribution import DIST_INFO, HOOKED, PLUGIN, START
from ddtree.patches.errors import AnchorError
from ddtree.patches.perform import Applied, Options, Planned, Reverted
from ddtree.patches.recipe import Anchor, all_recipes, choose
from ddtree.patches.status import FileState, State, Status
from ddtree.patches.way import Way
from tests.analyzers.targets import installs

from . import mini, releases

OURS = (PLUGIN, START, "ddtree_runtime", DIST_INFO)


def options(install: mini.Mini) -> Options:
    """What asks for a plug-in."""
    return install.with_(way=Way.PLUGIN)


def applied(install: mini.Mini) -> mini.Mini:
    assert isinstance(perform.apply(options(install)), Applied)
    return install


def untouched(install: mini.Mini) -> dict[str, tuple[int, int, bytes]]:
    """Of every file of vLLM: which it is, when it was written, and what it holds."""
    files = [path for path in (install.site / "vllm").rglob("*") if path.is_file()]
    return {
        path.relative_to(install.site).as_posix(): (
            path.stat().st_ino,
            path.stat().st_mtime_ns,
            path.read_bytes(),
        )
        for path in files
    }


def test_a_plan_of_a_plug_in_edits_nothing_and_shows_what_it_hooks(install: mini.Mini) -> None:
    planned = perform.plan(options(install))

    assert isinstance(planned, Planned)
    plan = planned.plan
    assert plan.way == Way.PLUGIN
    assert plan.edits == ()
    assert {path.partition("/")[0] for path in plan.installed} == set(OURS)
    assert plan.id != install.plan().id
    added = [line for line in plan.diff.splitlines() if line.startswith("+    GPUModelRunner.")]
    assert '+    GPUModelRunner._sample = hook("v1.sample")(GPUModelRunner._sample)' in added
    assert plan.diff.startswith(f"--- a/{HOOKED}\n+++ b/{HOOKED}\n@@ -0,0")


def test_nothing_of_vllm_is_written_and_everything_is_given_back(install: mini.Mini) -> None:
    before, files = mini.snapshot(install.site), untouched(install)
    applied(install)

    assert untouched(install) == files
    assert set(mini.snapshot(install.site)) - set(before) >= {*OURS}
    status = install.status()
    assert (status.state, status.way, status.whole) == (State.APPLIED, Way.PLUGIN, True)
    assert set(status.files) == set(mini.EDITED)
    assert set(status.files.values()) == {FileState.HOOKED}

    reverted = perform.revert(install.options)
    assert isinstance(reverted, Reverted)
    assert "no file of vLLM had been changed" in reverted.sentence
    assert mini.snapshot(install.site) == before
    assert untouched(install) == files
    assert not list(install.state.rglob("*.json"))


@pytest.mark.parametrize(("first", "then"), [tuple(Way), tuple(reversed(Way))])
def test_an_install_is_patched_in_one_way_at_a_time(
    install: mini.Mini, first: Way, then: Way
) -> None:
    assert isinstance(perform.apply(install.with_(way=first)), Applied)
    before = mini.snapshot(install.site)

    for action in (perform.plan, perform.apply):
        with pytest.raises(ConflictError, match="is patched already, by") as caught:
            action(install.with_(way=then))
        assert caught.value.hint.endswith("--revert")
        # Who does not say how is told how it is.
        for same in (first, None):
            status = action(install.with_(way=same))
            assert isinstance(status, Status)
            assert status.way == first
    assert mini.snapshot(install.site) == before


def test_a_plan_that_was_shown_is_executed_and_no_other(install: mini.Mini) -> None:
    planned = perform.plan(options(install))
    assert isinstance(planned, Planned)

    with pytest.raises(ConflictError, match=f"not {planned.plan.id}") as caught:
        install.apply(plan_id=planned.plan.id)
    assert "--as" not in caught.value.hint
    with pytest.raises(ConflictError, match="not 0123456789ab") as caught:
        perform.apply(replace(options(install), plan_id="0123456789ab"))
    assert "--as plugin" in caught.value.hint
    assert isinstance(perform.apply(replace(options(install), plan_id=planned.plan.id)), Applied)


def test_a_hooked_file_that_changes_between_plan_and_apply_is_a_refusal(
    install: mini.Mini,
) -> None:
    def agree(_: object) -> None:
        install.edit(mini.RUNNER, lambda text: text + "# mine\n")

    with pytest.raises(ConflictError, match=r"gpu_model_runner\.py changed since plan"):
        perform.apply(replace(options(install), agree=agree))
    assert not (install.site / PLUGIN).exists()


def test_a_package_that_cannot_be_written_to_needs_not_be(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everywhere, so that permissions alone would refuse nothing here."""
    real, package = os.access, install.site / "vllm"

    def access(path: str | Path, mode: int) -> bool:
        return package not in (Path(path), *Path(path).parents) and real(path, mode)

    monkeypatch.setattr(os, "access", access)
    mini.refused(install, "cannot be written to")
    applied(install)


def test_the_same_anchors_are_looked_for(tmp_path: Path) -> None:
    install = mini.make(tmp_path)
    files = mini.FILES | {mini.RUNNER: mini.FILES[mini.RUNNER].replace("def _sample(", "def _s(")}
    installs.installed(install.site, "vllm", mini.VERSION, files)

    with pytest.raises(AnchorError, match=r"GPUModelRunner\._sample is defined 0 times"):
        perform.plan(options(install))


def test_a_function_of_another_kind_is_refused_by_name() -> None:
    source = b"class Runner:\n    @staticmethod\n    def sample(logits): ...\n"
    anchors = {"vllm/a.py": (Anchor("vllm/a.py", "Runner.sample", "v1.sample"),)}

    with pytest.raises(AnchorError, match=r"vllm/a\.py: Runner\.sample is a staticmethod"):
        hooked("vllm", "0.32.0", {"vllm/a.py": source}, anchors)


# What changes afterwards


def test_a_hooked_function_that_changed_is_named(install: mini.Mini) -> None:
    applied(install)
    install.edit(mini.RUNNER, lambda text: text.replace("return logits", "return logits  # mine"))

    status = install.status()

    assert (status.state, status.whole) == (State.DAMAGED, False)
    assert f"GPUModelRunner._sample of {mini.RUNNER} changed" in status.sentence
    assert status.files[mini.RUNNER] == FileState.CHANGED
    assert [command.split()[-1] for command in status.repair] == ["--revert"]
    # It takes nothing away from the site's own series.
    perform.revert(install.options)
    assert "# mine" in (install.site / mini.RUNNER).read_text()
    assert install.status().state == State.STOCK
    assert install.status().foreign == (mini.RUNNER,)


def test_a_series_of_ones_own_does_not_stand_in_the_way(tmp_path: Path) -> None:
    """Before it is applied and after, in the hooked files and beside them; no flag is needed."""
    install = mini.Mini(tmp_path, releases.copy("0.32.0", tmp_path))
    asked = Options(str(install.site), way=Way.PLUGIN)
    install.edit(mini.CONFIG, lambda text: f"# mine\n{text}")
    planned = perform.plan(asked)
    assert isinstance(planned, Planned)
    assert any(mini.CONFIG in note for note in planned.plan.notes)
    assert isinstance(perform.apply(asked), Applied)
    install.edit(mini.RUNNER, lambda text: text + "# more of mine\n")
    install.edit("vllm/logger.py", lambda text: text + "# mine\n")
    series = untouched(install)

    status = perform.apply(asked)
    assert isinstance(status, Status)
    assert (status.state, status.outdated) == (State.APPLIED, False)
    assert set(status.foreign) == {mini.CONFIG, mini.RUNNER, "vllm/logger.py"}
    perform.revert(Options(str(install.site)))
    assert untouched(install) == series


def test_a_series_that_changes_a_hooked_function_is_refused_by_its_name(tmp_path: Path) -> None:
    install = mini.Mini(tmp_path, releases.copy("0.32.0", tmp_path))
    body = "return self.sampler("
    more = f"self.mine = True\n            {body}"
    install.edit(mini.RUNNER, lambda text: text.replace(body, more, 1))

    with pytest.raises(AnchorError, match=r"somebody else changed GPUModelRunner\._sample"):
        perform.apply(Options(str(install.site), way=Way.PLUGIN))


def test_after_an_upgrade_it_is_lost_and_says_what_is_left(install: mini.Mini) -> None:
    applied(install)
    for path in install.site.glob("vllm-*.dist-info"):
        shutil.rmtree(path)
    installs.installed(install.site, "vllm", "0.33.0", mini.FILES | {"vllm/other.py": ""})

    status = install.status()
    assert status.state == State.LOST
    assert "refuses trees unless every function is as it was" in status.sentence
    assert status.repair == (f"ddtree patch {install.site} --apply --as plugin",)
    applied(install)
    assert install.status().state == State.APPLIED
    assert install.status().version == "0.33.0"
    perform.revert(install.options)
    assert not any((install.site / name).exists() for name in OURS)


def test_what_pip_removed_is_lost_and_what_is_left_of_it_damaged(install: mini.Mini) -> None:
    before = mini.snapshot(install.site)
    applied(install)
    record = (install.site / DIST_INFO / "RECORD").read_text()
    names = [line.partition(",")[0] for line in record.splitlines()]
    assert {START, HOOKED, f"{PLUGIN}/__init__.py", f"{DIST_INFO}/RECORD"} <= set(names)

    (install.site / START).unlink()
    status = install.status()
    assert (status.state, status.runtime) == (State.DAMAGED, (START,))
    for name in (name for name in names if name != START):
        (install.site / name).unlink()
    for top in (PLUGIN, "ddtree_runtime", DIST_INFO):
        shutil.rmtree(install.site / top)
    assert install.status().state == State.LOST
    perform.revert(install.options)
    assert mini.snapshot(install.site) == before
    assert install.status().state == State.STOCK


def test_a_plug_in_that_somebody_changed_is_not_removed_unseen(install: mini.Mini) -> None:
    applied(install)
    (install.site / HOOKED).write_text("# mine\n")

    status = install.status()
    assert (status.state, status.runtime) == (State.DAMAGED, (HOOKED,))
    with pytest.raises(ConflictError, match=rf"changed since ddtree wrote it: {HOOKED}"):
        perform.revert(install.options)
    assert status.repair[0] == f"rm -r {install.site / PLUGIN}"
    shutil.rmtree(install.site / PLUGIN)
    perform.revert(install.options)
    assert install.status().state == State.STOCK


def test_another_ddtree_has_to_revert_first(install: mini.Mini) -> None:
    applied(install)
    (install.root / "runtime" / "hooks.py").write_text(mini.HOOKS + "# newer\n")

    assert install.status().outdated
    with pytest.raises(ConflictError, match="another ddtree patched"):
        perform.apply(options(install))


# Without a journal, and from a bundle


def test_without_a_journal_it_is_known_by_its_files(install: mini.Mini) -> None:
    before = mini.snapshot(install.site)
    applied(install)
    shutil.rmtree(install.state)

    status = install.status()
    assert (status.state, status.whole, status.way) == (State.UNTRACKED, True, Way.PLUGIN)
    (install.site / "ddtree_runtime" / "hooks.py").write_text("# mine\n")
    assert not install.status().whole
    perform.revert(install.options)
    assert mini.snapshot(install.site) == before


def run_bundle(install: mini.Mini, *words: str) -> subprocess.CompletedProcess[str]:
    script = install.root / "bundle" / "apply.py"
    return subprocess.run(
        [sys.executable, str(script), str(install.site), *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_bundle_puts_it_there_and_takes_it_away(install: mini.Mini) -> None:
    before = mini.snapshot(install.site)
    perform.bundle(options(install), install.root / "bundle")
    files = untouched(install)
    assert mini.snapshot(install.site) == before

    assert run_bundle(install).returncode == 0
    assert untouched(install) == files
    assert install.status().whole
    assert run_bundle(install, "--revert").returncode == 0
    assert mini.snapshot(install.site) == before


def test_a_bundle_is_for_the_files_that_it_was_planned_with(install: mini.Mini) -> None:
    perform.bundle(options(install), install.root / "bundle")
    install.edit(mini.RUNNER, lambda text: text + "# another\n")
    before = mini.snapshot(install.site)

    done = run_bundle(install)
    assert (done.returncode, mini.snapshot(install.site)) == (4, before)
    assert mini.RUNNER in done.stderr


# Real releases


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(version, marks=() if version in shapes else pytest.mark.extended)
        for shapes in [("0.20.1", "0.24.0", "0.30.0", "0.32.0")]
        for version in releases.VERSIONS
    ],
)
def test_every_hook_of_a_release_is_assigned(version: str) -> None:
    tree = releases.tree(version)
    recipe, _ = choose(version, all_recipes())
    anchors = recipe.by_file()
    sources = {file: (tree / file).read_bytes() for file in anchors}

    text = hooked("vllm", version, sources, anchors)

    compile(text, HOOKED, "exec")
    functions, files = said_of(text)
    assert {(file, name) for file in functions for name in functions[file]} == {
        (anchor.file, anchor.name) for anchor in recipe.anchors
    }
    assert set(files) == set(anchors)
    assigned = [anchor.hook for anchor in recipe.anchors if f'hook("{anchor.hook}")' in str(text)]
    operators = [anchor.hook for anchor in recipe.anchors if anchor.hook not in assigned]
    assert operators == ["attention.forward"]
    assert b"attention.through_layers = True" in text


def test_the_files_of_a_real_release_stay_links_into_the_cache(tmp_path: Path) -> None:
    """As uv installs: what is shared with other environments is shared afterwards."""
    site, shared = releases.copy("0.32.0", tmp_path), releases.tree("0.32.0")
    files = [path.relative_to(site) for path in site.rglob("vllm/v1/**/*.py")]
    asked = Options(str(site), way=Way.PLUGIN)

    assert isinstance(perform.apply(asked), Applied)
    assert len(files) > 100
    assert all((site / file).samefile(shared / file) for file in files)
    perform.revert(asked)
    assert not any(os.path.lexists(site / name) for name in OURS)
