"""The only calls that change a disk; each leaves either what was there or what was asked for.

Files are written under a temporary name, synced and renamed, so that a reader never sees half of
one, and a hard link is broken, never written through.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_ACL = "system.posix_acl_access"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a file is besides its content: permission bits, owner, extended attributes."""

    mode: int
    uid: int
    gid: int
    xattrs: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def own(cls, mode: int) -> Attributes:
        """Those of something new of this user's."""
        return cls(mode, os.geteuid(), os.getegid())

    @classmethod
    def of(cls, path: Path) -> Attributes:
        """The attributes of a file or folder; a link is followed."""
        found = path.stat()
        return cls(stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, _xattrs(path))


def write_new(path: Path, data: bytes, like: Attributes) -> None:
    """Create a file that was not there, with these attributes, and sync it.

    Raises:
        OSError: it is there already, or cannot be written.
    """
    with _opened(path, _CREATE) as handle:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
        _disinherit(handle, like)
        _dress(handle, like)
        os.fsync(handle)


def make_folder(path: Path, like: Attributes) -> None:
    """Create a folder with these attributes.

    Raises:
        OSError: it is there already, or cannot be made.
    """
    path.mkdir(0o700)
    with _opened(path, _FOLDER) as handle:
        _dress(handle, Attributes(like.mode, like.uid, like.gid))


def make_link(path: Path, target: str) -> None:
    """Create a symbolic link.

    Raises:
        OSError: the path is taken, or cannot be written.
    """
    path.symlink_to(target)


def rename(old: Path, new: Path) -> None:
    """Rename, replacing a file of the new name; the folders are synced afterwards.

    Raises:
        OSError: it is not possible; then nothing has changed.
    """
    old.rename(new)
    for folder in {old.parent, new.parent}:
        sync_folder(folder)


def remove(path: Path) -> None:
    """Remove a file, a link or a whole folder, if it is there.

    Raises:
        OSError: something in it cannot be removed.
    """
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif os.path.lexists(path):
            path.unlink()
    except FileNotFoundError:
        # Somebody else was faster, which is as good.
        return


def remove_empty(path: Path) -> None:
    """Remove a folder if nothing is in it."""
    with contextlib.suppress(FileNotFoundError, OSError):
        path.rmdir()


def sync_folder(path: Path) -> None:
    """Make the entries of a folder durable.

    Raises:
        OSError: the disk failed.
    """
    with _opened(path, _FOLDER) as handle:
        try:
            os.fsync(handle)
        except OSError as error:
            # Some file systems cannot sync folders, and say so.
            if error.errno != errno.EINVAL:
                raise


def make_folders(path: Path, mode: int = 0o700) -> None:
    """Create a folder and those above it, unless they are there; for its owner alone by default.

    Raises:
        OSError: one of them cannot be made.
    """
    for folder in reversed([path, *path.parents]):
        if not folder.is_dir():
            folder.mkdir(mode, exist_ok=True)
            sync_folder(folder.parent)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """A handle; what goes wrong with it names the path, which a handle alone does not."""
    handle = os.open(path, flags, 0o600)
    try:
        yield handle
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    finally:
        os.close(handle)


def _disinherit(handle: int, like: Attributes) -> None:
    # A folder can give its own access list to every new file, also to one that takes another's
    # place and had none.
    if _ACL in dict(_items(handle)) and _ACL not in like.xattrs:
        os.removexattr(handle, _ACL)


def _dress(handle: int, like: Attributes) -> None:
    found = os.fstat(handle)
    if (found.st_uid, found.st_gid) != (like.uid, like.gid):
        os.fchown(handle, like.uid, like.gid)
    # After the owner: changing that clears the set-user-id bits.
    os.fchmod(handle, like.mode)
    present = dict(_items(handle))
    for name, value in like.xattrs.items():
        # A security module labels new files by itself, and lets nobody else do it.
        if present.get(name) != value:
            os.setxattr(handle, name, value)


def _xattrs(path: Path) -> dict[str, bytes]:
    return dict(_items(path))


def _items(target: Path | int) -> Iterator[tuple[str, bytes]]:
    if not hasattr(os, "listxattr"):
        return
    try:
        names = os.listxattr(target)
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.ENODATA):
            raise
        return
    for name in names:
        yield name, os.getxattr(target, name)
