"""What travels between the two sides; used on both, so Python 3.10 has to understand it."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from ..plan import FileEdit, Identity, Plan
from ..recipe import Recipe
from ..status import Status

# Unions of types that are evaluated came with it.
OLDEST = (3, 10)


@dataclass(frozen=True, slots=True)
class Original:
    """A file that a recipe hooks into, as it is there: path, hooks, and bytes in base64."""

    file: str
    hooks: tuple[str, ...]
    data: str


@dataclass(frozen=True, slots=True)
class Sketch:
    """A plan whose edits have still to be made."""

    target: str
    location: str
    distribution: str | None
    identity: Identity
    recipe: Recipe
    why: str
    files: tuple[Original, ...]
    notes: tuple[str, ...]
    local_edits: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: Plan) -> Sketch:
        """The sketch of a plan."""
        anchors = plan.recipe.by_file()
        files = tuple(
            Original(file, tuple(anchor.hook for anchor in anchors[file]), encoded(data))
            for file, data in plan.sources.items()
        )
        return cls(
            plan.target,
            plan.location,
            plan.distribution,
            plan.identity,
            plan.recipe,
            plan.why,
            files,
            plan.notes,
            plan.local_edits,
        )


@dataclass(frozen=True, slots=True)
class Verifiable:
    """A patched install whose interpreter may run a verification; see `precondition.Ready`."""

    python: str
    site: str
    status: Status
    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A `DdtreeError` of the other side."""

    kind: str
    found: str
    expected: str
    hint: str


@dataclass(frozen=True, slots=True)
class Said:
    """What one command on the other side has to say; all but one are None.

    Attributes:
        status: the state of the install.
        sketch: what would be changed in it.
        notes: a plan was executed, and this could not be checked.
        sentence: a patch was taken back, in this way.
        ready: it can be verified.
        trouble: nothing was done.
    """

    status: Status | None = None
    sketch: Sketch | None = None
    notes: tuple[str, ...] | None = None
    sentence: str | None = None
    ready: Verifiable | None = None
    trouble: Trouble | None = None


def encoded(data: bytes) -> str:
    """Bytes as JSON can hold them."""
    return base64.b64encode(data).decode("ascii")


def decoded(text: str) -> bytes:
    """The bytes of such a text.

    Raises:
        ValueError: it is none.
    """
    return base64.b64decode(text, validate=True)


def planned(sketch: Sketch, new: dict[str, bytes], installed: dict[str, bytes]) -> Plan:
    """The plan of a sketch, once its edits are made.

    Raises:
        ValueError: a file of the sketch is no base64.
    """
    edits = tuple(
        FileEdit(item.file, item.hooks, decoded(item.data), new[item.file]) for item in sketch.files
    )
    return Plan(
        sketch.target,
        sketch.location,
        sketch.distribution,
        sketch.identity,
        sketch.recipe,
        sketch.why,
        edits,
        installed,
        sketch.notes,
        local_edits=sketch.local_edits,
    )
