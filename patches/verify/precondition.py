"""Before anything runs: there is an interpreter, and its vLLM is patched, whole and undisturbed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...analyzers.errors import ConflictError, TargetError
from ...analyzers.install.names import dotted_name
from ...analyzers.targets.directory import DirectorySource
from ...analyzers.targets.resolve import open_target
from ...analyzers.targets.source import Target
from .. import hints
from ..distribution import distribution
from ..gone import refuse_remnants
from ..lock import settled
from ..place import place_of
from ..recover import refuse_interrupted
from ..status import State, Status, status_of


@dataclass(frozen=True, slots=True)
class Ready:
    """A target that can be verified.

    Attributes:
        command: the TARGET as it stands on a command line.
        python: its interpreter.
        site: the real folder that holds its `vllm`.
        modules: the edited modules by their import names.
    """

    command: str
    python: Path
    site: Path
    status: Status
    modules: tuple[str, ...]


@contextmanager
def ready(
    target: str | None, python: Path | None, beside: Mapping[str, bytes] | None = None
) -> Iterator[Ready]:
    """The target, open for as long as the block runs.

    Args:
        target: what the user named.
        python: whose environment is meant, or, with a target, whose interpreter runs.
        beside: what this ddtree lays beside vLLM; read from its files if not given.

    Raises:
        TargetError: there is no such target, or no interpreter runs it.
        ConflictError: it is not patched, or not as the patch left it.
        RecoveryPending: a change of it was interrupted.
    """
    # With a TARGET, --python is only whose interpreter runs, not where vLLM is.
    where = python if target is None else None
    laid = distribution() if beside is None else beside
    with _opened(target, where) as opened:
        if not isinstance(opened.source, DirectorySource):
            raise TargetError(
                f"{opened.name} is an archive, and nothing runs in it",
                expected="an environment with an installed and patched vLLM",
                hint="ddtree verify ENVIRONMENT",
            )
        place = place_of(opened, python)

        def look(held: bool) -> Status:
            refuse_interrupted(place, opened.name)
            if not held:
                return status_of(opened, place, laid)
            # What was read before is older than the files.
            with open_target(target, python=where) as fresh:
                return status_of(fresh, place, laid)

        status = settled(place, look, lambda found: found.steady)
        command = shlex.quote(opened.name)
        _refuse_unpatched(status, opened.name)
        if place.python is None:
            raise TargetError(
                f"no interpreter belongs to {place.site}",
                expected="the interpreter that runs this vLLM",
                hint=f"ddtree verify {command} --python PATH",
            )
        modules = tuple(map(dotted_name, status.files))
        yield Ready(command, place.python, place.site, status, modules)


@contextmanager
def _opened(target: str | None, python: Path | None) -> Iterator[Target]:
    try:
        with open_target(target, python=python) as opened:
            yield opened
    except TargetError as error:
        refuse_remnants(error, target, python)
        raise


def _refuse_unpatched(status: Status, target: str) -> None:
    if status.whole:
        return
    odd = [f"{file} is {state}" for file, state in status.files.items() if state != "patched"]
    odd += [f"{file} is not as it was put there" for file in status.runtime]
    details = f" ({'; '.join(odd[:3])})" if status.state == State.DAMAGED and odd else ""
    raise ConflictError(
        f"{status.location}: {status.sentence.rstrip('.')}{details}",
        expected="a vLLM that ddtree has patched",
        hint=status.repair[0] if status.repair else hints.patch(target, "--apply"),
    )
