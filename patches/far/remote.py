"""The near side: what `ddtree patch` does, for an install elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ...analyzers.cache import build
from ...analyzers.errors import ConflictError, DdtreeError, TargetError, UsageError
from ...analyzers.install.names import printable
from ...analyzers.progress import Say, silent
from ...analyzers.remote import hints
from ...analyzers.remote.ask import Opener
from ...analyzers.remote.bundle import Program
from ...analyzers.remote.exchange import PATIENCE_SECONDS, exchange
from ..bundle import write_bundle
from ..distribution import distribution
from ..errors import AnchorError, FarSideError, RecoveryPending, RolledBack
from ..perform import (
    Applied,
    Bundled,
    Options,
    Outcome,
    Planned,
    Reverted,
    left_alone,
    patched_already,
    refuse_another,
    refuse_another_way,
    refuse_local_edits,
)
from ..plan import Plan, as_plugin
from ..recipe import recipe_names
from ..status import State, Status
from ..verify.precondition import Ready
from ..way import Way
from .message import OLDEST, Said, Sketch, decoded, encoded, planned

# What is found by its name and no import statement.
_MORE = (*(f"recipes.{name}" for name in recipe_names()), "plugin.assign")
_PROGRAM = Program("patches.far.answer", tuple(f"patches.{name}" for name in _MORE), OLDEST)
# A change reads, writes and imports; `--check-imports` imports all of vLLM twice.
_CHANGE_SECONDS = 900.0
_ERRORS: dict[str, type[DdtreeError]] = {
    kind.__name__: kind
    for kind in (
        AnchorError,
        ConflictError,
        FarSideError,
        RecoveryPending,
        RolledBack,
        TargetError,
        UsageError,
    )
}
_Named = TypeVar("_Named", Plan, Status)


@dataclass(frozen=True, slots=True)
class Far:
    """An install elsewhere.

    Args:
        place: the address, as the user wrote it.
        opener: opens a way there, for each command anew.
        python: what names the environment there, if the user said it.
        options: with these a command line of ddtree reaches it, beside the address.
        shell: the words that run a command there, to be shown before hints.
        patience: seconds until an answer has to be there; None for what is usual.
        say: takes sentences that a user should see.
    """

    place: str
    opener: Opener
    python: str | None = None
    shell: tuple[str, ...] = ()
    patience: float | None = None
    options: tuple[str, ...] = ()
    say: Say = silent

    @property
    def named(self) -> tuple[str, ...]:
        """The options that belong to the address on a command line of ddtree."""
        return (*(("--python", self.python) if self.python else ()), *self.options)

    @property
    def words(self) -> tuple[str, ...]:
        """How this install is named on a command line of ddtree."""
        return (self.place, *self.named)


def plan(far: Far, options: Options) -> Outcome:
    """The plan of an unpatched install, else its status."""
    found = _looked(far, options)
    if not isinstance(found, Status):
        return Planned(found)
    refuse_another_way(found, options.way)
    return found


def apply(far: Far, options: Options) -> Outcome:
    """Patch an install; one that is patched already is left alone."""
    found = _looked(far, options)
    if isinstance(found, Status):
        return left_alone(found, options.way)
    refuse_another(found, options.plan_id)
    refuse_local_edits(found, options.local_edits)
    options.agree(found)
    new = {item.file: encoded(item.new) for item in found.edits}
    said = _asked(far, "apply", options, new=new, plan=found.id)
    if said.status is not None:
        # Somebody else was faster.
        return _named(far, said.status)
    if said.notes is None:
        raise _garbage(far)
    return Applied(found, said.notes)


def revert(far: Far, options: Options) -> Outcome:
    """Undo the patch of an install; one that is not patched is left alone."""
    found = status(far, options)
    if not isinstance(found, Status) or found.state == State.STOCK:
        return found
    options.agree(found)
    said = _asked(far, "revert", options)
    if said.status is None:
        raise _garbage(far)
    after = _named(far, said.status)
    return after if said.sentence is None else Reverted(after, said.sentence)


def status(far: Far, options: Options) -> Outcome:
    """What state an install is in."""
    said = _asked(far, "status", options)
    if said.status is None:
        raise _garbage(far)
    return _named(far, said.status)


def bundle(far: Far, options: Options, folder: Path) -> Outcome:
    """Write a folder here that patches the install there without ddtree."""
    found = _looked(far, options)
    if isinstance(found, Status):
        raise patched_already(found)
    refuse_another(found, options.plan_id)
    refuse_local_edits(found, options.local_edits)
    write_bundle(found, folder)
    return Bundled(found, str(folder))


def ready(far: Far) -> Ready:
    """A patched install whose interpreter may run a verification.

    Raises:
        ConflictError: it is not patched, or not as the patch left it.
        TargetError: it cannot be reached, or no interpreter runs it.
    """
    found = _asked(far, "ready", Options()).ready
    if found is None:
        raise _garbage(far)
    status = _named(far, found.status)
    words = shlex.join(far.words)
    return Ready(words, Path(found.python), Path(found.site), status, found.modules)


def _looked(far: Far, options: Options) -> Plan | Status:
    said = _asked(far, "plan", options)
    if said.status is not None:
        return _named(far, said.status)
    if said.sketch is None:
        raise _garbage(far)
    return _named(far, _planned(far, said.sketch, options))


def _planned(far: Far, sketch: Sketch, options: Options) -> Plan:
    # It takes half a second to import, and a status needs none of it.
    from ..edit import edited

    anchors = sketch.recipe.by_file()
    try:
        new = {
            item.file: edited(item.file, decoded(item.data), anchors[item.file])
            for item in sketch.files
        }
        made = planned(sketch, new, _beside(options))
        return as_plugin(made) if options.way == Way.PLUGIN else made
    except (ValueError, KeyError):
        raise _garbage(far) from None


def _beside(options: Options) -> dict[str, bytes]:
    return distribution(options.runtime, options.kernels)


def _asked(
    far: Far,
    action: str,
    options: Options,
    new: Mapping[str, str] | None = None,
    plan: str | None = None,
) -> Said:
    changes = action in ("apply", "revert")
    request = {
        "action": action,
        "python": far.python,
        "beside": {path: encoded(data) for path, data in _beside(options).items()},
        "new": dict(new or {}),
        "plan": plan,
        "way": options.way,
        "force": options.force,
        "local_edits": options.local_edits,
        "imports": options.imports,
        # A change goes on to its end although nobody listens any more.
        "finish": True,
    }
    patience = far.patience or (_CHANGE_SECONDS if changes else PATIENCE_SECONDS)
    try:
        with far.opener() as transport:
            said = _read(
                far, exchange(transport, far.place, far.python, request, _PROGRAM, patience).head
            )
    except KeyboardInterrupt:
        if changes:
            far.say(f"{_unknown(far, action)}; run: {_status(far)}")
        raise
    except TargetError as error:
        if changes:
            raise _lost(far, action, error) from error
        raise
    if said.trouble is not None:
        raise _error(far, said)
    return said


def _read(far: Far, head: Any) -> Said:
    try:
        said: Said = build(Said, head)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _garbage(far) from None
    return said


def _named(far: Far, found: _Named) -> _Named:
    """With the names that the user knows it by."""
    named = replace(found, target=far.place, named=far.named)
    if isinstance(named, Status):
        return replace(named, repair=tuple(_hint(far, command) for command in named.repair))
    return named


def _error(far: Far, said: Said) -> DdtreeError:
    trouble = said.trouble
    if trouble is None:
        return _garbage(far)
    kind = _ERRORS.get(trouble.kind, FarSideError)
    return kind(
        printable(f"{far.place}: {trouble.found}"),
        expected=printable(trouble.expected),
        hint=_hint(far, trouble.hint),
    )


def _hint(far: Far, hint: str) -> str:
    """A command of the other side as one that can be typed here."""
    return printable(hints.local(hint, far.place, far.python, far.options, far.shell))


def _lost(far: Far, action: str, error: TargetError) -> DdtreeError:
    return RecoveryPending(
        f"{error.found}; {_unknown(far, action)}",
        expected="an answer; the install there is as it was or as it should be, or the next "
        "command makes it so",
        hint=_status(far),
    )


def _unknown(far: Far, action: str) -> str:
    return f"whether the {action} on {far.place} was done is not known here"


def _status(far: Far) -> str:
    return shlex.join(["ddtree", "patch", *far.words, "--status"])


def _garbage(far: Far) -> DdtreeError:
    return FarSideError(
        f"{far.place} sent a reply that is not what was asked for",
        expected="the answer of the modules that were sent there",
        hint=_status(far),
    )
