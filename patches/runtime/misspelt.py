"""Settings that vLLM would carry unread: under a wrong name, or in a wrong place.

vLLM takes whatever it is given in `--additional-config`, and a server that reads none of it serves
chains without a word.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# How alike two names have to be: `dtree` and `ddtree` are 0.91, `tree` and `ddtree` 0.8.
ALIKE = 0.82
# Mappings within mappings that are looked through.
DEEPEST = 4


def nearest(name: object, known: Iterable[str]) -> str | None:
    """The known name that was probably meant, whatever its case and its hyphens."""
    plain = {_plain(one): one for one in known}
    found = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=ALIKE)
    return plain[found[0]] if found else None


def mistake(given: Mapping[Any, Any], key: str, needed: str, settings: Iterable[str]) -> str | None:
    """What is wrong with the names of an `additional_config`, and what is right; None if nothing.

    Args:
        given: the configuration, which may hold what others read.
        key: under which the settings belong.
        needed: the setting that is never left out.
        settings: all settings.
    """
    right = f"expected {json.dumps({key: {needed: 32}})}"
    for name in given:
        if name != key and nearest(name, [key]):
            return f'nobody reads "{name}": {right}'
    # The names of the others, such as "shape", may well be somebody else's.
    for name in given:
        if name == needed or (name in settings and "_" in name):
            return f'"{name}" stands beside "{key}", and not in it: {right}'
    for path in _elsewhere(given, key):
        return f'the settings stand at "{path}": {right}'
    for name, value in given.items():
        if name != key and _are_settings(name, value, needed, settings):
            return f'the settings stand at "{name}": {right}'
    return None


def _elsewhere(given: Mapping[Any, Any], key: str, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Where the key is, or one like it, but not at the top."""
    for name, value in given.items():
        here = (*path, str(name))
        if path and nearest(name, [key]):
            yield ".".join(here)
        elif isinstance(value, Mapping) and len(here) < DEEPEST:
            yield from _elsewhere(value, key, here)


def _are_settings(name: object, value: object, needed: str, settings: Iterable[str]) -> bool:
    """Whether a value has our settings and nothing else, under a name that speaks of trees."""
    ours = isinstance(value, Mapping) and needed in value and set(value) <= set(settings)
    return ours and any(word in _plain(name) for word in ("tree", "config", "draft"))


def _plain(name: object) -> str:
    return re.sub(r"[^a-z0-9]", "", str(name).lower())
