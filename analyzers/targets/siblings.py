"""Packages beside `vllm` to which an edit of its files hands control.

An edit is small where it only wraps functions in what another package brings. The code that then
runs lies in that package, so what its imports lead to is read as part of the engine.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..install.names import dotted_name, without_suffix
from ..install.record import Record
from .source import Sibling, Source

_PACKAGE = "vllm"
# More files than this are a library's, which wraps no engine.
MAX_FILES = 400
_LIST = rb"\([^)]*\)|(?:[^\n#;\\]|\\\r?\n)*"
_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]*(" + _LIST + rb")"
    rb"|import[ \t]+((?:[^\n#;\\]|\\\r?\n)*))",
    re.MULTILINE,
)
_COMMENT = re.compile(rb"#[^\n]*")

if TYPE_CHECKING:
    # The bytes of a path relative to where imports would look; None where nothing is.
    Read = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class _Import:
    """One imported module: how many packages up it starts, and its dotted name."""

    level: int
    name: str


class _Release:
    """The files of `vllm`: which were edited, and what the others import."""

    def __init__(self, source: Source, record: Record | None) -> None:
        self._source = source
        self._edited = set(_edited(source, record))
        self._dependencies: dict[str, bool] = {}

    def imported_by_edits(self) -> set[str]:
        """The top-level modules that edited files import."""
        return {name.partition(".")[0] for path in self._edited for name in self.imported(path)}

    def edits_importing(self, name: str) -> Iterator[str]:
        """The edited files that import a top-level module, by path."""
        for path in sorted(self._edited):
            if any(module.partition(".")[0] == name for module in self.imported(path)):
                yield path

    def imported(self, path: str) -> Iterator[str]:
        """The modules of other packages that a file imports, by dotted name."""
        try:
            data = self._source.read(path)
        except OSError:
            return
        yield from (item.name for item in imports(data) if not item.level)

    def needs(self, name: str) -> bool:
        """Whether the release imports a module without any edit: a dependency of it."""
        if name not in self._dependencies:
            unedited = (path for path in self.importing(name) if path not in self._edited)
            self._dependencies[name] = next(unedited, None) is not None
        return self._dependencies[name]

    def importing(self, name: str) -> Iterator[str]:
        """The files that import a top-level module, by path."""
        wanted = name.encode()
        statement = re.compile(
            rb"^[ \t]*(?:from|import)[ \t]+" + re.escape(wanted) + rb"\b", re.MULTILINE
        )
        paths = (path for path in self._source.files() if path.endswith(".py"))
        for path, data in self._source.read_many(paths):
            if isinstance(data, bytes) and wanted in data and statement.search(data):
                yield path


def find_siblings(
    source: Source,
    record: Record | None,
    read: Read,
    own: Callable[[], Iterable[str]],
    known: Iterable[str] = (),
) -> tuple[Sibling, ...]:
    """The packages that edited files of `vllm` import and the release does not, by name.

    What differs in size from the record was edited, and so was what it does not list. Where there
    is no record nothing tells an edit, and what nobody requires counts as an edit's.

    Args:
        source: the files of `vllm`.
        record: what its installer recorded.
        read: reads files beside `vllm`.
        own: the modules beside `vllm` that are no dependencies; asked only without a record.
        known: packages that are part of the source already.
    """
    skipped = {without_suffix(path.partition("/")[0], ".py") for path in known}
    skipped |= {_PACKAGE, ""} | sys.stdlib_module_names
    release = _Release(source, record)
    # A fork may come with a second package in the same distribution.
    ours = set(own()) if record is None else _second_packages(record)
    found = []
    for name in sorted((release.imported_by_edits() | ours) - skipped):
        if name in ours:
            importers = tuple(release.importing(name))
        else:
            importers = () if release.needs(name) else tuple(release.edits_importing(name))
        if importers:
            modules = [module for path in importers for module in release.imported(path)]
            wanted = [module for module in modules if module.partition(".")[0] == name]
            found.append(Sibling(name, importers, _closure(wanted, release, read)))
    return tuple(found)


def _edited(source: Source, record: Record | None) -> Iterator[str]:
    for path, info in source.files().items():
        if record is not None and path.startswith(f"{_PACKAGE}/") and path.endswith(".py"):
            entry = record.entries.get(path)
            if entry is None or (entry.size is not None and entry.size != info.size):
                yield path


def _second_packages(record: Record) -> set[str]:
    tops = {path.partition("/")[0] for path in record.entries if path.endswith(".py")}
    names = {without_suffix(top, ".py") for top in tops}
    return {name for name in names if name.isidentifier()}


def _closure(modules: Sequence[str], release: _Release, read: Read) -> tuple[str, ...]:
    """The files that importing some modules leads to, by path; empty where there are none."""
    found: dict[str, None] = {}
    tops = {module.partition(".")[0] for module in modules}
    waiting = [part for module in modules for part in _with_parents(module)]
    seen: set[str] = set()
    while waiting and len(found) <= MAX_FILES:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        top = module.partition(".")[0]
        if top not in tops:
            if top in sys.stdlib_module_names or top == _PACKAGE or release.needs(top):
                continue
            tops.add(top)
        path, data = _file_of(module, read)
        if data is None:
            continue
        found[path] = None
        package = module if path.endswith("/__init__.py") else module.rpartition(".")[0]
        for item in imports(data):
            waiting.extend(_with_parents(absolute(item, package)))
    return tuple(sorted(found))


def _file_of(module: str, read: Read) -> tuple[str, bytes | None]:
    stem = module.replace(".", "/")
    for path in (f"{stem}/__init__.py", f"{stem}.py"):
        data = read(path)
        if data is not None:
            return path, data
    return stem, None


def imports(data: bytes, *, surely: bool = False) -> Iterator[_Import]:
    """What the import statements of a module may load: modules, and names that may be modules.

    With `surely`, only what can be nothing but a module.
    """
    for base, listed, whole in _IMPORT.findall(data):
        for name in _names(whole):
            yield _Import(0, name)
        if base:
            module = base.lstrip(b".").decode("ascii", "replace")
            level = len(base) - len(base.lstrip(b"."))
            yield _Import(level, module)
            for name in () if surely else _names(listed):
                yield _Import(level, f"{module}.{name}" if module else name)


def _names(listed: bytes) -> Iterator[str]:
    text = _COMMENT.sub(b"", listed).replace(b"\\", b" ").strip(b"() \t\r\n")
    for part in text.decode("ascii", "replace").split(","):
        words = part.split()
        if words and words[0] != "*":
            yield words[0]


def absolute(item: _Import, package: str) -> str:
    """The dotted name of an import in a module of `package`."""
    if not item.level:
        return item.name
    parts = package.split(".")
    kept = parts[: len(parts) - item.level + 1]
    return ".".join([*kept, item.name] if item.name else kept)


def _with_parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def remarks(siblings: Iterable[Sibling]) -> Iterator[str]:
    """Sentences about what edits import: packages that are there, and such as are missing."""
    for sibling in siblings:
        if sibling.files:
            count = len(sibling.files)
            read = "1 file of it is" if count == 1 else f"{count} files of it are"
            yield (
                f"{_importing(sibling.importers)} {sibling.name}, a package beside vLLM: {read} "
                "read as part of the engine"
            )
        else:
            yield _missing(sibling.importers, sibling.name)


def missing_modules(source: Source, paths: Iterable[str]) -> Iterator[str]:
    """Sentences about modules of vLLM that some files import and that are not there."""
    there: set[str] = set()
    importers: dict[str, list[str]] = {}
    for path in sorted(paths):
        try:
            data = source.read(path)
        except OSError:
            continue
        there = there or set(_modules(source.files()))
        module = dotted_name(path)
        package = module if path.endswith("/__init__.py") else module.rpartition(".")[0]
        for name in dict.fromkeys(absolute(one, package) for one in imports(data, surely=True)):
            if name.startswith(f"{_PACKAGE}.") and name not in there:
                importers.setdefault(name, []).append(path)
    yield from (_missing(found, name) for name, found in sorted(importers.items()))


def _modules(paths: Iterable[str]) -> Iterator[str]:
    """The dotted names of all that can be imported: source, compiled modules, and folders."""
    for path in paths:
        folder, _, file = path.rpartition("/")
        yield f"{folder}/{file.partition('.')[0]}".replace("/", ".")
        while folder:
            yield folder.replace("/", ".")
            folder = folder.rpartition("/")[0]


def _importing(importers: Sequence[str]) -> str:
    first, *more = importers
    return f"{first} and {len(more)} more import" if more else f"{first} imports"


def _missing(importers: Sequence[str], name: str) -> str:
    return f"{_importing(importers)} {name}, which is missing: what depends on it cannot run"
