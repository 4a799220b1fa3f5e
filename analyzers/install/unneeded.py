"""Modules of a site that no distribution in it requires: an operator put them there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .distribution import Distribution
from .names import without_suffix
from .site import Site, text_of

_REQUIRES = re.compile(r"^Requires-Dist:[ \t]*([\w.-]+)", re.MULTILINE | re.IGNORECASE)
_LISTED = re.compile(r"^([A-Za-z_]\w*)(?:/[^\n,]*)?\.py,", re.MULTILINE)
_SEPARATORS = re.compile(r"[-_.]+")


def unneeded_modules(site: Site, distributions: Sequence[Distribution]) -> Iterator[str]:
    """The top-level modules of a site that are no dependency of anything installed in it.

    Args:
        site: the folder; of a checkout it holds no distributions, and all of it is its own.
        distributions: those that belong to the site.
    """
    required = {name for dist in distributions for name in _required(dist)}
    needed = {
        module
        for dist in distributions
        if _canonical(dist.identity()[0]) in required
        for module in _modules(dist)
    }
    for name in site.names():
        module = without_suffix(name, ".py")
        if module.isidentifier() and module not in needed:
            yield module


def _required(dist: Distribution) -> Iterator[str]:
    text = text_of(dist.site, f"{dist.folder}/METADATA", f"{dist.folder}/PKG-INFO")
    for name in _REQUIRES.findall(text):
        yield _canonical(name)


def _modules(dist: Distribution) -> set[str]:
    listed = _LISTED.findall(text_of(dist.site, f"{dist.folder}/RECORD"))
    return {*listed, *text_of(dist.site, f"{dist.folder}/top_level.txt").split()}


def _canonical(name: str) -> str:
    return _SEPARATORS.sub("-", name).lower()
