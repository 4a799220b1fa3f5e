"""What `ddtree patch` does, one function per flag; every one finishes interrupted changes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ..analyzers.errors import ConflictError, TargetError
from ..analyzers.targets.directory import DirectorySource
from ..analyzers.targets.resolve import open_target
from ..analyzers.targets.source import Target
from . import hints
from .apply import apply as execute
from .distribution import KERNELS, RUNTIME, distribution
from .gone import GoneError, refuse_remnants
from .leftovers import leftovers
from .lock import locked, settled
from .place import Place, place_of
from .plan import Edit, Plan, identity_of, make_plan
from .recover import recover
from .revert import remove_remnants
from .revert import revert as give_back
from .status import State, Status, status_of
from .way import Way


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and nothing done."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class Applied:
    """A plan that was executed, and what could not be checked."""

    plan: Plan
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reverted:
    """An install that is as it was, and how that came."""

    status: Status
    sentence: str


@dataclass(frozen=True, slots=True)
class Bundled:
    """A folder with everything to execute the plan elsewhere."""

    plan: Plan
    folder: str


Outcome = Planned | Applied | Reverted | Bundled | Status


@dataclass(frozen=True, slots=True)
class Options:
    """What all functions here take.

    Args:
        target: as `open_target` takes it.
        python: the interpreter whose environment is meant.
        force: change an install although processes run from it, although it is one of several, or
            although it is a source checkout.
        local_edits: change files that somebody else edited; what was put into them stays.
        imports: also import the edited modules, which takes as long as vLLM needs for it.
        plan_id: the plan that was seen; another one is refused. None executes whatever it is.
        agree: asked before the first write; it raises if the answer is no.
        runtime: the folder of the runtime; that of this ddtree if not given.
        edit: makes the edits; with libcst if not given.
        beside: what will lie beside vLLM, where `runtime` is not at hand.
        shown: the id under which a bundle's plan was shown; its own if empty.
        known: hashes of the original files by path, from a bundle.
        way: how the hooks get into vLLM; by edits, or as the install is patched, if not given.
    """

    target: str | None = None
    python: Path | None = None
    force: bool = False
    local_edits: bool = False
    imports: bool = False
    plan_id: str | None = None
    agree: Callable[[Plan | Status], None] = lambda _: None
    runtime: Path = RUNTIME
    kernels: Path = KERNELS
    edit: Edit | None = None
    beside: Mapping[str, bytes] | None = None
    shown: str = ""
    known: Mapping[str, str] | None = None
    way: Way | None = None

    def laid(self) -> Mapping[str, bytes]:
        """What lies beside vLLM, or will."""
        return distribution(self.runtime, self.kernels) if self.beside is None else self.beside


def plan(options: Options) -> Outcome:
    """The plan of an unpatched install, else its status."""
    with _opened(options) as target:
        if not isinstance(target.source, DirectorySource):
            return Planned(_made(target, options))
        found = _found(target, options, _with_plan)
        if found.plan is not None:
            return Planned(found.plan)
        refuse_another_way(found.status, options.way)
        return found.status


def apply(options: Options) -> Outcome:
    """Patch an install; one that is patched already is left alone."""
    with _opened(options) as target:
        found = _found(target, options, _with_plan)
        if found.plan is None:
            return left_alone(found.status, options.way)
        refuse_another(found.plan, options.plan_id)
        refuse_local_edits(found.plan, options.local_edits)
        options.agree(found.plan)
        install = found.target.install
        notes = execute(
            found.plan, install, found.place, force=options.force, imports=options.imports
        )
        return Applied(found.plan, notes)


def revert(options: Options) -> Outcome:
    """Undo the patch of an install; one that is not patched is left alone."""
    try:
        with _opened(options) as target:
            found = _found(target, options, _with_status)
            if found.status.state == State.STOCK:
                return found.status
            options.agree(found.status)
            sentence = give_back(
                found.target,
                found.place,
                found.status,
                force=options.force,
                local_edits=options.local_edits,
                known=options.known,
            )
            return Reverted(found.status, sentence)
    except GoneError as gone:
        options.agree(gone.status)
        with _readable(options), locked(gone.place):
            left = leftovers(gone.place)
            sentence = remove_remnants(gone.place, left, force=options.force)
        return Reverted(gone.status, sentence)


def status(options: Options) -> Outcome:
    """What state an install is in."""
    try:
        with _opened(options) as target:
            return _found(target, options, _with_status).status
    except GoneError as gone:
        return gone.status


def bundle(options: Options, folder: Path) -> Outcome:
    """Write a folder that patches such an install without ddtree, such as in an image build."""
    with _opened(options) as target:
        if isinstance(target.source, DirectorySource):
            found = _found(target, options, _with_plan)
            if found.plan is None:
                raise patched_already(found.status)
            made = found.plan
        else:
            made = _made(target, options)
        refuse_another(made, options.plan_id)
        refuse_local_edits(made, options.local_edits)
        # What patches from a bundle, or from elsewhere, writes none.
        from .bundle import write_bundle

        write_bundle(made, folder)
        return Bundled(made, str(folder))


@dataclass(frozen=True, slots=True)
class _Found:
    """An install that was looked at; the plan is None where it is patched, or nobody asked."""

    target: Target
    place: Place
    status: Status
    plan: Plan | None = None


_Look = Callable[[Target, Place, Options, tuple[str, ...]], _Found]


@contextmanager
def _opened(options: Options) -> Iterator[Target]:
    with _readable(options):
        try:
            with open_target(options.target, python=options.python) as target:
                yield target
        except TargetError as error:
            refuse_remnants(error, options.target, options.python)
            raise


@contextmanager
def _readable(options: Options) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Once something is written, every failure has an error of its own.
        raise ConflictError(
            f"{error.strerror or error}: {error.filename or 'the install'}",
            expected="an install and a journal that can be read and locked",
            hint=hints.patch(options.target or ".", "--status"),
        ) from error


def _found(target: Target, options: Options, look: _Look) -> _Found:
    """What is found once interrupted changes are finished or taken back.

    Another ddtree may be at work: unless all is as it should be, it is looked at under the lock.
    """
    place = place_of(target, options.python)
    done: list[str] = []

    def found(held: bool) -> _Found:
        done.extend(recover(place, identity_of(target), held=held))
        if not (done or held):
            return look(target, place, options, ())
        # What was read before is older than the files; a folder needs no closing.
        with open_target(options.target, python=options.python) as fresh:
            return look(fresh, place, options, tuple(done))

    return settled(place, found, lambda one: one.status.steady)


def _with_status(target: Target, place: Place, options: Options, done: tuple[str, ...]) -> _Found:
    return _Found(target, place, status_of(target, place, options.laid(), done))


def _with_plan(target: Target, place: Place, options: Options, done: tuple[str, ...]) -> _Found:
    found = _with_status(target, place, options, done)
    if found.status.whole:
        return found
    return replace(found, plan=_planned(found, options))


def _made(target: Target, options: Options) -> Plan:
    made = make_plan(target, options.laid(), edit=options.edit, way=options.way or Way.EDITS)
    if made.local_edits:
        names = ", ".join(made.local_edits)
        note = f"Edited by somebody else, and left as they are but for the hooks: {names}."
        made = replace(made, notes=(*made.notes, note))
    return replace(made, shown=options.shown)


def _planned(found: _Found, options: Options) -> Plan:
    status, place = found.status, found.place
    if status.state in (State.DAMAGED, State.UNTRACKED):
        raise ConflictError(
            f"{status.location}: {status.sentence}",
            expected="an unpatched install",
            hint=status.repair[0],
        )
    made = _made(found.target, options)
    edited = {item.file for item in made.edits}
    foreign = [file for file in status.foreign if file not in edited]
    notes = list(status.notes)
    if status.state == State.LOST:
        notes.append(f"{status.sentence} What is left of it is removed first.")
    if status.leftovers:
        names = ", ".join(status.leftovers)
        notes.append(f"Left by a change that was killed, and removed first: {names}.")
    if place.package != place.site / "vllm":
        notes.append(f"vllm is a link to {place.package}: all that use it are changed.")
    if foreign:
        notes.append(f"Changed by somebody else, and left alone: {', '.join(foreign)}.")
    return replace(made, notes=(*made.notes, *notes))


def left_alone(status: Status, way: Way | None) -> Status:
    """The status of an install that is patched; another ddtree's patch, or way, is refused."""
    refuse_another_way(status, way)
    if status.outdated:
        raise ConflictError(
            f"another ddtree patched this install (plan {status.plan_id})",
            expected="an unpatched install, or one that this ddtree patched",
            hint=hints.patch(status.target, "--revert", named=status.named),
        )
    return status


