"""What a tree needs besides its walk: its mask in attention, and its accepted rows moved."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Set
from typing import TYPE_CHECKING

from .install.names import dotted_name
from .program.program import ClassRef, FunctionRef, Program
from .program.reach import Reach, Reached
from .program.receivers import Receivers
from .program.results import follow_results
from .rules import Scope

if TYPE_CHECKING:
    from .examine import Hit

# The findings of the rules of a scope in a function, for the names that hold what is followed.
Apply = Callable[[Scope, Reached, Set[str]], list["Hit"]]


def tree_masks(reach: Reach, receivers: Receivers, apply: Apply) -> list[Hit]:
    """Masks of trees that a step makes.

    What wraps the engine's functions has to bring its mask into attention itself, since no
    attention of the engine takes one: there the mask is followed to where it masks scores.
    """
    hits: list[Hit] = []
    beside: list[Hit] = []
    makers: list[Reached] = []
    for reached in reach.functions:
        found = apply(Scope.ATTENTION, reached, frozenset())
        if found and reached.wrapper is not None:
            beside += found
            makers.append(reached)
        else:
            hits += found
    if makers:
        wrapping = [reached for reached in reach.functions if reached.wrapper is not None]
        applied = list(_where(Scope.MASKED, makers, wrapping, reach, receivers, apply))
        hits += [*beside, *applied] if applied else []
    return hits


def tree_commits(
    reach: Reach, receivers: Receivers, apply: Apply, walks: Iterable[Hit]
) -> list[Hit]:
    """Rows that are moved as the walk decided.

    A walk of code that wraps the engine's is followed to what it moves. Of the engine's own code
    whatever moves rows counts where nothing was followed: results go ways that cannot be.
    """
    places = {(hit.file, hit.symbol) for hit in walks}
    makers = [
        reached
        for reached in reach.functions
        if (reached.function.module.path, reached.function.symbol) in places
    ]
    decided = list(_where(Scope.COMMIT, makers, reach.functions, reach, receivers, apply))
    if decided or any(maker.wrapper is not None for maker in makers):
        return decided
    every = (apply(Scope.COMMIT, reached, frozenset()) for reached in reach.functions)
    return [hit for found in every for hit in found]


def _where(
    scope: Scope,
    makers: Iterable[Reached],
    functions: Iterable[Reached],
    reach: Reach,
    receivers: Receivers,
    apply: Apply,
) -> Iterator[Hit]:
    """The findings in those functions that what the makers made gets to."""
    held = follow_results(reach, receivers, makers)
    for reached in functions:
        if reached in held:
            yield from apply(scope, reached, held[reached])


def wrapped_attention(
    program: Program, receivers: Receivers, edited: Iterable[str]
) -> Iterator[FunctionRef]:
    """Functions of attention that an edit wraps: layers are chosen at run time, not called."""
    for path in edited:
        name = dotted_name(path)
        module = program.module(name) if "attention" in name.split(".") else None
        for node in module.tree.body if module else ():
            owner = ClassRef(module, node) if module and isinstance(node, ast.ClassDef) else None
            for function in node.body if isinstance(node, ast.ClassDef) else [node]:
                if module and isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    found = FunctionRef(module, function, owner)
                    if receivers.wrappers.of(found).wraps:
                        yield found
