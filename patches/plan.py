"""What a patch would do to one install, worked out from its bytes; nothing is written.

`make_plan` reads through a `Source`, so that a plan for a wheel is made like one for a folder.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..analyzers.errors import ConflictError
from ..analyzers.install.record import Record, is_bytecode
from ..analyzers.targets.source import Source, Target
from . import hints
from .assignments import hooked
from .distribution import HOOKED, way_of, with_plugin
from .forms import refuse_touched
from .recipe import Anchor, Recipe, all_recipes, choose, missing
from .way import Way

_NO_NEWLINE = "\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file of vLLM, before and after; `file` is relative to the site."""

    file: str
    hooks: tuple[str, ...]
    old: bytes
    new: bytes

    @property
    def old_sha256(self) -> str:
        """The hash of the content that the edit expects, in hex."""
        return sha256(self.old)

    @property
    def new_sha256(self) -> str:
        """The hash of the content that the edit leaves, in hex."""
        return sha256(self.new)

    @property
    def diff(self) -> str:
        """The edit as a unified diff; bytes that are not UTF-8 are surrogates in it."""
        old, new = (
            _lines(data.decode("utf-8", "surrogateescape")) for data in (self.old, self.new)
        )
        diff = difflib.unified_diff(old, new, f"a/{self.file}", f"b/{self.file}")
        return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in diff)


@dataclass(frozen=True, slots=True)
class Identity:
    """Which bytes an install consists of, as far as its installer says."""

    version: str
    # The hash of what RECORD says about the package; empty without a RECORD.
    record: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that `apply` will do, and the id under which it was shown.

    Args:
        edits: the files that will change; none where a plug-in assigns the hooks.
        installed: the files that will lie beside vLLM, by path relative to the site.
        read: the files whose functions a plug-in hooks, as they are.
        notes: sentences about what a reader should know before saying yes.
        named: options that belong to the name of the target, where that is another machine.
        local_edits: files among `edits` that carry somebody else's edits, which stay in them.
        shown: the id under which it was shown on another machine; its own if empty.
    """

    target: str
    location: str
    distribution: str | None
    identity: Identity
    recipe: Recipe
    why: str
    edits: tuple[FileEdit, ...]
    installed: Mapping[str, bytes]
    notes: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    local_edits: tuple[str, ...] = ()
    shown: str = ""
    read: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def sources(self) -> dict[str, bytes]:
        """Every file that the plan is about, as it is."""
        return {item.file: item.old for item in self.edits} | dict(self.read)

    @property
    def way(self) -> Way:
        """How the hooks will get into vLLM."""
        return way_of(self.installed)

    @property
    def options(self) -> tuple[str, ...]:
        """What says on a command line that this plan is meant: its way, if it is not the usual."""
        return self.way.options

    @property
    def facts(self) -> list[str]:
        """What the id stands for beside the files: location, version, RECORD and recipe."""
        return [self.location, self.identity.version, self.identity.record, self.recipe.digest]

    @property
    def hashes(self) -> list[list[str]]:
        """Path, hash before and hash after, of every edited file."""
        return [[item.file, item.old_sha256, item.new_sha256] for item in self.edits]

    @property
    def beside(self) -> list[list[str]]:
        """Path and hash of every file that is laid beside vLLM."""
        return [[path, sha256(data)] for path, data in self.installed.items()]

    @property
    def id(self) -> str:
        """Twelve hex digits that change when any byte of the plan does."""
        return self.shown or plan_id(self.facts, self.hashes, self.beside)

    @property
    def diff(self) -> str:
        """All edits as one unified diff; of a plug-in, the module that assigns the hooks."""
        if self.way == Way.PLUGIN:
            return FileEdit(HOOKED, (), b"", self.installed[HOOKED]).diff
        return "".join(item.diff for item in self.edits)


def sha256(data: bytes) -> str:
    """The SHA-256 of some bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def plan_id(facts: object, hashes: object, beside: object) -> str:
    """The id of a plan with these properties of the same names."""
    return sha256(json.dumps([facts, hashes, beside]).encode())[:12]


