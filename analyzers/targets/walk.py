"""Walk the folders of a source once, without following links in circles."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from ..install.names import printable
from ..result import Unreadable
from .source import FileInfo

# vLLM has 3,300 files; a link to somewhere huge must not keep the walk busy for minutes.
MAX_FILES = 50_000
_SKIPPED = "__pycache__"


class Walk:
    """What a walk found: `files` by printable path, `real` paths by the same key, `problems`."""

    def __init__(self, parts: Mapping[str, Path]) -> None:
        """Walk each part; see `add`."""
        self.files: dict[str, FileInfo] = {}
        self.real: dict[str, str] = {}
        self.problems: list[Unreadable] = []
        self._seen: set[tuple[int, int]] = set()
        self._roots: list[str] = []
        # Linked folders wait until all real ones are done, so that those keep their own paths.
        self._links: list[tuple[str, str]] = []
        self.add(parts)

    def add(self, parts: Mapping[str, Path]) -> None:
        """Walk each part: a module file or a package folder, by its posix path below the root."""
        self._roots += [os.path.realpath(path) for path in parts.values()]
        for name, path in parts.items():
            self._part(name, str(path))
        while self._links:
            self._linked_folder(*self._links.pop(0))
        self.files = dict(sorted(self.files.items()))

    def _part(self, name: str, path: str) -> None:
        try:
            found = Path(path).stat()
        except OSError as error:
            self._problem(name, _reason(error))
            return
        if stat.S_ISDIR(found.st_mode):
            self._folders(name, path)
        elif stat.S_ISREG(found.st_mode):
            self._file(name, path, found)
        else:
            self._problem(name, "neither a file nor a folder")

    def _folders(self, name: str, path: str) -> None:
        waiting = [(name, path)]
        while waiting:
            if len(self.files) > MAX_FILES:
                self._problem(name, f"the walk stopped after {MAX_FILES:,} files")
                return
            prefix, folder = waiting.pop()
            try:
                waiting.extend(self._folder(prefix, folder))
            except OSError as error:
                self._problem(prefix, _reason(error))

    def _folder(self, prefix: str, folder: str) -> list[tuple[str, str]]:
        """Take in the files of one folder and hand back the folders below it."""
        if not self._first_visit(Path(folder).stat()):
            return []
        below = []
        with os.scandir(folder) as entries:
            for entry in entries:
                name = f"{prefix}/{printable(entry.name)}"
                if entry.name == _SKIPPED:
                    continue
                if entry.is_symlink():
                    self._link(name, entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    below.append((name, entry.path))
                elif entry.is_file(follow_symlinks=False):
                    self._entry(name, entry)
                else:
                    self._problem(name, "neither a file nor a folder")
        return below

    def _entry(self, name: str, entry: os.DirEntry[str]) -> None:
        try:
            self._file(name, entry.path, entry.stat(follow_symlinks=False))
        except OSError as error:
            self._problem(name, _reason(error))

    def _link(self, name: str, path: str) -> None:
        try:
            found = Path(path).stat()
        except OSError as error:
            self._problem(name, f"a symbolic link that leads nowhere ({_reason(error)})")
            return
        if stat.S_ISDIR(found.st_mode):
            self._links.append((name, path))
        elif stat.S_ISREG(found.st_mode):
            self._file(name, path, found)
        else:
            self._problem(name, "a symbolic link to neither a file nor a folder")

    def _linked_folder(self, name: str, path: str) -> None:
        real = os.path.realpath(path)
        above = real.rstrip(os.sep) + os.sep
        if any(root == real or root.startswith(above) for root in self._roots):
            self._problem(name, "a symbolic link back to a folder that holds it")
            return
        try:
            found = Path(path).stat()
        except OSError as error:
            self._problem(name, _reason(error))
            return
        if (found.st_dev, found.st_ino) in self._seen:
            self._problem(name, "a symbolic link to a folder that is read under its own path")
        else:
            self._folders(name, path)

    def _first_visit(self, found: os.stat_result) -> bool:
        # Some file systems (FAT, some network ones) have no inode numbers.
        key = (found.st_dev, found.st_ino)
        first = key not in self._seen or not found.st_ino
        self._seen.add(key)
        return first

    def _file(self, name: str, path: str, found: os.stat_result) -> None:
        stamp = f"{found.st_mtime_ns}-{found.st_ctime_ns}-{found.st_ino}"
        self.files[name] = FileInfo(name, found.st_size, stamp)
        self.real[name] = path

    def _problem(self, name: str, reason: str) -> None:
        self.problems.append(Unreadable(name, reason))


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
