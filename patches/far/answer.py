"""Runs on the other side: from a request to a framed reply.

A request has the fields `action` (plan, status, apply, revert or ready), `python` (what names the
environment, or null), `beside` (what goes beside vLLM, by path), `new` (the edited files, by path),
`plan` (the id of the plan that was seen, or null), `way` (how the hooks get into vLLM, or null),
`force`, `local_edits` and `imports`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...analyzers.errors import DdtreeError, TargetError
from ...analyzers.remote.far.installs import find
from ...analyzers.remote.frame import framed
from ...analyzers.result import plain
from ...analyzers.targets.local import is_file
from .. import perform
from ..errors import FarSideError
from ..perform import Applied, Options, Outcome, Planned, Reverted
from ..recipe import Anchor
from ..status import Status
from ..verify.precondition import ready
from ..way import Way
from .message import Said, Sketch, Trouble, Verifiable, decoded


def reply(request: dict[str, Any]) -> bytes:
    """The frame that answers a request."""
    try:
        said = _done(request)
    except DdtreeError as error:
        kind = TargetError if isinstance(error, TargetError) else type(error)
        said = Said(trouble=Trouble(kind.__name__, error.found, error.expected, error.hint))
    return framed(request["token"], plain(said), ())


def _done(request: Mapping[str, Any]) -> Said:
    options = _options(request)
    if request["action"] == "ready":
        return Said(ready=_ready(options))
    actions: dict[str, Callable[[Options], Outcome]] = {
        "plan": perform.plan,
        "status": perform.status,
        "apply": perform.apply,
        "revert": perform.revert,
    }
    return _said(actions[request["action"]](options))


def _said(outcome: Outcome) -> Said:
    if isinstance(outcome, Planned):
        return Said(sketch=Sketch.of(outcome.plan))
    if isinstance(outcome, Applied):
        return Said(notes=outcome.notes)
    if isinstance(outcome, Reverted):
        return Said(status=outcome.status, sentence=outcome.sentence)
    if isinstance(outcome, Status):
        return Said(status=outcome)
    raise TypeError(f"{type(outcome).__name__} is nothing that was asked for")


def _options(request: Mapping[str, Any]) -> Options:
    named = Path(_environment(request["python"]))
    interpreter = is_file(named)
    new = {file: decoded(text) for file, text in request["new"].items()}
    return Options(
        None if interpreter else str(named),
        named if interpreter else None,
        force=request["force"],
        local_edits=request["local_edits"],
        imports=request["imports"],
        plan_id=request["plan"],
        edit=_edit(new),
        beside={path: decoded(text) for path, text in request["beside"].items()},
        way=Way(request["way"]) if request["way"] else None,
    )


def _environment(python: str | None) -> str:
    """What is looked at: where vLLM is, or, if there is none, what the user named."""
    try:
        return find(python).facts.environment
    except TargetError:
        if python is None or not Path(python).exists():
            raise
        # Something of a patch may be there still.
        return python


def _edit(new: Mapping[str, bytes]) -> Callable[[str, bytes, Sequence[Anchor]], bytes]:
    """Hands out what was edited on the near side; before that, the files as they are."""

    def edit(file: str, data: bytes, _: Sequence[Anchor]) -> bytes:
        return new.get(file, data)

    return edit


def _ready(options: Options) -> Verifiable:
    if options.beside is None:
        raise FarSideError("nothing was sent", expected="the runtime's files", hint="ddtree verify")
    with ready(options.target, options.python, options.beside) as found:
        return Verifiable(str(found.python), str(found.site), found.status, found.modules)
