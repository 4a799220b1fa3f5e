"""Everything that can go wrong on purpose.

DdtreeError                 what was found, what was expected, one command to run next
|-- UsageError         2    the command line does not make sense
|-- TargetError        3    the target is missing, unreachable or not a vLLM
|   |-- ArchiveError  3    an archive is damaged, foreign or hostile
|   |-- FetchError    3    a requirement could not be downloaded
|   `-- UnreachableError  3    the way to another machine or into a container is closed
|       |-- HostKeyError  3    nobody vouches for the key of a host
|       `-- LoginError    3    a host lets nobody in with what there is
`-- ConflictError      4    the target is not in the state that a change expects
"""

from __future__ import annotations

from typing import ClassVar


class DdtreeError(Exception):
    """Root of all errors that a user is shown without a traceback.

    Args:
        found: what the program saw, one sentence without a full stop.
        expected: what it would have needed.
        hint: one command to run next.
    """

    exit_code: ClassVar[int] = 5

    def __init__(self, found: str, *, expected: str, hint: str) -> None:
        super().__init__(found)
        self.found = found
        self.expected = expected
        self.hint = hint


class UsageError(DdtreeError):
    """The command line does not make sense."""

    exit_code = 2


class TargetError(DdtreeError):
    """The target is missing, unreachable or not a vLLM."""

    exit_code = 3


class ArchiveError(TargetError):
    """An archive is damaged, foreign or hostile."""


class FetchError(TargetError):
    """A requirement could not be downloaded."""


class UnreachableError(TargetError):
    """The way to another machine or into a container is closed, or broke."""


class HostKeyError(UnreachableError):
    """Nobody vouches for the key of a host."""


class LoginError(UnreachableError):
    """A host lets nobody in with the keys and words there are."""


class ConflictError(DdtreeError):
    """The target is not in the state that a change expects."""

    exit_code = 4
