"""How a change can fail, beyond what a reader can run into.

DdtreeError
|-- ConflictError        4    (of the readers) the target is not in the expected state
|   `-- AnchorError      4    a place to hook into is missing, ambiguous or another one
|-- RolledBack           5    a change failed, and every byte is as it was before
|-- RecoveryPending      6    an interrupted change could not be undone yet
|-- Unserved             3    (a TargetError) vLLM does not run the user's model as it is
`-- FarSideError         5    what runs in the target died, is silent or sends nonsense
"""

from __future__ import annotations

from ..analyzers.errors import ConflictError, DdtreeError, TargetError


class AnchorError(ConflictError):
    """A place to hook into is missing, ambiguous or not the function that the recipe knows."""


class RolledBack(DdtreeError):
    """A change failed, and every byte is as it was before."""

    exit_code = 5


class RecoveryPending(DdtreeError):
    """An interrupted change could not be undone yet; the next command tries again."""

    exit_code = 6


class Unserved(TargetError):
    """vLLM does not run the model as it is; `log` is what it printed last."""

    log: tuple[str, ...] = ()


class FarSideError(DdtreeError):
    """What runs in the target died, is silent or sends nonsense; `log` is what it printed last."""

    exit_code = 5
    log: tuple[str, ...] = ()
