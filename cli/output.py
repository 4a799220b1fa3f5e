"""The two streams: stdout carries data, stderr carries everything else."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from ..analyzers.errors import DdtreeError


def expect_stdout() -> None:
    """Ask for a stdout before work begins whose outcome nobody would get to know.

    Raises:
        DdtreeError: the process was started with stdout closed.
    """
    # Python has no stream for a descriptor that is closed.
    if sys.stdout is None:
        raise DdtreeError(
            "standard output cannot be written: it is closed",
            expected="a writable file, pipe or terminal",
            hint="ddtree inspect host > report.txt",
        )


def emit(text: str) -> None:
    """Write data to stdout; a reader that went away (`| head`) is no error.

    Raises:
        DdtreeError: stdout cannot be written, for example because it is closed or the disk is full.
    """
    if text:
        expect_stdout()
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        _discard(sys.stdout)
    except OSError as failure:
        _discard(sys.stdout)
        raise DdtreeError(
            f"standard output cannot be written: {failure.strerror}",
            expected="a writable file, pipe or terminal with enough space",
            hint="df -h",
        ) from failure


def complain(text: str) -> None:
    """Write a message to stderr; if nobody can read it, there is nobody left to tell."""
    try:
        _write(sys.stderr, text)
    except OSError:
        _discard(sys.stderr)


def _write(stream: TextIO | None, text: str) -> None:
    # Python sets a stream to None when the process starts with the descriptor closed.
    if stream is None or not text:
        return
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _discard(stream: TextIO) -> None:
    # What is left in the buffer would fail again at exit; let it go nowhere instead.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
