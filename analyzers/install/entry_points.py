"""Entry points in groups of vLLM: the doors through which a plug-in gets into an engine."""

from __future__ import annotations

from collections.abc import Iterator

from ..result import Plugin
from .distribution import Distribution
from .names import printable
from .site import text_of

_GROUPS = "vllm."


def plugins_of(distribution: Distribution) -> Iterator[Plugin]:
    """The entry points of one distribution whose group starts with `vllm.`."""
    text = text_of(distribution.site, f"{distribution.folder}/entry_points.txt")
    if _GROUPS not in text:
        return
    owner = distribution.identity()[0]
    for group, name, value in parse_entry_points(text):
        if group.startswith(_GROUPS):
            yield Plugin(printable(group), printable(name), printable(value), owner)


def parse_entry_points(text: str) -> Iterator[tuple[str, str, str]]:
    """(group, name, value) of every well-formed line; other lines are passed over.

    Source: the entry points specification of packaging.python.org.
    """
    group = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith(("#", ";")):
            continue
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
            continue
        name, equals, value = line.partition("=")
        if equals and name.strip() and value.strip():
            yield group, name.strip(), value.strip()


def module_of(plugin: Plugin) -> str:
    """The dotted module that an entry point loads."""
    return plugin.value.partition(":")[0].partition("[")[0].strip()
