"""A wheel or sdist as a target."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion

from ..install.distribution import distributions, owners
from ..install.entry_points import module_of, plugins_of
from ..install.names import printable
from ..install.owner import rank_owners, record_of
from ..install.unneeded import unneeded_modules
from ..install.version import identity_of
from ..result import Install, OtherInstall
from .archive import Archive, ArchiveSite, ArchiveSource
from .assemble import notes
from .local import is_file
from .members import refusal
from .sdist import open_tar
from .siblings import find_siblings, remarks
from .source import Target
from .wheel import open_zip

_PACKAGE = "vllm"
# One top folder, as sdists and zipped checkouts have it, and perhaps a src/ below it.
_TOP = re.compile(r"^((?:[^/]+/)?(?:src/)?)vllm/__init__\.py$")
_CPYTHON = re.compile(r"^cp(\d)(\d+)$")


@contextmanager
def packed_target(name: str, path: Path) -> Iterator[Target]:
    """Open a wheel or sdist for as long as the block runs.

    Raises:
        ArchiveError: it is damaged, hostile, or holds no vLLM.
    """
    archive = _opened(path)
    try:
        yield _target(name, path, archive)
    finally:
        archive.close()


def _opened(path: Path) -> Archive:
    shown = printable(str(path))
    try:
        if not is_file(path):
            raise refusal(shown, "is neither a file nor a folder")
        if path.stat().st_size == 0:
            raise refusal(shown, "is empty")
        if zipfile.is_zipfile(path):
            return open_zip(path)
        with path.open("rb") as handle:
            head = handle.read(512)
    except OSError as error:
        raise refusal(shown, f"cannot be read: {error.strerror}") from error
    if head.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ")) or tarfile.is_tarfile(path):
        return open_tar(path)
    raise refusal(shown, "is neither a zip nor a tar file, or is cut short")


def _target(name: str, path: Path, archive: Archive) -> Target:
    prefix = _prefix(archive)
    below = archive.below(prefix)
    # The metadata of an sdist with a src folder lies above it.
    top = archive.below(prefix.removesuffix("src/"))
    site = ArchiveSite(top)
    found = list(distributions(site))
    plugins = tuple(dict.fromkeys(plugin for dist in found for plugin in plugins_of(dist)))
    located = {plugin: _part(below, module_of(plugin)) for plugin in plugins}
    parts = {_PACKAGE, *filter(None, located.values())}
    source = ArchiveSource(below, parts)
    claims = rank_owners(owners(found, _PACKAGE), source)
    record = record_of(claims[0]) if claims else None
    beside_it = ArchiveSite(below)
    own = partial(unneeded_modules, beside_it, found)
    siblings = find_siblings(source, record, partial(_read, beside_it), own, parts)
    beside = {path for sibling in siblings for path in sibling.files}
    source = ArchiveSource(below, parts | beside)
    distribution, version = identity_of(site, claims)
    install = Install(
        distribution=distribution,
        version=version,
        location=archive.location,
        python=_python(path),
        torch=None,
        triton=None,
        editable=False,
        plugins=plugins,
        others=tuple(OtherInstall(*claim.identity(), archive.location) for claim in claims[1:]),
    )
    inside = tuple(plugin for plugin in plugins if located[plugin])
    said = tuple(notes(install, claims, record)) if path.suffix == ".whl" else ()
    said = (*said, *remarks(siblings))
    return Target(name, source, install, inside, record, said, siblings)


def _read(below: ArchiveSite, path: str) -> bytes | None:
    try:
        return below.read(path)
    except OSError:
        return None


def _prefix(archive: Archive) -> str:
    found = [match.group(1) for path in archive.members if (match := _TOP.match(path))]
    if found:
        return min(found, key=lambda prefix: (len(prefix), prefix))
    names = ArchiveSite(archive).names()
    listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    what = f"holds no vllm/__init__.py; at its top lie: {listed or 'no files at all'}"
    raise refusal(archive.location, what)


def _part(archive: Archive, module: str) -> str:
    """The package or module file of a dotted module, by its path; empty if it is not inside."""
    names = module.split(".")
    for depth in range(1, len(names) + 1):
        path = "/".join(names[:depth])
        if f"{path}/__init__.py" in archive.members:
            return path
        if f"{path}.py" in archive.members:
            return f"{path}.py"
    return ""


def _python(path: Path) -> str | None:
    """The one Python that a wheel is built for; None for an ABI that several share."""
    try:
        tags = parse_wheel_filename(path.name)[3]
    except (InvalidWheelFilename, InvalidVersion):
        return None
    # `cp38-abi3` runs on 3.8 and everything later: that names no Python.
    found = {_CPYTHON.match(tag.abi if tag.abi != "none" else tag.interpreter) for tag in tags}
    versions = {f"{match.group(1)}.{match.group(2)}" for match in found if match}
    return versions.pop() if len(versions) == 1 and None not in found else None
