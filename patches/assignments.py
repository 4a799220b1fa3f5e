"""The hooks of a plan as assignments, in the module that vLLM's plug-in runs.

What it says of the hooked functions is compared with the installed ones when it is loaded.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..analyzers.install.names import dotted_name
from .errors import AnchorError
from .plugin.functions import Functions, described, digest
from .recipe import Anchor

# Registered under its own name when its module is imported, so that a later assignment misses it.
_OPERATORS = ("attention.forward",)
_HEAD = '''\
"""Made by `ddtree patch --apply --as plugin` for {name} {version}.

How every hooked function looked then, and the assignments that hook into it.
"""

from __future__ import annotations

from ddtree_runtime import attention
from ddtree_runtime.hooks import hook

DISTRIBUTION = "{distribution}"
VERSION = "{version}"

FUNCTIONS = {functions}


{assignments}

MODULES = {modules}
'''
_FILES = b"\n# A file that is still the same has the same functions.\nFILES = "


def hooked(
    distribution: str | None,
    version: str,
    sources: Mapping[str, bytes],
    anchors: Mapping[str, Sequence[Anchor]],
) -> bytes:
    """The text of `hooked.py`.

    Args:
        distribution: the name under which vLLM is installed; its version is compared if known.
        version: the version of vLLM.
        sources: the hooked files.
        anchors: what is hooked in each of them; every anchor is known to be there once.

    Raises:
        AnchorError: a function is of a kind that cannot be hooked by assignment.
    """
    names = {file: file.removesuffix(".py").replace("/", "__") for file in sources}
    functions = {
        file: described(data, (anchor.name for anchor in anchors[file]))
        for file, data in sources.items()
    }
    assignments = [
        f"def {names[file]}() -> None:\n{_body(anchors[file], ast.parse(data))}"
        for file, data in sources.items()
    ]
    modules = "".join(f'    "{dotted_name(file)}": {name},\n' for file, name in names.items())
    head = _HEAD.format(
        name=distribution or "vLLM",
        version=version,
        distribution=distribution or "",
        functions=json.dumps(functions, indent=4),
        assignments="\n\n".join(assignments),
        modules=f"{{\n{modules}}}",
    )
    files = {file: digest(data) for file, data in sources.items()}
    return head.encode() + _FILES + json.dumps(files, indent=4).encode() + b"\n"


def hooks_alike(one: bytes, other: bytes) -> bool:
    """Whether two such texts hook the same functions, whatever else is in their files."""
    return one.partition(_FILES)[0] == other.partition(_FILES)[0]


def said_of(text: bytes) -> tuple[Functions, Mapping[str, str]]:
    """What such a text says of functions and files; nothing if it is damaged."""
    found: dict[str, Any] = {}
    try:
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
                name = ast.unparse(node.targets[0])
                found[name] = ast.literal_eval(node.value) if name != "MODULES" else None
    except (SyntaxError, ValueError):
        return {}, {}
    return found.get("FUNCTIONS", {}), found.get("FILES", {})


def _body(anchors: Sequence[Anchor], module: ast.Module) -> str:
    lines: dict[str, None] = {}
    for anchor in anchors:
        lines |= dict.fromkeys(_imports(anchor))
    for anchor in anchors:
        lines |= dict.fromkeys(_assignment(anchor, module))
    return "".join(f"    {line}\n" for line in lines)


def _imports(anchor: Anchor) -> Iterator[str]:
    owner = anchor.name.rpartition(".")[0]
    module = dotted_name(anchor.file)
    if anchor.hook not in _OPERATORS:
        yield f"from {module} import {owner}" if owner else f"import {module} as module"


def _assignment(anchor: Anchor, module: ast.Module) -> Iterator[str]:
    if anchor.hook in _OPERATORS:
        yield "# The operator keeps the function that it was made of: trees are put around layers."
        yield "attention.through_layers = True"
        return
    kinds = _decorators(module, anchor.name.split("."))
    place = anchor.name if "." in anchor.name else f"module.{anchor.name}"
    if "property" in kinds:
        yield f'{place} = {place}.getter(hook("{anchor.hook}")({place}.fget))'
    elif {"staticmethod", "classmethod"} & kinds:
        raise AnchorError(
            f"{anchor.file}: {anchor.name} is a {' and a '.join(sorted(kinds))}",
            expected=f"a function that can be hooked by assignment ({anchor.hook})",
            hint="ddtree patch --apply --as edits",
        )
    else:
        yield f'{place} = hook("{anchor.hook}")({place})'


def _decorators(module: ast.Module, names: list[str]) -> set[str]:
    nodes: list[ast.stmt] = module.body
    for owner in names[:-1]:
        nodes = next(n.body for n in nodes if isinstance(n, ast.ClassDef) and n.name == owner)
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    (found,) = [node for node in functions if node.name == names[-1]]
    return {ast.unparse(mark) for mark in found.decorator_list}
