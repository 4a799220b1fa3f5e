"""When a wrapper leaves a step to the function that it wraps."""

from __future__ import annotations

import ast

from .program.program import FunctionRef
from .program.reach import Reached


def condition_of(reached: Reached) -> str:
    """A sentence on the condition under which what was reached does not run; empty if none.

    A wrapper that returns what the wrapped function alone returns, where some condition holds,
    decides at run time which of the two verifies.
    """
    wrapper = reached.wrapper
    if wrapper is None or wrapper.via is None or wrapper.function.wraps is None:
        return ""
    choice = _leaves_to(wrapper.function, wrapper.function.wraps)
    if choice is None:
        return ""
    stock = wrapper.via.function
    return (
        f"{stock.module.path}:{wrapper.line} wraps {stock.symbol} in "
        f"{wrapper.function.symbol} ({wrapper.function.module.path}:{choice.lineno}), which leaves "
        f"the step to the stock code where `{ast.unparse(choice.test)}`: whether a tree is "
        "verified depends on the configuration"
    )


def _leaves_to(wrapper: FunctionRef, wrapped: FunctionRef) -> ast.If | None:
    """The first choice of which one way is the wrapped function and nothing else."""
    names = {name for name, held in wrapper.bound.items() if held.node is wrapped.node}
    for node in ast.walk(wrapper.node):
        if isinstance(node, ast.If):
            for statement in [*node.body, *node.orelse]:
                if isinstance(statement, ast.Return) and _calls(statement.value, names):
                    return node
    return None


def _calls(value: ast.expr | None, names: set[str]) -> bool:
    if not isinstance(value, ast.Call):
        return False
    return isinstance(value.func, ast.Name) and value.func.id in names
