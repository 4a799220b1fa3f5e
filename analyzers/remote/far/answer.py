"""From a request to a framed reply."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ...errors import DdtreeError
from ...install.check import RecordCheck
from ...libraries import compiled_verifiers
from ...result import plain
from ...scan import Scan, Seen, scan
from ...targets.local import LocalSite
from ...targets.source import Source, Target
from ..frame import framed
from ..message import Answer, Refusal, Reply
from .installs import Found, find
from .wanted import closure, wanted


def reply(request: dict[str, Any]) -> bytes:
    """The frame that answers a request; see `ask` for its fields."""
    blobs: list[bytes] = []
    try:
        found = find(request["python"])
        if "paths" in request:
            source, paths = found.target.source, request["paths"]
            if request["around"]:
                paths = [one for one in closure(source, paths) if one not in request["known"]]
            said = _contents(source, found.root, paths, blobs)
        else:
            said = _answer(found, request["more"], blobs)
    except DdtreeError as error:
        said = Reply(refusal=Refusal(error.found, error.expected, error.hint))
    return framed(request["token"], plain(said), blobs)


def _answer(found: Found, more: list[str], blobs: list[bytes]) -> Reply:
    target = found.target
    source = target.source
    check = RecordCheck(source, target.record)
    scanned = scan(source, check)
    libraries = tuple(compiled_verifiers(source))
    differences = check.finish()
    seen = Seen(scanned, differences, libraries, _fingerprint(target, scanned, check))
    answer = Answer(
        found.facts,
        target.install,
        seen,
        {path: info.size for path, info in source.files().items()},
        tuple(source.problems()),
        target.plugins,
        target.siblings,
        target.notes,
    )
    paths = [found.facts.metadata + "/" + name for name in more if found.facts.metadata]
    carried = _contents(source, found.root, [*wanted(target, scanned.masks), *paths], blobs)
    return Reply(answer, carried.contents, carried.broken)


def _fingerprint(target: Target, scanned: Scan, check: RecordCheck) -> str:
    """A hash over every file: by its bytes where they are read anyway, else by its stamp."""
    state = hashlib.sha256(repr((target.plugins, target.notes, scanned)).encode())
    for path, info in target.source.files().items():
        known = check.digests.get(path)
        stamp = known[1] if known else _digest(target.source, path) or info.stamp
        state.update(f"{path}\0{info.size}\0{stamp}\n".encode())
    return state.hexdigest()


def _digest(source: Source, path: str) -> str | None:
    if not path.endswith(".py"):
        return None
    try:
        digest = source.digest(path, "sha256")
    except OSError:
        return None
    return digest.hex() if digest else None


def _contents(source: Source, root: Path, paths: list[str], blobs: list[bytes]) -> Reply:
    """The contents of files, by their path below the root of the source."""
    contents: dict[str, int] = {}
    broken: dict[str, str] = {}
    # The metadata lies beside the packages, and is no file of the source.
    site = LocalSite(root)
    for path in dict.fromkeys(paths):
        try:
            carried = path in source.files()
            data = source.read(path) if carried else site.read(path)
        except OSError as error:
            broken[path] = error.strerror or type(error).__name__
            continue
        contents[path] = len(data)
        blobs.append(data)
    return Reply(contents=contents, broken=broken)
