"""Masks that an attention backend builds, followed to the call that they enter.

Backends are chosen by name at run time, so no call path leads to them from a runner. A mask counts
only when the code that builds it hands it to attention and it decides there which scores count:
built but never passed is dead code, and so is an argument that a kernel leaves alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from .consequences import functions, masked_places
from .examine import Examiner, Hit, functions_of
from .program.module import Module
from .program.program import FunctionRef
from .program.reach import Reach, Reached
from .program.receivers import Receivers
from .result import Call
from .rules import Finding, Scope

# From a backend's method through its operator to the kernel, and to what the kernel calls.
BACKEND_DEPTH = 4


def passed_masks(examiner: Examiner, modules: Iterable[Module]) -> Iterator[Hit]:
    """Ancestor masks of attention backends that reach attention scores, with a call on the way."""
    for module in modules:
        for node in functions_of(module.tree):
            entry = Reached(FunctionRef(module, node), None, None, node.lineno, 0)
            for hit in examiner.apply(Scope.ATTENTION, entry):
                handed = _handed_on(module, node.name)
                if handed is not None and _reaches_scores(examiner, module, node, hit):
                    yield hit
                    yield _passed(hit, module, *handed)


def _reaches_scores(examiner: Examiner, module: Module, maker: ast.AST, hit: Hit) -> bool:
    """Whether what the backend's own methods do with a mask decides which scores count."""
    program = examiner.program.with_attention()
    own = Examiner(program, Receivers(program))
    reach = Reach(program, own.receivers, BACKEND_DEPTH)
    reach.run(functions(module))
    makers = {one: [hit] for one in reach.functions if one.function.node is maker}
    return bool(masked_places(program, reach, own.receivers, own.apply, makers))


def _passed(hit: Hit, module: Module, caller: ast.FunctionDef, word: ast.keyword) -> Hit:
    finding = Finding(
        word.lineno,
        word.col_offset + 1,
        word.end_lineno or word.lineno,
        f"the mask is handed to attention as `{word.arg}`: one static mask for all requests, "
        "and positions stay sequential",
    )
    owner = _owner(module, caller)
    symbol = f"{owner}.{caller.name}" if owner else caller.name
    calls = (*hit.calls, Call(module.path, caller.lineno, symbol))
    return replace(hit, symbol=symbol, finding=finding, quote=module.line(word.lineno), calls=calls)


def _owner(module: Module, function: ast.FunctionDef) -> str | None:
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and function in node.body:
            return node.name
    return None


def _handed_on(module: Module, builder: str) -> tuple[ast.FunctionDef, ast.keyword] | None:
    """The keyword argument by which what `builder` returns enters a call, through attributes."""
    held = {builder}
    while True:
        before = len(held)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Assign) and _mentions(node.value, held):
                for target in node.targets:
                    if isinstance(target, ast.Attribute):
                        held.add(target.attr)
            elif isinstance(node, ast.keyword) and node.arg and _mentions(node.value, held):
                held.add(node.arg)
        if len(held) == before:
            break
    for function in functions_of(module.tree):
        found = _final_keyword(function, held)
        if found is not None and isinstance(function, ast.FunctionDef):
            return function, found
    return None


def _final_keyword(function: ast.AST, held: set[str]) -> ast.keyword | None:
    """A keyword of a call to a plain function, fed from a field of the metadata."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id[:1].isupper() or len(node.keywords) < 4:
                continue
            for word in node.keywords:
                value = word.value
                if isinstance(value, ast.Attribute) and value.attr in held and not _own(value):
                    return word
    return None


def _own(value: ast.Attribute) -> bool:
    return isinstance(value.value, ast.Name) and value.value.id == "self"


def _mentions(value: ast.AST, held: set[str]) -> bool:
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in held:
            return True
        if isinstance(node, ast.Attribute) and node.attr in held:
            return True
    return False
