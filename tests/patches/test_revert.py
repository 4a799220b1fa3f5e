"""Promises 4, 6 and 7: what a file is beside its bytes, the way back, and what an upgrade does."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError, UsageError
from ddtree.patches import apply as engine
from ddtree.patches import disk, perform
from ddtree.patches.status import FileState, State
from tests.analyzers.targets import installs

from . import mini


def applied(install: mini.Mini) -> mini.Mini:
    assert isinstance(install.apply(), perform.Applied)
    return install


# 4: mode, owner, extended attributes; links are broken, never written through


def test_attributes_are_kept_both_ways(install: mini.Mini) -> None:
    path = install.site / mini.RUNNER
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 12, 34)
    os.setxattr(path, "user.note", b"kept\0")
    wanted = disk.Attributes.of(path)
    assert wanted.xattrs == {"user.note": b"kept\0"}

    install.apply()
    assert disk.Attributes.of(path) == wanted
    install.revert()
    assert disk.Attributes.of(path) == wanted


def test_an_access_list_that_the_folder_gives_to_new_files_is_not_kept(install: mini.Mini) -> None:
    path = install.site / mini.RUNNER
    entries = [(1, 7, -1), (2, 7, 65534), (4, 5, -1), (16, 7, -1), (32, 5, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    os.setxattr(path.parent, "system.posix_acl_default", acl)
    path.parent.joinpath("new").touch()
    assert os.listxattr(path.parent / "new") == ["system.posix_acl_access"]
    wanted = disk.Attributes.of(path)

    install.apply()
    assert disk.Attributes.of(path) == wanted
    install.revert()
    assert disk.Attributes.of(path) == wanted


def test_hard_links_are_broken(install: mini.Mini, tmp_path: Path) -> None:
    path = install.site / mini.RUNNER
    other = tmp_path / "cache.py"
    other.hardlink_to(path)

    install.apply()
    assert other.read_text() == mini.FILES[mini.RUNNER]
    assert other.stat().st_nlink == 1
    install.revert()
    assert path.read_bytes() == other.read_bytes()


def linked(install: mini.Mini, cache: Path) -> tuple[Path, Path]:
    """A file of the install, which becomes a link, and what it leads to in a folder."""
    path, other = install.site / mini.RUNNER, cache / "cache.py"
    path.rename(other)
    path.symlink_to(other)
    return path, other


def test_a_linked_file_is_replaced_and_its_link_comes_back(
    install: mini.Mini, tmp_path: Path
) -> None:
    path, other = linked(install, tmp_path)
    before = mini.snapshot(install.site)

    install.apply()
    assert not path.is_symlink()
    assert other.read_text() == mini.FILES[mini.RUNNER]
    install.revert()
    assert mini.snapshot(install.site) == before


def test_a_linked_file_that_was_reinstalled_since_is_back(
    install: mini.Mini, tmp_path: Path
) -> None:
    path, other = linked(install, tmp_path)
    install.apply()
    path.unlink()
    shutil.copy(other, path)

    assert install.status().state == State.DAMAGED
    install.revert()
    assert path.read_bytes() == other.read_bytes()
    assert install.status().state == State.STOCK


def test_a_linked_site_is_resolved(install: mini.Mini, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere"
    link.symlink_to(install.site)

    install.apply(target=str(link))
    assert install.status().state == State.APPLIED
    assert link.is_symlink()
    assert (install.site / "ddtree_runtime" / "hooks.py").is_file()


def test_a_linked_package_gets_its_runtime_where_imports_look(tmp_path: Path) -> None:
    install = mini.make(tmp_path)
    real = tmp_path / "elsewhere" / "vllm"
    real.parent.mkdir()
    (install.site / "vllm").rename(real)
    (install.site / "vllm").symlink_to(real)
    before = mini.snapshot(tmp_path / "elsewhere")

    install.apply()
    assert (install.site / "ddtree_runtime").is_dir()
    assert mini.snapshot(tmp_path / "elsewhere") != before
    install.revert()
    assert mini.snapshot(tmp_path / "elsewhere") == before


@pytest.mark.parametrize("prefix", [False, True])
def test_stale_bytecode_goes_both_ways(
    install: mini.Mini, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: bool
) -> None:
    source = install.site / mini.RUNNER
    cache = source.parent / "__pycache__"
    if prefix:
        monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "pyc"))
        cache = tmp_path / "pyc" / source.parent.relative_to("/")
    names = ["gpu_model_runner.cpython-311.pyc", "gpu_model_runner.cpython-312.opt-1.pyc"]
    kept = "gpu_model_runner_mixin.cpython-311.pyc"
    for action in (install.apply, install.revert):
        installs.write(cache, dict.fromkeys([*names, kept], b"stale"))
        action()
        assert [path.name for path in cache.iterdir()] == [kept]


def test_bytecode_that_is_never_checked_does_not_run(install: mini.Mini) -> None:
    source = install.site / mini.RUNNER
    unchecked = "import py_compile, sys; py_compile.compile(sys.argv[1], invalidation_mode="
    unchecked += "py_compile.PycInvalidationMode.UNCHECKED_HASH)"
    subprocess.run([sys.executable, "-c", unchecked, str(source)], check=True)
    assert list((source.parent / "__pycache__").iterdir())
    install.apply()
    code = "import sys; sys.path.insert(0, sys.argv[1]); import ddtree_runtime.hooks as h; "
    code += "import vllm.v1.worker.gpu_model_runner; print(len(h.CALLS))"
    python = [sys.executable, "-I", "-B", "-c", code, str(install.site)]
    done = subprocess.run(python, check=True, capture_output=True, text=True)

    assert done.stdout == "5\n"


# 6: revert gives back what was there, and refuses what changed since


def test_revert_is_identical(install: mini.Mini) -> None:
    before = mini.snapshot(install.site)
    install.apply()
    assert mini.snapshot(install.site) != before
    outcome = install.revert()

    assert isinstance(outcome, perform.Reverted)
    assert mini.snapshot(install.site) == before
    assert install.status().state == State.STOCK


def test_revert_refuses_a_file_that_changed_since(install: mini.Mini) -> None:
    applied(install)
    install.edit(mini.CONFIG, lambda text: text + "# mine\n")
    before = mini.snapshot(install.site)

    with pytest.raises(ConflictError, match=r"since ddtree wrote it: vllm/config/vllm\.py"):
        install.revert()
    assert mini.snapshot(install.site) == before
    status = install.status()
    assert status.state == State.DAMAGED
    assert status.files[mini.CONFIG] == FileState.CHANGED


@pytest.mark.parametrize("change", ["edit", "add"])
def test_revert_refuses_a_runtime_that_changed_since(install: mini.Mini, change: str) -> None:
    applied(install)
    name = "hooks.py" if change == "edit" else "mine.py"
    (install.site / "ddtree_runtime" / name).write_text("# mine\n")
    before = mini.snapshot(install.site)

    with pytest.raises(ConflictError, match=f"ddtree_runtime/{name}"):
        install.revert()
    assert mini.snapshot(install.site) == before


def test_bytecode_of_the_runtime_is_no_change(install: mini.Mini) -> None:
    before = mini.snapshot(install.site)
    applied(install)
    command = [sys.executable, "-m", "compileall", "-q", str(install.site / "ddtree_runtime")]
    subprocess.run(command, check=True)

    assert install.status().state == State.APPLIED
    install.revert()
    assert mini.snapshot(install.site) == before


def test_revert_of_an_unpatched_install_changes_nothing(install: mini.Mini, state: Path) -> None:
    before = mini.snapshot(install.site)
    install.revert()
    assert mini.snapshot(install.site) == before
    assert not state.exists()


def test_revert_without_a_journal_trusts_record(install: mini.Mini, state: Path) -> None:
    before = mini.snapshot(install.site)
    applied(install)
    shutil.rmtree(state)

    assert install.status().state == State.UNTRACKED
    install.revert()
    assert mini.snapshot(install.site) == before


def test_revert_without_a_journal_and_with_foreign_edits_is_refused(
    install: mini.Mini, state: Path
) -> None:
    applied(install)
    shutil.rmtree(state)
    install.edit(mini.CONFIG, lambda text: text + "# mine\n")

    with pytest.raises(ConflictError, match=r"vllm/config/vllm\.py"):
        install.revert()


def test_a_damaged_journal_is_said_and_can_be_put_aside(install: mini.Mini, state: Path) -> None:
    before = mini.snapshot(install.site)
    applied(install)
    (path,) = state.rglob("journal.json")
    path.write_text("{")

    with pytest.raises(ConflictError, match="cannot be understood") as caught:
        install.status()
    subprocess.run(caught.value.hint.split(), check=True)
    install.revert()
    assert mini.snapshot(install.site) == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _: "null", "cannot be understood"),
        (lambda _: "[]", "cannot be understood"),
        (lambda _: '{"format": null}', "cannot be understood"),
        (lambda text: text.replace('"format": 3', '"format": 1'), "another version of ddtree"),
        (lambda text: text.replace('"applied"', '"applying"'), "not what was written"),
        (lambda text: text.replace("vllm/config", "../vllm/config"), "not what was written"),
        (lambda text: text.replace('"mode": 420', '"mode": 511'), "not what was written"),
    ],
)
def test_a_journal_that_was_edited_is_none(
    install: mini.Mini, state: Path, change: Callable[[str], str], reason: str
) -> None:
    (install.site / mini.CONFIG).chmod(0o644)
    applied(install)
    (path,) = state.rglob("journal.json")
    assert change(path.read_text()) != path.read_text()
    path.write_text(change(path.read_text()))
    before = mini.snapshot(install.root)

    with pytest.raises(ConflictError, match=reason):
        install.revert()
    assert mini.snapshot(install.root) == before


def test_originals_that_were_tampered_with_are_not_put_back(
    install: mini.Mini, state: Path
) -> None:
    before = mini.snapshot(install.site)
    applied(install)
    for path in state.rglob("old/*"):
        path.write_text("import evil\n")

    # The files without their hooks have the hash that the journal wants.
    install.revert()
    assert mini.snapshot(install.site) == before


# 7: the state is about one path, version and RECORD; an upgrade makes it "patch lost"


@pytest.mark.parametrize("version", ["0.33.0", mini.VERSION])
def test_an_upgrade_loses_the_patch(install: mini.Mini, version: str) -> None:
    applied(install)
    shutil.rmtree(install.site / "vllm")
    shutil.rmtree(install.site / f"vllm-{mini.VERSION}.dist-info")
    installs.installed(install.site, "vllm", version, mini.FILES)
    stock = {path: data for path, data in mini.snapshot(install.site).items() if "vllm" in path}

    status = install.status()
    assert status.state == State.LOST
    assert status.sentence.startswith("Patch lost: vLLM 0.32.0 was patched here")
    assert mini.snapshot(install.site).items() >= stock.items()
    install.revert()
    assert mini.snapshot(install.site) == stock
    assert install.status().state == State.STOCK


def test_a_lost_patch_can_be_applied_again(install: mini.Mini) -> None:
    applied(install)
    shutil.rmtree(install.site / f"vllm-{mini.VERSION}.dist-info")
    installs.installed(install.site, "vllm", "0.33.0", mini.FILES)

    assert "Patch lost" in install.plan().notes[0]
    applied(install)
    assert install.status().state == State.APPLIED
    install.revert()
    assert install.status().state == State.STOCK
    assert not (install.site / "ddtree_runtime").exists()


def test_old_bytes_are_not_written_over_an_upgrade_after_a_crash(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(engine, "check", crash)
        broken.setattr(engine, "roll_back", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            install.apply()
    shutil.rmtree(install.site / f"vllm-{mini.VERSION}.dist-info")
    newer = {path: text + "# newer\n" for path, text in mini.FILES.items()}
    installs.installed(install.site, "vllm", "0.33.0", newer)

    status = install.status()
    assert status.state == State.STOCK
    assert "another vLLM was installed since" in status.notes[0]
    assert (install.site / mini.RUNNER).read_text().endswith("# newer\n")
    assert not (install.site / "ddtree_runtime").exists()


def test_the_journal_is_outside_of_the_package_and_private(install: mini.Mini, state: Path) -> None:
    applied(install)
    (folder,) = state.glob("installs/*/*")

    assert (folder / "journal.json").is_file()
    assert not list(install.site.glob("vllm/**/*.json"))
    # A copy of every edited file, the runtime's list, and the journal itself.
    files = [path.stat().st_mode & 0o077 for path in folder.rglob("*")]
    assert files == [0] * (len(mini.EDITED) + 2)


def test_a_user_without_a_home_is_told_what_to_set(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("DDTREE_STATE")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(UsageError, match="has no home folder") as caught:
        install.status()
    assert "DDTREE_STATE" in caught.value.hint
