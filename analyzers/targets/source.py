"""The one interface behind which an install's bytes are read, whatever carries them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol

from ..install.record import Record
from ..result import Install, Plugin, Unreadable

if TYPE_CHECKING:
    from ..scan import Seen

# `Source.read` refuses files beyond this many bytes; `Source.open` streams them.
READ_LIMIT = 64 << 20


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file of the install; `path` is posix and relative to the root of the source.

    Names that are no UTF-8 or hold control characters are written with escapes, so that a path is
    always safe to print; the source knows which file is meant.
    """

    path: str
    size: int
    # Changes when the content does: (mtime, ctime, inode) on disk, the CRC in an archive.
    stamp: str


def read_each(
    read: Callable[[str], bytes], paths: Iterable[str]
) -> Iterator[tuple[str, bytes | OSError]]:
    """`Source.read_many` of a source that gains nothing from reading several files at once."""
    for path in paths:
        try:
            yield path, read(path)
        except OSError as error:
            yield path, error


class Source(Protocol):
    """Read-only access to the files of one install.

    The root is the folder that holds the `vllm` package (a site-packages folder, a checkout, an
    archive's root), so that paths read `vllm/v1/...`.
    """

    @property
    def location(self) -> str:
        """The root, as a person would name it."""

    @property
    def independent_reads(self) -> bool:
        """Whether a forked process may read while this one does; an archive's handle is shared."""

    def files(self) -> Mapping[str, FileInfo]:
        """Every regular file of the package and of what runs with it, by path, sorted.

        That are plug-ins beside it, and the files of other packages that its edited files load.

        Folders called `__pycache__` are left out.
        """

    def problems(self) -> Sequence[Unreadable]:
        """What `files` had to leave out (folders, broken links, devices), and why."""

    def read(self, path: str) -> bytes:
        """The bytes of one file of at most `READ_LIMIT` bytes.

        Raises:
            OSError: the file cannot be read, or is larger than that; `strerror` says why.
        """

    def read_many(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        """Each path with its bytes, or with the reason why there are none; in the given order."""

    def open(self, path: str) -> BinaryIO:
        """A file of any size, to be read piece by piece and closed by the caller.

        It can seek; in an archive, seeking back inflates again from the start.

        Raises:
            OSError: the file cannot be opened; reading from it may raise the same.
        """

    def digest(self, path: str, algorithm: str) -> bytes | None:
        """The hash of one file of any size, without holding it in memory.

        None where the carrier would have to work too hard for it (a huge member of an archive).

        Raises:
            OSError: the file cannot be read.
        """


@dataclass(frozen=True, slots=True)
class Sibling:
    """A top-level package beside `vllm` that edited files of it import.

    Attributes:
        name: its top-level name.
        importers: the files of `vllm` that import it.
        files: what their imports lead to, by path in the source; empty if it is not there.
    """

    name: str
    importers: tuple[str, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A located install: what the user named, its bytes, its facts, and its plug-ins' modules."""

    name: str
    source: Source
    install: Install
    # Entry points whose code lies within the source, so that the rules can read it too.
    plugins: tuple[Plugin, ...] = ()
    # What the installer recorded; None if it did not, or if the code is a checkout.
    record: Record | None = None
    # Sentences for the report about what the facts do not say.
    notes: tuple[str, ...] = ()
    # Packages that edits of `vllm` hand control to; their files are part of the source.
    siblings: tuple[Sibling, ...] = ()
    # The folder of the metadata, where it lies at the root of the source.
    metadata: str = ""
    # What was looked at where the files are; None if they are all at hand.
    seen: Seen | None = None
