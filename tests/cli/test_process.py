"""Real processes: pipes, terminals, signals, closed and full streams."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from .screens import ESCAPE
from .test_json import errors

ROOT = Path(__file__).parents[2]
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "DDTREE_DEBUG")
}
TERMINAL = CLEAN | {"TERM": "xterm-256color"}


def command(sample: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.cli.driver", sample, *arguments]


def run(
    sample: str, *arguments: str, environment: dict[str, str] = CLEAN
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(sample, *arguments),
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def on_a_terminal(
    columns: int, *arguments: str, environment: dict[str, str] = TERMINAL
) -> tuple[int, str]:
    """Exit code and everything that a terminal of that width received from stdout and stderr."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        command(*arguments), cwd=ROOT, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    received = b""
    # Linux reports the end of a terminal session as an input error.
    try:
        while piece := os.read(ours, 65536):
            received += piece
    except OSError:
        pass
    os.close(ours)
    return process.wait(timeout=30), received.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 200])
def test_a_terminal_gets_colours_in_its_width(columns: int) -> None:
    code, text = on_a_terminal(columns, "linear", "inspect", "host", "-q")
    assert code == 0
    assert ESCAPE.search(text)
    assert ESCAPE.sub("", text).startswith(" LINEAR   Both engine paths")
    code, text = on_a_terminal(columns, "linear", "inspect", "host")
    report = ESCAPE.sub("", text[text.index(" LINEAR ") :])
    assert max(map(len, report.split("\n"))) <= columns
    assert "drafting" in report


@pytest.mark.parametrize("name", ["NO_COLOR", "TERM"])
def test_no_colour_on_a_terminal_that_wants_none(name: str) -> None:
    environment = TERMINAL | {name: "dumb"}
    _, text = on_a_terminal(80, "linear", "inspect", "host", "-q", environment=environment)
    assert "\x1b[33" not in text
    assert ";33" not in text
    assert "LINEAR" in text


def test_a_terminal_never_sees_what_the_target_wants_it_to() -> None:
    _, text = on_a_terminal(80, "hostile", "inspect", "host")
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "\\x1b[31m" in ESCAPE.sub("", text)


def test_progress_goes_to_a_terminal_only_and_not_when_quiet() -> None:
    assert "reading" in on_a_terminal(80, "linear", "inspect", "host")[1]
    assert "reading" not in on_a_terminal(80, "linear", "inspect", "host", "-q")[1]
    assert run("linear", "inspect", "host").stderr == ""


def test_a_pipe_gets_plain_lines() -> None:
    result = run("linear", "inspect", "host")
    assert result.returncode == 0
    assert result.stdout.startswith("verdict: linear: ")
    assert "\x1b" not in result.stdout


def test_colour_can_be_forced_into_a_pipe() -> None:
    result = run("linear", "inspect", "host", environment=CLEAN | {"FORCE_COLOR": "1"})
    assert ESCAPE.search(result.stdout)


@pytest.mark.parametrize("format_", ["terminal", "json", "sarif", "markdown"])
@pytest.mark.parametrize(("required", "code"), [("linear", 0), ("tree", 1)])
def test_a_reader_that_leaves_early_changes_nothing(format_: str, required: str, code: int) -> None:
    arguments = ("inspect", "host", "--format", format_, "--require", required)
    reader, writer = os.pipe()
    # Nobody will ever read: the first write already breaks.
    os.close(reader)
    result = subprocess.run(
        command("linear", *arguments),
        cwd=ROOT,
        env=CLEAN,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (code, "")


def test_a_full_disk_is_an_error_with_a_cause() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        result = subprocess.run(
            command("linear", "inspect", "host"),
            cwd=ROOT,
            env=CLEAN,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert result.returncode == 5
    assert result.stderr.startswith("error: standard output cannot be written: No space left")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "2>/dev/full", ">&- 2>&-"])
