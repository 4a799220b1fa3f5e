"""Calls to operators whose body is not Python."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from .expressions import dotted, walk
from .view import FunctionView


def external_calls(view: FunctionView, known: frozenset[str]) -> Iterator[tuple[cst.Call, str]]:
    """Calls of known operators that are handed the target's logits or what was made of them.

    Methods of `self`, functions that the package defines and those that are handed in are Python,
    whatever they are called; everything else of that name comes from an extension.
    """
    inner = {n.name.value for n in walk(view.tree.body) if isinstance(n, cst.FunctionDef)}
    inner |= {name for bind in view.facts.binds for name in bind.targets} | view.facts.parameters
    for site in view.facts.calls:
        call = cst.ensure_type(site.node, cst.Call)
        name = dotted(call.func)
        if name is None or name.rpartition(".")[2] not in known:
            continue
        if name.partition(".")[0] in {"self", "cls"} or name in inner or view.defines(name):
            continue
        if view.facts.behind([argument.value for argument in call.args], None) & view.logits:
            yield call, name.rpartition(".")[2]
