"""What an install is that a plug-in hooks: how its functions and the plug-in's files should be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..analyzers.errors import ConflictError
from ..analyzers.targets.source import Target
from .assignments import hooked, hooks_alike, said_of
from .distribution import HOOKED, PLUGIN, with_plugin
from .place import Place
from .plugin.functions import changed
from .recipe import all_recipes, choose

LEFT = "Its plug-in is still here, and refuses trees unless every function is as it was."


def is_there(site: Path) -> bool:
    """Whether some plug-in of ddtree is there."""
    return (site / PLUGIN).is_dir()


def changes(place: Place, site: Path) -> dict[str, str | None]:
    """Of every file with hooked functions, what changed since the plug-in was made; None: nothing.

    Nothing is known where the plug-in's own list is damaged.

    Args:
        place: where vLLM is.
        site: where the plug-in is.
    """
    functions, files = said_of(_text(site))
    found = changed(place.site, functions, files)
    return {file: found.get(file) for file in functions}


def expected(target: Target, site: Path, installed: Mapping[str, bytes]) -> dict[str, bytes]:
    """What this ddtree would lay beside vLLM as a plug-in, by path relative to the site.

    Where only other parts of the hooked files have changed, what is there is as it should be.

    Args:
        target: the install.
        site: where the plug-in is.
        installed: what `distribution` gives.
    """
    there = _text(site)
    try:
        recipe, _ = choose(target.install.version, all_recipes())
        anchors = recipe.by_file()
        sources = {file: target.source.read(file) for file in anchors}
        version = target.install.version or ""
        made = hooked(target.install.distribution, version, sources, anchors)
    except (ConflictError, OSError, ValueError, SyntaxError):
        # It could not be planned today.
        made = b""
    return with_plugin(installed, there if hooks_alike(made, there) else made)


def _text(site: Path) -> bytes:
    try:
        return (site / HOOKED).read_bytes()
    except OSError:
        return b""
