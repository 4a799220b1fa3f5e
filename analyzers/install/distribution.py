"""Distributions, found by the modules that they own rather than by what they are called."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from .names import printable
from .site import Site, text_of

# The modules whose owners the report names.
_MODULES = ("vllm", "torch", "triton")
_KINDS = (".dist-info", ".egg-info")
_PACKAGES = re.compile(r'^"?([^\W\d]\w*)/__init__\.py,', re.MULTILINE)
_HEADER = re.compile(r"^(Name|Version):[ \t]*(\S.*?)[ \t]*\r?$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Distribution:
    """One `*.dist-info` or `*.egg-info` of a site, and which modules of interest it owns."""

    site: Site
    folder: str
    owns: frozenset[str]

    def identity(self) -> tuple[str, str | None]:
        """Name and version from the metadata, from the folder's name where that is silent."""
        text = text_of(self.site, f"{self.folder}/METADATA", f"{self.folder}/PKG-INFO", self.folder)
        # A blank line ends the headers; the long description follows it.
        head = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]
        headers = {key.lower(): printable(value) for key, value in _HEADER.findall(head)}
        name, _, version = self.folder.rpartition(".")[0].partition("-")
        return headers.get("name", printable(name)), headers.get("version", version or None)

    def editable_url(self) -> str | None:
        """The checkout's path if `direct_url.json` says that the install is editable."""
        try:
            fields = json.loads(text_of(self.site, f"{self.folder}/direct_url.json") or "null")
        except (ValueError, RecursionError):
            return None
        info = fields.get("dir_info") if isinstance(fields, dict) else None
        url = fields.get("url") if isinstance(info, dict) and info.get("editable") is True else None
        return _local_path(url) if isinstance(url, str) else None

    def packages(self) -> list[str]:
        """The packages of this site that RECORD lists, by top-level name."""
        listing = text_of(self.site, f"{self.folder}/RECORD")
        return sorted(set(_PACKAGES.findall(listing)))

    def lists(self, path: str) -> bool:
        """Whether RECORD lists a file of this site."""
        return path in text_of(self.site, f"{self.folder}/RECORD")


def distributions(site: Site) -> Iterator[Distribution]:
    """Every distribution whose metadata lies in `site`, by folder name."""
    for folder in site.names():
        # pip renames what it is about to delete to `~...`; a crash leaves it behind.
        if folder.endswith(_KINDS) and not folder.startswith("~"):
            yield Distribution(site, printable(folder), frozenset(_owned(site, folder)))


def owners(candidates: Sequence[Distribution], module: str) -> list[Distribution]:
    """Those of `candidates` that own the top-level `module`."""
    return [dist for dist in candidates if module in dist.owns]


def _owned(site: Site, folder: str) -> Iterator[str]:
    listing = text_of(site, f"{folder}/RECORD", f"{folder}/installed-files.txt").replace("\\", "/")
    top_level = text_of(site, f"{folder}/top_level.txt").split()
    for module in _MODULES:
        if f"{module}/__init__.py" in listing:
            if re.search(
                rf'^(\.\./|\./|")*([^/\n]+\.data/(pure|plat)lib/)?{module}/__init__\.py',
                listing,
                re.MULTILINE,
            ):
                yield module
        # An editable install's RECORD lists no module, and some installers leave none behind.
        elif module in top_level or (not listing and folder.startswith(f"{module}-")):
            yield module


def _local_path(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return unquote(parts.path, errors="surrogateescape") if parts.scheme == "file" else None
