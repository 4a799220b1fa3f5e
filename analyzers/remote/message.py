"""What the other side answers; used on both sides, so Python 3.8 has to understand it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..result import Install, Plugin, Unreadable
from ..scan import Seen
from ..targets.source import Sibling


@dataclass(frozen=True, slots=True)
class Facts:
    """Where an install is on the other side.

    Attributes:
        environment: what names the environment there, as `--python` takes it.
        interpreter: the path of its Python; empty if it has none that can be told.
        location: the folder that holds the package.
        package: the real path of the package's folder.
        metadata: the name of its `*.dist-info` folder below `location`; empty if there is none.
        writable: whether files of the package may be replaced by whoever logged in.
        servers: the processes of running vLLM servers that use it.
    """

    environment: str
    interpreter: str
    location: str
    package: str
    metadata: str
    writable: bool
    servers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """An install, all that an inspection needs of it but the contents of its files."""

    facts: Facts
    install: Install
    seen: Seen
    # The size of every file of the source by path, sorted.
    sizes: Mapping[str, int]
    problems: tuple[Unreadable, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    siblings: tuple[Sibling, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no answer; see `DdtreeError`."""

    found: str
    expected: str
    hint: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What one command on the other side says: an answer, contents, or a refusal.

    Attributes:
        answer: None where contents alone were asked for.
        contents: the sizes of the contents that follow, in their order, by path.
        broken: why a file that was asked for has no contents, by path.
        refusal: why nothing else is said.
    """

    answer: Answer | None = None
    contents: Mapping[str, int] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)
    refusal: Refusal | None = None
