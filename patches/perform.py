"""What `ddtree patch` does, one function per flag; every one finishes interrupted changes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ..analyzers.errors import ConflictError
from ..analyzers.targets.directory import DirectorySource
from ..analyzers.targets.resolve import open_target
from ..analyzers.targets.source import Target
from . import hints
from .apply import apply as execute
from .bundle import write_bundle
from .distribution import KERNELS, RUNTIME, distribution
from .place import Place, place_of
from .plan import Edit, Plan, identity_of, make_plan, refuse_foreign
from .recover import recover
from .revert import revert as give_back
from .status import State, Status, status_of


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
        imports: also import the edited modules, which takes as long as vLLM needs for it.
        plan_id: the plan that was seen; another one is refused. None executes whatever it is.
        agree: asked before the first write; it raises if the answer is no.
        runtime: the folder of the runtime; that of this ddtree if not given.
        edit: makes the edits; with libcst if not given.
        beside: what will lie beside vLLM, where `runtime` is not at hand.
    """

    target: str | None = None
    python: Path | None = None
    force: bool = False
    imports: bool = False
    plan_id: str | None = None
    agree: Callable[[Plan | Status], None] = lambda _: None
    runtime: Path = RUNTIME
    kernels: Path = KERNELS
    edit: Edit | None = None
    beside: Mapping[str, bytes] | None = None


def plan(options: Options) -> Outcome:
    """The plan of an unpatched install, else its status."""
    with _opened(options) as opened:
        if not isinstance(opened.target.source, DirectorySource):
            return Planned(opened.plan())
        place, status = opened.examined()
        return status if status.whole else Planned(_planned(opened, status, place))


def apply(options: Options) -> Outcome:
    """Patch an install; one that is patched already is left alone."""
    with _opened(options) as opened:
        place, status = opened.examined()
        if status.whole:
            return left_alone(status)
        planned = _planned(opened, status, place)
        refuse_another(planned, options.plan_id)
        options.agree(planned)
        if status.state == State.LOST:
            give_back(opened.target, place, status, force=options.force)
        notes = execute(
            planned,
            opened.target.install,
            place,
            force=options.force,
            imports=options.imports,
        )
        return Applied(planned, notes)


def revert(options: Options) -> Outcome:
    """Undo the patch of an install; one that is not patched is left alone."""
    with _opened(options) as opened:
        place, status = opened.examined()
        if status.state == State.STOCK:
            return status
        options.agree(status)
        return Reverted(status, give_back(opened.target, place, status, force=options.force))


def status(options: Options) -> Outcome:
    """What state an install is in."""
    with _opened(options) as opened:
        return opened.examined()[1]


def bundle(options: Options, folder: Path) -> Outcome:
    """Write a folder that patches such an install without ddtree, such as in an image build."""
    with _opened(options) as opened:
        planned = _bundled(opened)
        refuse_another(planned, options.plan_id)
        write_bundle(planned, folder)
        return Bundled(planned, str(folder))


@dataclass(frozen=True, slots=True)
class _Opened:
    target: Target
    beside: Mapping[str, bytes]
    python: Path | None
    recovered: tuple[str, ...]
    edit: Edit | None

    def plan(self) -> Plan:
        return make_plan(self.target, self.beside, edit=self.edit)

    def examined(self) -> tuple[Place, Status]:
        place = place_of(self.target, self.python)
        return place, status_of(self.target, place, self.beside, self.recovered)


@contextmanager
def _opened(options: Options) -> Iterator[_Opened]:
    try:
        with _up_to_date(options) as opened:
            yield opened
    except OSError as error:
        # Once something is written, every failure has an error of its own.
        raise ConflictError(
            f"{error.strerror or error}: {error.filename or 'the install'}",
            expected="an install and a journal that can be read and locked",
            hint=hints.patch(options.target or ".", "--status"),
        ) from error


@contextmanager
def _up_to_date(options: Options) -> Iterator[_Opened]:
    beside = options.beside
    if beside is None:
        beside = distribution(options.runtime, options.kernels)
    with open_target(options.target, python=options.python) as target:
        recovered = _recovered(target, options)
        if not recovered:
            yield _Opened(target, beside, options.python, (), options.edit)
            return
    # What was read before the recovery is older than the files.
    with open_target(options.target, python=options.python) as target:
        yield _Opened(target, beside, options.python, recovered, options.edit)


def _recovered(target: Target, options: Options) -> tuple[str, ...]:
    if not isinstance(target.source, DirectorySource):
        return ()
    return recover(place_of(target, options.python), identity_of(target))


def _bundled(opened: _Opened) -> Plan:
    if not isinstance(opened.target.source, DirectorySource):
        return opened.plan()
    place, status = opened.examined()
    if status.whole:
        with_ = f", with plan {status.plan_id}" if status.plan_id else ""
        raise ConflictError(
            f"{status.location} is patched already{with_}",
            expected="an unpatched install, or a wheel of the same release",
            hint=hints.patch(status.target, "--revert"),
        )
    return _planned(opened, status, place)


def _planned(opened: _Opened, status: Status, place: Place) -> Plan:
    if status.state in (State.DAMAGED, State.UNTRACKED):
        raise ConflictError(
            f"{status.location}: {status.sentence}",
            expected="an unpatched install",
            hint=status.repair[0],
        )
    made = opened.plan()
    foreign = [file for file in status.foreign if file not in {item.file for item in made.edits}]
    notes = list(status.notes)
    if status.state == State.LOST:
        notes.append(f"{status.sentence} What is left of it is removed first.")
    if place.package != place.site / "vllm":
        notes.append(f"vllm is a link to {place.package}: all that use it are changed.")
    if foreign:
        notes.append(f"Changed by somebody else, and left alone: {', '.join(foreign)}.")
    refuse_foreign(opened.target, [file for file in status.foreign if file not in foreign])
    return replace(made, notes=(*made.notes, *notes))


def left_alone(status: Status) -> Status:
    if status.outdated:
        raise ConflictError(
            f"another ddtree patched this install (plan {status.plan_id})",
            expected="an unpatched install, or one that this ddtree patched",
            hint=hints.patch(status.target, "--revert", named=status.named),
        )
    return status


def refuse_another(planned: Plan, plan_id: str | None) -> None:
    if plan_id is not None and plan_id != planned.id:
        raise ConflictError(
            f"the plan is {planned.id} now, not {plan_id}",
            expected="the plan that was shown, and not a byte of it changed",
            hint=hints.patch(planned.target, named=planned.named),
        )
