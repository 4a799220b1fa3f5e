"""Several targets at once: what answers, and what does not, each beside the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.pool import ThreadPool
from pathlib import Path

from ..errors import DdtreeError, UsageError
from ..inspect import inspect_opened, inspect_target
from ..install.names import printable
from ..progress import Say, silent
from ..result import Report
from ..targets.source import Target
from ..transports.address import is_address, parse_address
from ..transports.settings import Settings
from .reach import reached_target

MOST_HOSTS = 1000
# Each is a connection that waits, so more than there are cores.
_MOST_AT_ONCE = 16
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """One target, and the environment that is meant there."""

    target: str
    python: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one target came to: a report, or why there is none."""

    target: str
    result: Report | DdtreeError


def inspect_hosts(
    entries: Sequence[Entry],
    settings: Settings,
    *,
    cache: bool = True,
    progress: Say = silent,
) -> tuple[Outcome, ...]:
    """Inspect all of them, in the order given; a failure of one does not hide the others.

    Other machines are asked at the same time. What they answer is examined one after the other,
    and what is the same on several of them once.
    """
    answers = _answers(entries, settings, progress)
    known: dict[tuple[str, str], Report] = {}
    outcomes = []
    for number, entry in enumerate(entries):
        progress(f"examining {entry.target}")
        try:
            answer = answers.get(number)
            if isinstance(answer, DdtreeError):
                raise answer
            if answer is None:
                python = Path(entry.python) if entry.python else None
                result = inspect_target(entry.target, python=python, cache=cache, progress=progress)
            else:
                result = _examined(answer, known, cache, progress)
            outcomes.append(Outcome(entry.target, result))
        except DdtreeError as error:
            outcomes.append(Outcome(entry.target, error))
    return tuple(outcomes)


def _examined(
    target: Target,
    known: dict[tuple[str, str], Report],
    cache: bool,
    progress: Say,
) -> Report:
    key = (repr(target.install), target.seen.fingerprint if target.seen else "")
    if key not in known:
        known[key] = inspect_opened(target, cache=cache, progress=progress)
    return replace(known[key], target=target.name)


def _answers(
    entries: Sequence[Entry], settings: Settings, progress: Say
) -> Mapping[int, Target | DdtreeError]:
    """What the other machines answer, by the number of the entry."""
    remote = [number for number, entry in enumerate(entries) if is_address(entry.target)]
    if not remote:
        return {}

    def work(number: int) -> tuple[int, Target | DdtreeError]:
        entry = entries[number]
        try:
            return number, reached_target(entry.target, settings, python=entry.python)
        except DdtreeError as error:
            return number, error

    found: dict[int, Target | DdtreeError] = {}
    # Its threads are daemons: an interrupt does not wait for hosts that hang.
    with ThreadPool(min(len(remote), _MOST_AT_ONCE)) as pool:
        for number, answer in pool.imap_unordered(work, remote):
            found[number] = answer
            progress(f"{len(found)} of {len(remote)} have answered")
        pool.close()
        # What examines the answers forks, and only where there are no threads.
        pool.join()
    return found


def read_hosts(path: Path) -> tuple[Entry, ...]:
    """The targets that a file lists, one a line, each with the environment there if need be.

    A bare name is a host behind ssh; what follows a `#` is a remark.

    Raises:
        UsageError: the file cannot be read, or a line names nothing.
    """
    shown = printable(str(path))
    try:
        with path.open("rb") as handle:
            data = handle.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _wrong(f"{shown} cannot be read: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise _wrong(f"{shown} is larger than {_MOST_BYTES >> 20} MiB")
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise _wrong(f"{shown} is no text in UTF-8") from None
    entries = [
        entry for number, line in enumerate(lines, 1) for entry in _entry(shown, number, line)
    ]
    if not entries:
        raise _wrong(f"{shown} names no target")
    if len(entries) > MOST_HOSTS:
        raise _wrong(f"{shown} names {len(entries):,} targets, more than {MOST_HOSTS:,}")
    return tuple(dict.fromkeys(entries))


def _entry(shown: str, number: int, line: str) -> list[Entry]:
    words = line.partition("#")[0].split()
    if len(words) > 2:
        raise _wrong(f"line {number} of {shown} holds more than a target and an environment")
    if not words:
        return []
    target = words[0]
    # A host's name could be a requirement's as well; in a list of hosts it is a host's.
    if not is_address(target) and not any(sign in target for sign in "/=<>~["):
        target = f"ssh://{target}"
    if is_address(target):
        try:
            parse_address(target)
        except UsageError as error:
            raise _wrong(f"line {number} of {shown}: {error.found}") from None
    return [Entry(target, *words[1:])]


def _wrong(found: str) -> UsageError:
    return UsageError(
        found,
        expected="one target a line, and behind it the environment there where there are several",
        hint="ddtree inspect host --help",
    )
