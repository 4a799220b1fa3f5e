"""Promise 9: a live process is named, and refused without `--force`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import perform, preflight
from ddtree.patches.place import Place
from ddtree.patches.processes import processes_of
from tests.analyzers.targets import installs

from . import mini, users

commons = users.commons


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
        mini.refused(
            live, rf"{process.pid} \({prefix}/bin/python -S .*was started as", target=str(prefix)
        )
        assert isinstance(live.apply(target=str(prefix), force=True), perform.Applied)
        with pytest.raises(ConflictError, match=str(process.pid)):
            live.revert(target=str(prefix))
        process.communicate(b"\n")
    # Another environment is none of its business.
    assert processes_of(mini.place_of(install)).running == ()


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
        mini.refused(live, rf"{process.pid} .*was started as {names[how]}", target=str(prefix))
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
        mini.refused(install, rf"{process.pid} .*has {install.site} on its PYTHONPATH")
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
        mini.refused(install, rf"{process.pid} .*has files of {install.site}/vllm loaded")
        process.communicate(b"\n")


@contextmanager
def daemon(words: Sequence[str], cwd: Path) -> Iterator[int]:
    """A process of this user's with any command line; its number."""
    program = shutil.which("sleep")
    assert program is not None
    with subprocess.Popen([words[0], "60", *words[1:]], executable=program, cwd=cwd) as process:
        try:
            yield process.pid
        finally:
            process.terminate()


def environment(root: Path) -> tuple[mini.Mini, Place]:
    """A user's own environment with a tiny vLLM."""
    site = installs.environment(root / "env")
    made = mini.make(root, site=site)
    users.given(root)
    return mini.Mini(root, root / "env"), mini.place_of(made, root / "env")


def listed(root: Path, *pids: int) -> Path:
    """These processes alone, of all that are on a machine on which others come and go."""
    proc = root / "proc"
    proc.mkdir()
    for pid in (1, *pids):
        (proc / str(pid)).symlink_to(f"/proc/{pid}")
    return proc


DAEMONS = (
    ("sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups",),
    ("nginx: master process /usr/sbin/nginx -g daemon off;",),
    ("/proc/1/root/usr/bin/python3",),
    ("bin/python",),
)


def test_root_s_daemons_are_counted_and_hinder_nobody(
    commons: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever they call themselves, and wherever they stand."""
    install, place = environment(commons)
    monkeypatch.setenv("DDTREE_STATE", str(install.state))
    # Their own relative names are no names here.
    monkeypatch.chdir(commons / "env")
    before = mini.snapshot(commons / "env")
    closed = commons / "closed"
    closed.mkdir(mode=0o700)
    installs.write(closed, {"app/main.py": "input()\n"})
    with ExitStack() as running:
        pids = [running.enter_context(daemon(words, closed)) for words in DAEMONS]
        command = [sys.executable, "app/main.py"]
        main = running.enter_context(subprocess.Popen(command, cwd=closed, stdin=subprocess.PIPE))
        running.callback(main.communicate, b"\n")
        proc = listed(commons, *pids, main.pid)
        monkeypatch.setattr(preflight, "processes_of", partial(processes_of, proc=proc))

        seen = users.by(lambda: processes_of(place, proc))
        # The first process is root's, too.
        assert (seen.running, seen.unseen) == ((), 6)
        applied = users.by(install.apply)
        assert isinstance(applied, perform.Applied)
        assert "6 processes of other users could not be looked at." in applied.notes
        reverted = users.by(install.revert)
        assert isinstance(reverted, perform.Reverted)
        assert reverted.sentence.endswith(" 6 processes of other users could not be looked at.")
    assert mini.snapshot(commons / "env") == before


def test_another_user_s_engine_is_counted(commons: Path) -> None:
    """Its title tells nothing, and its memory is its own."""
    _, place = environment(commons)
    library = place.package / "_C.so"
    library.write_bytes(b"\0" * 4096)
    code = "import mmap, sys; f = open(sys.argv[1]); m = mmap.mmap(f.fileno(), 0, prot=1)\n"
    code += "print(1, flush=True); input()"
    command = ["VLLM::EngineCore", "-S", "-c", code, str(library)]
    with subprocess.Popen(
        command, executable=sys.executable, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        proc = listed(commons, process.pid)
        assert [one.pid for one in processes_of(place, proc).running] == [process.pid]
        seen = users.by(lambda: processes_of(place, proc))
        process.communicate(b"\n")
    assert (seen.running, seen.unseen) == ((), 2)


def test_what_cannot_even_be_listed_is_said(install: mini.Mini, tmp_path: Path) -> None:
    """As where `/proc` shows every user his own processes alone, or is not there."""
    seen = processes_of(mini.place_of(install), tmp_path)
    assert (seen.running, seen.unseen) == ((), None)
    assert seen.remark == "The processes of other users could not be looked at."
