"""Installs to inspect: a real release with files of ours laid over it, or a tiny one of our own."""

from __future__ import annotations

import ast
import shutil
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.renamer import link

ENTRY = "verify"
# What every engine under test hands to `verify`; other parameters come from the topology.
_HANDED = {"tokens": "tokens", "target": "target", "probs": "logits.softmax(dim=-1)"}
_TOPOLOGY = "vllm/v1/sample/topology.py"

_TOPOLOGY_MODULE = '''
"""Where the step's draft topology waits for the sampler."""


class Topology:
    def __init__(self, **arrays):
        self.__dict__.update(arrays)


_current = Topology()


def put(topology):
    global _current
    _current = topology


def current():
    return _current
'''


def overlay(base: Path, root: Path, files: Mapping[str, str] | None = None) -> Path:
    """A copy of the unpacked release `base` below `root` with `files` laid over it.

    Unchanged files are hard links, so nothing may write to them in place: use `write`.
    """
    place = root / "site-packages"
    shutil.copytree(base, place, copy_function=link)
    for path, text in (files or {}).items():
        write(place, path, text)
    return place


def write(place: Path, path: str, text: str) -> None:
    """Put one file into an install made by `overlay`, leaving what it was linked to alone."""
    file = place / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.write_text(text)


def distribution(name: str, version: str, entry_points: str = "") -> dict[str, str]:
    """The metadata files of a distribution, without a RECORD."""
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    files = {f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}
    if entry_points:
        files[f"{folder}/entry_points.txt"] = textwrap.dedent(entry_points).lstrip()
    return files


def mini_install(root: Path, files: Mapping[str, str]) -> Path:
    """A site-packages folder below `root` with a vLLM that consists of `files` alone."""
    place = root / "site-packages"
    for path, text in (distribution("vllm", "1.0.0") | dict(files)).items():
        write(place, path, text)
    return place


def parameters(module: str) -> list[str]:
    """The parameter names of the module's `verify`."""
    for node in ast.parse(module).body:
        if isinstance(node, ast.FunctionDef) and node.name == ENTRY:
            return [argument.arg for argument in node.args.args]
    raise ValueError(f"no function {ENTRY} at the top level of the module")


def call_of(module: str, handed: Mapping[str, str] = _HANDED) -> str:
    """An expression that calls the module's `verify` with what the engine has at hand.

    Args:
        handed: the engine's expressions for `tokens`, `target` and `probs`; the topology gives
            the rest.
    """
    arguments = (handed.get(name, f"current().{name}") for name in parameters(module))
    return f"{ENTRY}({', '.join(arguments)})"


def with_body(source: str, function: str, body: str, *, keep: bool = False) -> str:
    """The module with another body for one function, named as `f` or `Class.f`.

    Args:
        keep: put the new statements before the old body rather than in its place.

    Raises:
        ValueError: the function is not there exactly once.
    """
    found = list(_functions(ast.parse(source).body, function.split(".")))
    if len(found) != 1:
        raise ValueError(f"{function} is there {len(found)} times, expected once")
    (node,) = found
    lines = source.splitlines()
    # Decorated or documented alike, the first statement of the body marks where the head ends.
    start = node.body[0].lineno - 1
    end = start if keep else (node.end_lineno or start)
    indented = textwrap.indent(textwrap.dedent(body).strip(), " " * node.body[0].col_offset)
    return "\n".join([*lines[:start], indented, *lines[end:]]) + "\n"


def _functions(body: Iterable[ast.stmt], names: list[str]) -> Iterable[ast.FunctionDef]:
    head, *rest = names
    for node in body:
        if isinstance(node, ast.ClassDef) and rest and node.name == head:
            yield from _functions(node.body, rest)
        elif isinstance(node, ast.FunctionDef) and not rest and node.name == head:
            yield node


def topology_file() -> dict[str, str]:
    """The module from which `call_of`'s expressions take the topology."""
    return {_TOPOLOGY: _TOPOLOGY_MODULE.lstrip()}
