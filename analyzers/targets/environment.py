"""The site folders of an environment, found from its files alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .local import is_dir, is_file, read_regular

_LAYOUTS = (
    "lib/python*/site-packages",
    "lib64/python*/site-packages",
    "local/lib/python*/dist-packages",
    "lib/python*/dist-packages",
    "lib/pypy*/site-packages",
    "Lib/site-packages",
)
_RELEASE = re.compile(r"\d+\.\d+(?:\.\d+)?")
_FOLDER_VERSION = re.compile(r"(?:python|pypy)(\d+\.\d+)$")


@dataclass(frozen=True, slots=True)
class Environment:
    """Where imports would look, in order, and for which Python."""

    name: str
    sites: tuple[Path, ...]
    python: str | None = None


def environment_of(prefix: Path) -> Environment:
    """The environment whose root is `prefix`: virtual, conda, system or Windows layout.

    `sites` is empty if the folder is no environment.
    """
    settings = _settings(prefix)
    python = _first_release(settings.get("version_info") or settings.get("version") or "")
    python = python or _conda_python(prefix)
    sites = site_folders(prefix, python)
    if sites and settings.get("include-system-site-packages", "").lower() == "true":
        sites += _system_sites(settings.get("home", ""), sites[0])
    if python is None and sites:
        python = _folder_python(sites[0])
    return Environment(str(prefix), unique(sites), python)


def site_folders(prefix: Path, python: str | None) -> list[Path]:
    """The existing site folders below `prefix`: those of `python` first, then newer ones."""
    found = [folder for layout in _LAYOUTS for folder in prefix.glob(layout) if is_dir(folder)]
    return sorted(found, key=lambda folder: _rank(folder, python))


def python_of(site: Path) -> str | None:
    """The Python that a site folder belongs to; None if neither it nor its parents say."""
    for prefix in (site.parent.parent, site.parent.parent.parent):
        release = environment_of(prefix).python if site.name.endswith("-packages") else None
        if release is not None:
            named = _folder_python(site)
            return release if named is None or release.startswith(f"{named}.") else named
    return _folder_python(site)


def is_environment(prefix: Path) -> bool:
    """Whether a folder is the root of a virtual or conda environment."""
    return is_file(prefix / "pyvenv.cfg") or is_dir(prefix / "conda-meta")


def unique(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Each folder once, by real path: `lib64` is often a link to `lib`."""
    found = {os.path.realpath(folder): folder for folder in reversed(list(folders))}
    return tuple(reversed(found.values()))


def _settings(prefix: Path) -> Mapping[str, str]:
    try:
        text = read_regular(str(prefix / "pyvenv.cfg")).decode("utf-8", "surrogateescape")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _first_release(text: str) -> str | None:
    found = _RELEASE.search(text)
    return found.group() if found else None


def _conda_python(prefix: Path) -> str | None:
    names = sorted(path.name for path in (prefix / "conda-meta").glob("python-[0-9]*.json"))
    return _first_release(names[-1]) if names else None


def _folder_python(site: Path) -> str | None:
    found = _FOLDER_VERSION.search(site.parent.name)
    return found.group(1) if found else None


def _rank(folder: Path, python: str | None) -> tuple[bool, list[int]]:
    version = _folder_python(folder)
    if version is None:
        return True, []
    own = python is not None and (f"{python}.").startswith(f"{version}.")
    return not own, [-int(part) for part in version.split(".")]


def _system_sites(home: str, own: Path) -> list[Path]:
    # Without a `home`, there is no telling which system is meant.
    if not home:
        return []
    python = _folder_python(own)
    # Not `Path.home`, which raises where a user has none, as in some containers.
    home_folder = Path(os.path.expanduser("~"))  # noqa: PTH111
    user = home_folder / ".local" / "lib" / f"python{python}" / "site-packages"
    system = site_folders(Path(home).parent, python)
    same = [site for site in system if _folder_python(site) in (python, None)]
    return [site for site in (user, *same) if is_dir(site)]