def patched_already(status: Status) -> ConflictError:
    """The refusal to make a bundle of an install that is patched."""
    with_ = f", with plan {status.plan_id}" if status.plan_id else ""
    return ConflictError(
        f"{status.location} is patched already{with_}",
        expected="an unpatched install, or a wheel of the same release",
        hint=hints.patch(status.target, "--revert", named=status.named),
    )


def refuse_another_way(status: Status, way: Way | None) -> None:
    """Refuse a second way beside the one in which an install is patched."""
    if way not in (None, status.way):
        raise ConflictError(
            f"{status.location} is patched already, by {status.way.words}",
            expected=f"an unpatched install, to be patched by {way.words}",
            hint=hints.patch(status.target, "--revert", named=status.named),
        )


def refuse_another(planned: Plan, plan_id: str | None) -> None:
    """Refuse a plan that is not the one that was shown."""
    if plan_id is not None and plan_id != planned.id:
        raise ConflictError(
            f"the plan is {planned.id} now, not {plan_id}",
            expected="the plan that was shown, and not a byte of it changed",
            hint=hints.patch(planned.target, *planned.options, named=planned.named),
        )


def refuse_local_edits(planned: Plan, allowed: bool) -> None:
    """Refuse to put hooks into files that somebody else edited, unless a user knows of it."""
    if planned.local_edits and not allowed:
        raise ConflictError(
            f"edited by somebody else: {', '.join(planned.local_edits)}; the functions that get "
            "hooked are as a release has them",
            expected=f"{hints.LOCAL_EDITS}, which plans on these very bytes; a revert gives them "
            "back",
            hint=hints.patch(planned.target, hints.LOCAL_EDITS, named=planned.named),
        )
