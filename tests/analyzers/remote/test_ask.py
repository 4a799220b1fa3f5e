"""Whatever the other side says: a clear message, no traceback, and nothing left behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ddtree.analyzers.errors import TargetError
from ddtree.analyzers.remote import ask, bundle, exchange
from ddtree.analyzers.remote.target import remote_target
from tests.analyzers import mini
from tests.analyzers.remote.places import Elsewhere
from tests.analyzers.remote.test_report import CHAIN

# The frame of `printf`, whose body is the second word.
FRAME = "printf '\\001ddtree-reply %s %012d %s\\n%s' \"$TOKEN\""


def _framed(head: str, *, contents: str = "b''") -> str:
    """A script that sends a frame of our own making."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from ddtree.analyzers.remote.frame import framed; "
        f"sys.stdout.buffer.write(framed(sys.argv[2], {head}, [{contents}]))"
    )
    root = Path(ask.__file__).resolve().parents[2] / ".src"
    return f"""exec {sys.executable} -c "{code}" {root} "$TOKEN" """


BAD = {
    "noise without end": ("head -c 3000000 /dev/zero", "more than 1 MiB without a reply"),
    "an end": ("echo welcome; echo no shell for you >&2; exit 7", "exit code 7.: no shell for you"),
    "an end in silence": ("exit 0", "ended without a reply .exit code 0"),
    "half a reply": ('"$@" | head -c 150', "ended before its reply was whole"),
    "half a header": ("printf '\\001ddtree-reply %s 0000' \"$TOKEN\"", "ended before its reply"),
    "another hash": (f"{FRAME} 4 {'0' * 64} abcd", "does not match its own hash"),
    "a huge length": (f"{FRAME} 999999999999 {'0' * 64} abcd", "more than 64 MiB"),
    "no numbers": (f"printf '\\001ddtree-reply %s {'x' * 80}\\n' \"$TOKEN\"", "makes no sense"),
    "another message": (_framed("[1, 2]"), "cannot be read"),
    "an empty message": (_framed("{}"), "cannot be read"),
    "no install": (
        _framed("dict(answer=None, contents={}, broken={}, refusal=None)"),
        "a reply without an install",
    ),
    "contents that are not there": (
        _framed("dict(answer=None, contents=dict(a=9), broken={}, refusal=None)"),
        "shorter than it says",
    ),
    "contents of a negative size": (
        _framed("dict(answer=None, contents=dict(a=-1), broken={}, refusal=None)"),
        "shorter than it says",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_reply_is_refused(name: str, tmp_path: Path) -> None:
    script, said = BAD[name]
    side = Elsewhere(tmp_path, instead=script)

    with pytest.raises(TargetError, match=said) as caught:
        remote_target("there", side.open, patience=60)

    assert caught.value.exit_code == 3
    assert "there" in caught.value.found


def test_a_reply_that_inflates_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "MOST_DATA", 1 << 16)
    side = Elsewhere(tmp_path, instead=_framed("{}", contents="bytes(1 << 24)"))

    with pytest.raises(TargetError, match="cannot be read"):
        remote_target("there", side.open)


def test_words_of_the_other_side_are_safe_to_print(tmp_path: Path) -> None:
    side = Elsewhere(tmp_path, instead="printf 'a\\033[31m\\r\\tb' >&2; exit 1")

    with pytest.raises(TargetError) as caught:
        remote_target("there", side.open)

    assert caught.value.found.endswith(r": a\x1b[31m b")


def test_a_mute_side_is_given_up_and_leaves_no_process(tmp_path: Path) -> None:
    side = Elsewhere(tmp_path, instead=f"echo $$ > {tmp_path}/pid; cat > /dev/null")

    with pytest.raises(TargetError, match=r"no whole reply within 0\.5 seconds"):
        remote_target("there", side.open, patience=0.5)

    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_noisy_shell_does_not_matter(tmp_path: Path) -> None:
    noise = "head -c 900000 /dev/zero; printf '\\001ddtree-reply 0123456789abcdef 000\\n'"
    site = mini.install(tmp_path, CHAIN)
    side = Elsewhere(tmp_path / "side", noise=f"{noise}; echo noise >&2")

    assert remote_target("there", side.open, python=str(site)).install.version == "1.0.0"


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no interpreter /no/python on there"):
        remote_target("there", Elsewhere(tmp_path).open, python="/no/python")


def test_no_python_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _only_the_path(monkeypatch)

    with pytest.raises(TargetError, match="there is no Python on there"):
        remote_target("there", Elsewhere(tmp_path, {}).open)


def test_a_python_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What such a Python does: it prints its version, and fails the test of it."""
    _only_the_path(monkeypatch)
    old = tmp_path / "old"
    old.write_text('#!/bin/sh\nif [ "$1" = -V ]; then echo Python 3.6.15; else exit 1; fi\n')
    old.chmod(0o755)

    with pytest.raises(TargetError, match=r"3\.8 or later; there is python3 \(Python 3\.6\.15\)"):
        remote_target("there", Elsewhere(tmp_path, {"python3": str(old)}).open)


def test_the_test_of_the_version_is_one() -> None:
    oldest = bundle.OLDEST

    for version in ((2, 7), (3, 7, 9), (3, 8), (3, 13, 1)):
        with pytest.raises(SystemExit) as caught:
            exec(bundle.test().replace("sys.version_info", repr(version)), {})
        assert bool(caught.value.code) is (version < oldest)


def test_a_newer_python_is_taken_where_the_first_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _only_the_path(monkeypatch)
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    site = mini.install(tmp_path, CHAIN)
    side = Elsewhere(tmp_path / "side", {"python3": str(old), "python3.11": sys.executable})

    assert remote_target("there", side.open, python=str(site)).install.version == "1.0.0"


def test_a_folder_without_vllm_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "lib/python3.12/site-packages").mkdir(parents=True)
    (tmp_path / "pyvenv.cfg").write_text("version = 3.12.1\n")

    with pytest.raises(TargetError, match=r"there: no vLLM in .*: site folders looked at: 1"):
        remote_target("there", Elsewhere(tmp_path / "side").open, python=str(tmp_path))


def _only_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine may have a Python at a usual place; the other side has none there."""
    monkeypatch.setattr(bundle, "ELSEWHERE", "python3 python3.11")
