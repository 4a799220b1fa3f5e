"""Zip archives: wheels, and zipped checkouts."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

from ..install.names import printable
from ..install.record import installed_path
from ..result import Unreadable
from .archive import Archive
from .damage import DAMAGE, MemberStream, reason
from .members import MAX_MEMBERS, Member, check_name, check_totals, refusal

_ENCRYPTED = 0x1
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
# Deflate cannot do better than 1:1032; text of any size stays below 1:100.
_MAX_RATIO = 500
_RATIO_FROM = 1 << 20


def open_zip(path: Path) -> Archive:
    """Open a zip file and look at every member's name and size; nothing is inflated.

    Raises:
        ArchiveError: it is damaged, or holds what no build tool writes.
    """
    shown = printable(str(path))
    try:
        opened = zipfile.ZipFile(path)
    except (*DAMAGE, OSError) as error:
        raise refusal(shown, f"cannot be read as a zip file: {reason(error)}") from error
    try:
        return _archive(opened, path, shown)
    except BaseException:
        opened.close()
        raise


def _archive(opened: zipfile.ZipFile, path: Path, shown: str) -> Archive:
    infos = opened.infolist()
    if len(infos) > MAX_MEMBERS:
        raise refusal(shown, f"holds {len(infos):,} members")
    members: dict[str, Member] = {}
    problems: list[Unreadable] = []
    changed = path.stat().st_mtime_ns
    for info in infos:
        check_name(shown, info.orig_filename)
        name = installed_path(printable(info.filename))
        if info.is_dir():
            continue
        if stat.S_ISLNK(info.external_attr >> 16):
            problems.append(Unreadable(name, "a symbolic link inside an archive"))
        elif name in members:
            raise refusal(shown, f"holds {name} twice")
        else:
            members[name] = _member(opened, info, changed)
    check_totals(shown, members.values())
    return Archive(shown, members, problems, opened.close)


def _member(opened: zipfile.ZipFile, info: zipfile.ZipInfo, changed: int) -> Member:
    return Member(
        printable(info.filename),
        info.file_size,
        f"{info.CRC:08x}-{info.file_size}-{changed}",
        lambda: MemberStream(opened.open(info)),
        _refused(info),
    )


def _refused(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & _ENCRYPTED:
        return "encrypted in the archive"
    if info.compress_type not in _METHODS:
        return f"packed with method {info.compress_type}, which wheels do not use"
    if info.file_size >= _RATIO_FROM and info.file_size > _MAX_RATIO * max(info.compress_size, 1):
        return "claims to inflate more than 500-fold"
    return ""
