"""Whether those who run a server can read what lies beside its vLLM."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_ACL = "system.posix_acl_access"
_USER, _GROUP, _OTHER = stat.S_IRUSR, stat.S_IRGRP, stat.S_IROTH
# From the bit that reads a file to the one that passes through a folder.
_TO_PASS = 2


def is_hidden(path: Path, package: Path) -> bool:
    """Whether somebody who can read a package may not be able to read, or to enter, a path.

    Judged by owners and modes, as no other user can be asked; an access list is believed. Nobody
    can tell who runs a server, and root reads everything.
    """
    try:
        found = path.stat()
        like = package if stat.S_ISDIR(found.st_mode) else package / "__init__.py"
        known = like.stat()
        listed = hasattr(os, "listxattr") and _ACL in os.listxattr(path)
    except PermissionError:
        return True
    except OSError:
        return False
    passes = stat.S_ISDIR(found.st_mode)
    if listed:
        return False
    owner = _USER if found.st_uid == known.st_uid else _OTHER
    group = _GROUP if found.st_gid == known.st_gid else _OTHER
    needed = ((_USER, owner), (_GROUP, group), (_OTHER, _OTHER))
    return any(
        known.st_mode & has and not _may(found.st_mode, needs, passes) for has, needs in needed
    )


def _may(mode: int, bit: int, passes: bool) -> bool:
    return bool(mode & bit) and (not passes or bool(mode & bit >> _TO_PASS))
