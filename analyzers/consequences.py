"""What a tree needs besides its walk: its mask in attention, and its accepted rows moved."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Protocol

from .install.names import dotted_name
from .kinds import Caches, Held, Scores, attends
from .program.module import Module
from .program.objects import Objects
from .program.program import ClassRef, FunctionRef, Program
from .program.reach import Reach, Reached
from .program.receivers import Receivers
from .program.results import Followed, follow
from .rules import Scope

if TYPE_CHECKING:
    from .examine import Hit


class Apply(Protocol):
    """The findings of the rules of a scope in a function.

    `logits` hold what is followed there, and `held` what else the rules of the scope ask about.
    """

    def __call__(
        self, scope: Scope, reached: Reached, logits: Iterable[str] = (), *, held: Held = ...
    ) -> list[Hit]: ...


def tree_masks(program: Program, reach: Reach, receivers: Receivers, apply: Apply) -> list[Hit]:
    """Masks of trees that a step makes and that reach attention scores, with the places there."""
    found = {
        reached: hits for reached in reach.functions if (hits := apply(Scope.ATTENTION, reached))
    }
    applied: list[Hit] = []
    used: list[Hit] = []
    for reached, hits in found.items():
        # One mask may be dropped where another one is used.
        there = masked_places(program, reach, receivers, apply, {reached: hits})
        if there:
            used += hits
            applied += there
    return [*used, *applied]


def masked_places(
    program: Program,
    reach: Reach,
    receivers: Receivers,
    apply: Apply,
    makers: Mapping[Reached, Iterable[Hit]],
) -> list[Hit]:
    """Where masks reach the scores of attention, followed out of the functions that make them.

    No call leads from a step to the layers of a model: what reads an attribute that holds the mask
    is followed as well, wherever code of attention does.
    """
    made = _made(makers)
    values = follow(reach, receivers, held=made, stop=attends)
    if values.attributes:
        reach.run(_readers(program, reach, values.attributes))
        values = follow(reach, receivers, held=made, stop=attends)
        objects = Objects(reach, receivers, values)
        values = follow(reach, receivers, held=made, stop=attends, carry=objects.carry)
    return list(_masked(reach, receivers, apply, values))


def _made(makers: Mapping[Reached, Iterable[Hit]]) -> dict[Reached, frozenset[str]]:
    return {
        reached: frozenset[str]().union(*(hit.finding.made for hit in hits))
        for reached, hits in makers.items()
    }


def _masked(reach: Reach, receivers: Receivers, apply: Apply, followed: Followed) -> Iterator[Hit]:
    scores = Scores(reach, receivers)
    for reached in reach.functions:
        if reached in followed.names:
            yield from apply(
                Scope.MASKED, reached, followed.names[reached], held=scores.held(reached)
            )


def _readers(
    program: Program, reach: Reach, attributes: Set[str]
) -> Iterator[tuple[FunctionRef, ClassRef | None]]:
    """What a model calls of layers, where their class reads some attributes of an object."""
    modules = {module.name: module for module in program.loaded}
    for package in (f"{program.package}.v1.attention", f"{program.package}.attention"):
        for name in attributes:
            modules |= {found.name: found for found in program.below(package, name.encode())}
    known = {id(reached.function.node) for reached in reach.functions}
    for module in modules.values():
        if any(name.encode() in module.source for name in attributes):
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef) and _reads(node, attributes):
                    for function, owner in functions(module, node):
                        name = function.node.name
                        if name.startswith("forward") and id(function.node) not in known:
                            yield function, owner


def functions(
    module: Module, cls: ast.ClassDef | None = None
) -> Iterator[tuple[FunctionRef, ClassRef | None]]:
    """The functions and methods of a module or a class, each with the class of a method."""
    for node in [cls] if cls is not None else module.tree.body:
        owner = ClassRef(module, node) if isinstance(node, ast.ClassDef) else None
        for function in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                yield FunctionRef(module, function, owner), owner


def _reads(cls: ast.ClassDef, attributes: Set[str]) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr in attributes for node in ast.walk(cls)
    )


def tree_commits(
    reach: Reach, receivers: Receivers, apply: Apply, walks: Iterable[Hit]
) -> Iterator[Hit]:
    """Rows of the KV cache that are moved as the walk decided."""
    places: dict[tuple[str, str], set[str]] = defaultdict(set)
    for hit in walks:
        places[hit.file, hit.symbol] |= hit.finding.made
    held = {
        reached: places[place]
        for reached in reach.functions
        if (place := (reached.function.module.path, reached.function.symbol)) in places
    }
    # How long the accepted path is can be told from the length of what the walk gave.
    decided = follow(reach, receivers, held, held, decides=True)
    caches = Caches(reach, receivers)
    for reached in reach.functions:
        if reached in decided.names:
            names = decided.names[reached]
            yield from apply(Scope.COMMIT, reached, names, held=caches.held(reached))


def wrapped_attention(
    program: Program, receivers: Receivers, edited: Iterable[str]
) -> Iterator[FunctionRef]:
    """Functions of attention that an edit wraps: layers are chosen at run time, not called."""
    for path in edited:
        name = dotted_name(path)
        module = program.module(name) if "attention" in name.split(".") else None
        for function, _ in functions(module) if module else ():
            if receivers.wrappers.of(function).wraps:
                yield function