def test_a_closed_stream_is_survived(closed: str) -> None:
    line = f'"$0" -m tests.cli.driver refuse inspect host --format json {closed}'
    result = subprocess.run(
        ["sh", "-c", line, sys.executable], cwd=ROOT, env=CLEAN, capture_output=True, check=False
    )
    assert result.returncode == 3


@pytest.mark.parametrize("arguments", ["inspect host", "inspect rules", "--version", "patch"])
def test_a_closed_stdout_is_an_error_with_a_cause(arguments: str) -> None:
    line = f'"$0" -m tests.cli.driver linear {arguments} >&-'
    result = subprocess.run(
        ["sh", "-c", line, sys.executable],
        cwd=ROOT,
        env=CLEAN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 5
    assert result.stderr.startswith("error: standard output cannot be written: it is closed\n")


def test_an_interrupt_before_anything_was_imported_shows_no_traceback(tmp_path: Path) -> None:
    """What is imported first interrupts the process, as a key pressed at once does."""
    early = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    (tmp_path / "typer.py").write_text(early, encoding="utf-8")
    paths = [str(tmp_path), *filter(None, sys.path)]
    result = subprocess.run(
        [sys.executable, "-m", "ddtree", "--version"],
        cwd=ROOT,
        env=CLEAN | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def test_ctrl_c_is_130_and_one_line() -> None:
    process = subprocess.Popen(
        command("wait", "inspect", "host"),
        cwd=ROOT,
        env=CLEAN,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


def test_a_defect_is_reported_without_a_traceback_unless_it_is_wanted() -> None:
    short = run("defect", "inspect", "host")
    assert short.returncode == 5
    assert short.stderr.startswith("error: a defect of ddtree ")
    assert "KeyError: 'defect'" in short.stderr
    assert "Traceback" not in short.stderr
    long = run("defect", "inspect", "host", environment=CLEAN | {"DDTREE_DEBUG": "1"})
    assert long.returncode == 5
    assert long.stderr.startswith("Traceback ")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_encoding_can_carry_the_output(encoding: str) -> None:
    environment = CLEAN | {"PYTHONIOENCODING": encoding, "FORCE_COLOR": "1"}
    result = subprocess.run(
        command("hostile", "inspect", "host"),
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.decode(encoding)


def test_help_loads_nothing_heavy() -> None:
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ddtree", "--help"],
        cwd=ROOT,
        env=CLEAN,
        capture_output=True,
        text=True,
        check=False,
    )
    loaded = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in result.stderr.split("\n")
    }
    assert "typer" in loaded
    heavy = {"rich", "libcst", "paramiko", "packaging", "jsonschema", "asyncio", "pygments"}
    assert not loaded & heavy


@pytest.mark.parametrize("format_", ["terminal", "json", "sarif", "markdown"])
def test_a_target_that_is_not_there(tmp_path: Path, format_: str) -> None:
    arguments = ("inspect", "host", str(tmp_path / "nowhere"), "--format", format_)
    result = subprocess.run(
        [sys.executable, "-m", "ddtree", *arguments],
        cwd=ROOT,
        env=CLEAN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 3
    assert [line.partition(": ")[0] for line in result.stderr.splitlines()] == [
        "error",
        "expected",
        "run",
    ]
    assert bool(result.stdout) == (format_ in ("json", "sarif"))


def test_a_vllm_without_an_engine_is_unknown_and_follows_the_contract(tmp_path: Path) -> None:
    package = tmp_path / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '9.9.9'\n", encoding="utf-8")
    arguments = ("inspect", "host", str(tmp_path), "--no-cache", "--require", "tree")
    result = subprocess.run(
        [sys.executable, "-m", "ddtree", *arguments, "--format", "json"],
        cwd=ROOT,
        env=CLEAN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (1, "")
    document = json.loads(result.stdout)
    assert errors("inspect-1", document) == []
    assert document["verdict"] == "unknown"
