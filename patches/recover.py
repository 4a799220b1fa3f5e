"""Finish what an earlier command could not: every command does this first."""

from __future__ import annotations

from contextlib import nullcontext

from ..analyzers.errors import DdtreeError
from . import hints, journal
from .errors import RecoveryPending
from .journal import Journal, Phase
from .lock import locked
from .place import Place
from .plan import Identity
from .undo import interruption, live, undo


def recover(place: Place, identity: Identity, *, held: bool = False) -> tuple[str, ...]:
    """Take back every change of this install that was interrupted; sentences about what was done.

    Nothing is written if nothing was interrupted.

    Args:
        held: this process holds the lock.

    Raises:
        ConflictError: another command is at work right now.
        RecoveryPending: it cannot be taken back yet.
        KeyboardInterrupt: interrupted; the message says how things stand.
    """
    if not _interrupted(place) and not journal.leftovers(journal.install_folder(place)):
        return ()
    with nullcontext() if held else locked(place):
        # Read again: until now, another command may have been at work.
        found = _interrupted(place)
        done = tuple(_taken_back(item, place, identity) for item in found)
        journal.sweep(journal.install_folder(place))
    return done


def refuse_interrupted(place: Place, target: str) -> None:
    """Refuse an install that a command has begun to change and not finished; nothing is written.

    Args:
        place: where it is.
        target: what the user named.

    Raises:
        RecoveryPending: there is such a change.
    """
    if _interrupted(place):
        raise RecoveryPending(
            f"{place.named}: a change of it was interrupted, or is being made right now",
            expected="an install that nobody is changing",
            hint=hints.patch(target, "--status"),
        )


def _interrupted(place: Place) -> list[Journal]:
    return [item for item in journal.journals(place) if item.phase != Phase.APPLIED]


def _taken_back(item: Journal, place: Place, identity: Identity) -> str:
    what = "an interrupted revert" if item.phase == Phase.REVERTING else "an interrupted change"
    same = item.identity == identity
    try:
        kept = undo(item, place, restore=same)
        journal.drop(item)
    except KeyboardInterrupt as error:
        raise interruption(item, place) from error
    except (OSError, DdtreeError) as error:
        raise RecoveryPending(
            f"{what} (plan {item.plan_id}) cannot be taken back yet: {error}; {live(item, place)}",
            expected="an install as the interrupted command left it, and a disk to write to",
            hint=hints.patch(place.named, "--status"),
        ) from error
    how = "the original files are back" if same else "another vLLM was installed since"
    if kept:
        how += f", and what somebody changed meanwhile has lost its hooks alone: {', '.join(kept)}"
    return f"{what} (plan {item.plan_id}) was found and taken back; {how}."
