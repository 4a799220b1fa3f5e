"""Containers, through stand-ins of the programs that manage them.

A stand-in knows one container, takes its arguments exactly as the real program does, and runs the
command with an environment and a folder of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ddtree.analyzers.errors import UnreachableError
from ddtree.analyzers.transports.address import parse_address
from ddtree.analyzers.transports.open import Settings, open_transport

from . import near

STAND_IN = """#!{python} -I
import json, os, subprocess, sys
name = os.path.basename(sys.argv[0])
here = os.path.dirname(os.path.abspath(sys.argv[0]))
words = sys.argv[1:]
with open(os.path.join(here, "words"), "a") as log:
    log.write(json.dumps([name, *words]) + "\\n")
def fail(text, code=1):
    print(text, file=sys.stderr)
    sys.exit(code)
if name == "sudo":
    if words[:2] != ["-n", "--"]:
        fail("usage: sudo", 1)
    if os.path.exists(os.path.join(here, "sudo-asks")):
        fail("sudo: a password is required")
    sys.exit(subprocess.run([os.path.join(here, words[2]), *words[3:]]).returncode)
if words[:2] != ["exec", "-i"]:
    fail("unknown command")
words = words[2:]
if name == "kubectl":
    namespace = container = None
    if words[0] == "-n":
        namespace, words = words[1], words[2:]
    pod, words = words[0], words[1:]
    if words[0] == "-c":
        container, words = words[1], words[2:]
    if words[0] != "--":
        fail("error: you must specify a command after --")
    words = words[1:]
    if pod != "pod-0":
        fail('Error from server (NotFound): pods "%s" not found' % pod)
    if namespace not in (None, "ml"):
        fail('Error from server (Forbidden): pods "pod-0" is forbidden')
    if container not in (None, "vllm"):
        fail("Error from server (BadRequest): container x is not valid for pod pod-0")
else:
    container, words = words[0], words[1:]
    if container == "stopped":
        fail("Error response from daemon: container 1f is not running")
    if container != "vllm-1":
        fail("Error: No such container: " + container)
if words[0] == "nowhere":
    fail("OCI runtime exec failed: exec failed: unable to start container process: "
         'exec: "nowhere": executable file not found in $PATH', 127)
sys.exit(subprocess.run(words, env={{"INSIDE": name}}, cwd="/").returncode)
"""
WORDS = ["a b", "", "'", '"', "$HOME", "`id`", "\\", "*", "a\nb", "ünï", ";", "-x", "--", "!"]


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing but stand-ins."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("docker", "podman", "kubectl", "sudo"):
        (folder / name).write_text(STAND_IN.format(python=sys.executable))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def said(bin_: Path) -> list[Any]:
    return [json.loads(line) for line in (bin_ / "words").read_text().splitlines()]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("docker://vllm-1", ["docker", "exec", "-i", "vllm-1"]),
        ("podman://vllm-1", ["podman", "exec", "-i", "vllm-1"]),
        ("kubectl://pod-0", ["kubectl", "exec", "-i", "pod-0", "--"]),
        ("kubectl://ml/pod-0", ["kubectl", "exec", "-i", "-n", "ml", "pod-0", "--"]),
        (
            "kubectl://ml/pod-0/vllm",
            ["kubectl", "exec", "-i", "-n", "ml", "pod-0", "-c", "vllm", "--"],
        ),
    ],
)
def test_a_command_in_a_container(bin_: Path, text: str, words: list[str]) -> None:
    """The program is called as it wants to be, and every word arrives as it is."""
    code = "import os, sys; print(ascii(sys.argv[1:]), os.environ['INSIDE'], sys.stdin.read(3))"
    command = [*near.python(code), *WORDS]
    with open_transport(parse_address(text), Settings()) as transport:
        running = transport.start(command, b"abc")
        assert near.output(running).decode() == f"{WORDS!a} {words[0]} abc\n"
        assert running.close() == 0
    assert said(bin_) == [words + command]


def test_the_exit_code_and_the_log_are_the_commands_own(bin_: Path) -> None:
    with open_transport(parse_address("docker://vllm-1"), Settings()) as transport:
        running = transport.start(near.python("import sys; sys.exit('not mine')"), b"")
        assert near.output(running) == b""
        assert running.close() == 1
        assert running.log() == ("not mine",)


@pytest.mark.parametrize(
    ("text", "found", "hint"),
    [
        ("docker://other", "is no container here: .*No such container", "docker ps --all"),
        ("podman://stopped", "is not running", "podman ps --all"),
        ("kubectl://other", "is not there", "kubectl get pods"),
        ("kubectl://theirs/pod-0", "may not be entered", "kubectl get pods -n theirs"),
        ("kubectl://ml/pod-0/other", "is not there", "kubectl get pods -n ml"),
    ],
)
def test_what_is_wrong_with_the_container(bin_: Path, text: str, found: str, hint: str) -> None:
    with open_transport(parse_address(text), Settings()) as transport:
        running = transport.start(near.python("print(1)"), b"")
        with pytest.raises(UnreachableError, match=found) as failure:
            near.output(running)
        running.close()
    assert failure.value.hint == hint
    assert failure.value.exit_code == 3


def test_a_command_that_the_container_lacks_is_the_callers_matter(bin_: Path) -> None:
    """It decides what else could be tried."""
    with open_transport(parse_address("docker://vllm-1"), Settings()) as transport:
        running = transport.start(["nowhere"], b"")
        assert near.output(running) == b""
        assert running.close() == 127
        assert "not found" in running.log()[-1]


@pytest.mark.parametrize("name", ["docker", "podman", "kubectl"])
def test_no_such_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    address = parse_address(f"{name}://x")
    with (
        pytest.raises(UnreachableError, match=f"there is no {name} on this machine"),
        open_transport(address, Settings()),
    ):
        pass


def test_as_root(bin_: Path) -> None:
    """It is the program that needs to be root here, not what runs in the container."""
    with open_transport(parse_address("docker://vllm-1"), Settings(sudo=True)) as transport:
        assert near.answer(transport, "print(1)") == "1\n"
    assert said(bin_)[0][:6] == ["sudo", "-n", "--", "docker", "exec", "-i"]


def test_root_is_refused(bin_: Path) -> None:
    (bin_ / "sudo-asks").touch()
    with open_transport(parse_address("docker://vllm-1"), Settings(sudo=True)) as transport:
        running = transport.start(near.python("print(1)"), b"")
        with pytest.raises(UnreachableError, match="sudo refuses on the target: a password is"):
            near.output(running)
        running.close()


def test_time_runs_out(bin_: Path) -> None:
    """The limit is that of the whole run, whatever a caller would wait."""
    with open_transport(parse_address("docker://vllm-1"), Settings(timeout=1.0)) as transport:
        running = transport.start(near.python("import sys; sys.stdin.read()"), b"")
        with pytest.raises(UnreachableError, match="docker://vllm-1 was not done after 1 seconds"):
            near.output(running)
        assert running.close() == 0


def test_nothing_of_ssh_is_imported_for_it() -> None:
    """It takes longer to import than a container takes to answer."""
    code = """
import sys
from ddtree.analyzers.transports.address import parse_address
from ddtree.analyzers.transports.open import Settings, open_transport
try:
    with open_transport(parse_address("docker://x"), Settings()):
        pass
except Exception:
    pass
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ddtree.analyzers.transports.container" in done.stdout
    assert not {"paramiko", "cryptography"} & set(done.stdout.split())
