"""Where the code of an editable install really lies, read from what the installer left behind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from .literals import assigned

# A finder of setuptools is imported by a line of a .pth file; its module carries the mapping.
_FINDER = re.compile(r"\b(__editable___\w+_finder)\b")


def pth_folders(text: str) -> Iterator[str]:
    """The lines of a `.pth` or `.egg-link` file that name folders."""
    for raw in text.splitlines():
        line = raw.rstrip()
        if line and not line.startswith(("#", "import ", "import\t")):
            yield line


def finder_modules(text: str) -> list[str]:
    """The finder modules that a `.pth` file would import."""
    return _FINDER.findall(text)


def finder_mapping(source: str) -> Mapping[str, str]:
    """The top-level names of a finder module's MAPPING and the paths that they stand for.

    The module is parsed, never run; what is no literal is passed over.
    Source: setuptools, command/editable_wheel.py.
    """
    found: dict[str, str] = {}
    for value in assigned(source, "MAPPING"):
        found.update(_literal_names(value))
    return found


def _literal_names(value: ast.expr) -> dict[str, str]:
    if not isinstance(value, ast.Dict):
        return {}
    return {
        key.value: item.value
        # `strict` is new in Python 3.10, and a dictionary has as many keys as values.
        for key, item in zip(value.keys, value.values)  # noqa: B905
        if isinstance(key, ast.Constant)
        and isinstance(item, ast.Constant)
        and isinstance(key.value, str)
        and isinstance(item.value, str)
    }
