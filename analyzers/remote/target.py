"""An install on another machine or in a container as a target."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import TargetError
from ..install.record import parse_record
from ..progress import Say, silent
from ..targets.source import Target
from .ask import Asked, Opener, ask
from .exchange import PATIENCE_SECONDS
from .message import Answer
from .source import RemoteSource


def remote_target(
    place: str,
    opener: Opener,
    *,
    python: str | None = None,
    record: bool = False,
    patience: float = PATIENCE_SECONDS,
    progress: Say = silent,
) -> Target:
    """Look at an install on the other side: one command there, and nothing is written.

    Args:
        place: what the user called the other side.
        opener: opens a way to it; it is closed before this returns, and opened again where files
            turn out to be missing.
        python: the interpreter, environment or folder that is meant there; without one, the only
            install that can be found.
        record: whether to carry what the installer recorded as well, which a change needs.
        patience: seconds until the whole reply has to be there.
        progress: told what is being done.

    Raises:
        TargetError: there is no such install, no reply, or none that makes sense.
    """

    def carry(paths: Sequence[str], around: bool, known: Sequence[str]) -> Asked:
        progress(f"reading more of {place}")
        request = {"paths": list(paths), "around": around, "known": list(known)}
        named = answer.facts.environment
        with opener() as transport:
            return ask(transport, place, named, request, patience)

    progress(f"asking {place}")
    with opener() as transport:
        asked = ask(transport, place, python, {"more": ["RECORD"] if record else []}, patience)
    answer = _checked(asked, place)
    source = RemoteSource(answer, asked, carry)
    listed = asked.contents.get(f"{answer.facts.metadata}/RECORD")
    return Target(
        place,
        source,
        answer.install,
        answer.plugins,
        None if listed is None else parse_record(listed),
        answer.notes,
        answer.siblings,
        answer.facts.metadata,
        answer.seen,
    )


def _checked(asked: Asked, place: str) -> Answer:
    answer = asked.reply.answer
    if answer is None or any(size < 0 for size in answer.sizes.values()):
        raise TargetError(
            f"{place} sent a reply without an install",
            expected="the reply of the probe that was sent there",
            hint="ddtree inspect host --help",
        )
    return answer
