"""Name and version of a vLLM that no metadata describes: a checkout, or a bare package folder."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .distribution import Distribution, distributions, owners
from .literals import assigned
from .names import printable
from .site import Site, text_of

_NAMES = ("__version__", "version")


def identity_of(site: Site, claims: Sequence[Distribution]) -> tuple[str | None, str | None]:
    """Name and version of the package in `site`, of which `claims` are the distributions.

    The metadata of an installed distribution comes first; that of a checkout may be stale.
    """
    if not claims or claims[0].folder.endswith(".egg-info"):
        return checkout_identity(site)
    name, version = claims[0].identity()
    return name, version or module_version(text_of(site, "vllm/_version.py"))


def checkout_identity(site: Site) -> tuple[str | None, str | None]:
    """Distribution name and version from the files of a checkout or an unpacked sdist.

    The version is what the build wrote (`vllm/_version.py`), else PKG-INFO, else pyproject.toml.
    """
    name, version = _package_info(site)
    project = _project(text_of(site, "pyproject.toml"))
    version = module_version(text_of(site, "vllm/_version.py")) or version
    return name or project.get("name"), version or project.get("version")


def module_version(source: str) -> str | None:
    """The version that a `_version.py` assigns as a literal; None if there is none."""
    for value in assigned(source, *_NAMES):
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return printable(value.value)
    return None


def _package_info(site: Site) -> tuple[str | None, str | None]:
    egg = next(iter(owners(list(distributions(site)), "vllm")), None)
    if egg is not None:
        return egg.identity()
    if "PKG-INFO" not in site.names():
        return None, None
    # An sdist keeps the file at its top: read it as a distribution without a folder of its own.
    name, version = Distribution(site, "PKG-INFO", frozenset()).identity()
    return name or None, version


def _project(text: str) -> dict[str, str]:
    # Not at the top: it is new in Python 3.11, and few installs have this file.
    import tomllib

    try:
        table = tomllib.loads(text.encode("utf-8", "replace").decode()).get("project")
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
    found = table if isinstance(table, dict) else {}
    return {key: printable(value) for key, value in found.items() if isinstance(value, str)}