def identity_of(target: Target) -> Identity:
    """Version and RECORD of a target; the same until something else is installed."""
    return Identity(target.install.version or "", _record_hash(target.record))


# The file's path, its bytes, and what is hooked into it; the edited bytes.
Edit = Callable[[str, bytes, Sequence[Anchor]], bytes]


def make_plan(
    target: Target,
    installed: Mapping[str, bytes],
    recipes: Sequence[Recipe] | None = None,
    edit: Edit | None = None,
    way: Way = Way.EDITS,
) -> Plan:
    """The plan for an unpatched install.

    Args:
        installed: what will lie beside vLLM, from `distribution`.
        way: how the hooks get into vLLM.
        recipes: those to choose from; all that there are if not given.
        edit: makes the edits; with libcst if not given.

    Raises:
        ConflictError: no recipe fits the version; an anchor is missing or ambiguous; a function
            that would be hooked was changed by somebody else.
    """
    try:
        recipe, why = choose(target.install.version, all_recipes() if recipes is None else recipes)
        contents = {
            file: _read(target.source, file, hooks) for file, hooks in recipe.by_file().items()
        }
        foreign = foreign_edits(contents, target.record)
        for file in foreign:
            refuse_touched(file, contents[file], recipe.by_file()[file])
        edits = _edits(contents, recipe, edit or _edit())
    except ConflictError as error:
        # Those that know no target say what kind of command helps.
        if error.hint == "ddtree inspect host":
            error.hint = hints.inspect(target.name)
        raise
    made = Plan(
        target.name,
        target.source.location,
        target.install.distribution,
        identity_of(target),
        recipe,
        why,
        edits,
        installed,
        tuple(target.notes),
        local_edits=foreign,
    )
    return made if way == Way.EDITS else as_plugin(made)


def as_plugin(made: Plan) -> Plan:
    """The plan of edits as one of a plug-in, which changes no file of vLLM.

    Raises:
        AnchorError: a function is of a kind that cannot be hooked by assignment.
    """
    anchors, version = made.recipe.by_file(), made.identity.version
    module = hooked(made.distribution, version, made.sources, anchors)
    installed = with_plugin(made.installed, module)
    return replace(made, edits=(), read=made.sources, installed=installed, local_edits=())


def _edit() -> Edit:
    # libcst takes longer to import than all the rest, and is not everywhere.
    from .edit import edited

    return edited


def _edits(contents: Mapping[str, bytes], recipe: Recipe, edit: Edit) -> tuple[FileEdit, ...]:
    return tuple(
        FileEdit(
            file,
            tuple(anchor.hook for anchor in anchors),
            contents[file],
            edit(file, contents[file], anchors),
        )
        for file, anchors in recipe.by_file().items()
    )


def foreign_edits(contents: Mapping[str, bytes], record: Record | None) -> tuple[str, ...]:
    """The files whose bytes are not what RECORD says; none where it does not say."""
    return tuple(file for file, data in contents.items() if _differs(file, data, record))


def _lines(text: str) -> list[str]:
    # `splitlines` would also split at form feeds and more, where `patch` and git do not.
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + [last] * bool(last)


def _differs(file: str, data: bytes, record: Record | None) -> bool:
    entry = record.entries.get(file) if record else None
    if entry is None or entry.algorithm is None or entry.digest is None:
        return False
    return hashlib.new(entry.algorithm, data).digest() != entry.digest


def _read(source: Source, file: str, anchors: Sequence[Anchor]) -> bytes:
    if file not in source.files():
        raise missing(anchors[0], 0)
    try:
        return source.read(file)
    except OSError as error:
        raise ConflictError(
            f"{file} cannot be read: {error.strerror}",
            expected="a file that can be read and edited",
            hint="ddtree inspect host",
        ) from error


def _record_hash(record: Record | None) -> str:
    if record is None:
        return ""
    lines = [
        f"{path}\0{entry.algorithm}\0{entry.digest.hex() if entry.digest else ''}\0{entry.size}"
        for path, entry in sorted(record.entries.items())
        if path.startswith("vllm/") and not is_bytecode(path)
    ]
    return sha256("\n".join(lines).encode())
