"""Which names of a function hold the KV cache, or attention scores."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Set
from functools import cached_property

from .program.arguments import passed
from .program.reach import Reach, Reached
from .program.receivers import Receivers
from .program.results import follow, returned
from .program.survey import fills
from .program.taint import LOOKUPS, MODULES, Flow, holds_logits, is_tainted, spread

Held = Callable[[], frozenset[str]]

# What a KV cache, or one half of it, is called wherever vLLM hands it out.
_CACHE = re.compile(
    r"(.*_)?(kv|key|value|k|v)(_\w+)?_(caches?|pools?|buffers?)(_ptr|_tensors?)?|past_key_values?"
)
# What gives another view of the same memory, or where it begins, or an element of a container.
_VIEWS = frozenset(
    {"view", "reshape", "flatten", "unflatten", "unbind", "select", "narrow", "transpose"}
    | {"permute", "movedim", "squeeze", "unsqueeze", "chunk", "split", "as_strided", "detach"}
    | {"contiguous", "data_ptr", "values", "items", "keys", "get", "setdefault", "pop", "tensor"}
    | {"zip", "enumerate", "list", "tuple", "dict", "set", "sorted", "reversed", "iter", "next"}
)
PRODUCTS = frozenset({"dot", "matmul", "bmm", "mm", "einsum"})
# What makes weights of scores, and what attends as a whole.
_ATTENDING = frozenset(
    {"softmax", "log_softmax", "logsumexp", "exp", "exp2", "scaled_dot_product_attention"}
    | {"memory_efficient_attention", "flex_attention"}
)


class Caches:
    """The names that hold the KV cache, its layers or its halves, followed once somebody asks."""

    def __init__(self, reach: Reach, receivers: Receivers) -> None:
        self._reach, self._receivers = reach, receivers

    def held(self, reached: Reached) -> Held:
        """What holds it in a function, when it is called."""
        return lambda: frozenset(self._known.get(reached, ()))

    @cached_property
    def _known(self) -> Mapping[Reached, Set[str]]:
        starts = {
            reached: set[str]()
            for reached in self._reach.functions
            if any(map(_CACHE.fullmatch, self._receivers.survey(reached.function).outline.names))
        }
        found = follow(
            self._reach,
            self._receivers,
            held=starts,
            seed=lambda _, node: _is_cache(node),
            stop=_is_no_view,
        )
        return found.names


class Matches:
    """The names that hold whether drafted tokens are what the target said at a looked-up place."""

    def __init__(
        self, reach: Reach, receivers: Receivers, said: Mapping[Reached, set[str]]
    ) -> None:
        self._reach, self._receivers = reach, receivers
        # What holds the target's tokens or logits in each function.
        self._said = said

    def held(self, reached: Reached) -> Held:
        """What holds them in a function, when it is called."""
        return lambda: frozenset(self._known.get(reached, ()))

    @cached_property
    def _known(self) -> Mapping[Reached, Set[str]]:
        starts = {reached: set[str]() for reached in self._said if self._compares(reached)}
        return follow(self._reach, self._receivers, held=starts, seed=self._is_match).names

    def _compares(self, reached: Reached) -> bool:
        outline = self._receivers.survey(reached.function).outline
        return bool({ast.Eq, ast.NotEq} & outline.operators or {"eq", "ne"} & outline.called)

    def _is_match(self, reached: Reached, node: ast.AST) -> bool:
        """`tokens == target.gather(1, parents)`, where only one side comes from the target."""
        sides = _compared(node)
        said = [side for side in sides if holds_logits(side, self._said.get(reached, set()))]
        return (
            len(sides) == 2
            and len(said) == 1
            and not any(isinstance(side, ast.Constant) for side in sides)
            and any(map(_looks_up, ast.walk(said[0])))
        )


class Scores:
    """The names that hold products in a function, made there or by what it calls or is called by.

    Products go everywhere in the end; scores are masked near the place where they are made.
    """

    def __init__(self, reach: Reach, receivers: Receivers) -> None:
        self._reach, self._receivers = reach, receivers

    def held(self, reached: Reached) -> Held:
        """What holds them in a function, when it is called."""
        return lambda: frozenset(self._names(reached))

    @cached_property
    def _callers(self) -> Mapping[Reached, list[Reached]]:
        found: dict[Reached, list[Reached]] = defaultdict(list)
        for reached in self._reach.functions:
            for edge in self._reach.edges[reached]:
                found[edge.target].append(reached)
        return found

    def _names(self, reached: Reached) -> set[str]:
        given: set[str] = set()
        for caller in self._callers[reached]:
            flow = self._flow(caller)
            names = spread(caller, self._receivers, set(), flow)
            edges = [edge for edge in self._reach.edges[caller] if edge.target is reached]
            for _, parameters in passed(edges, caller, self._receivers, names, flow):
                given |= parameters
        return spread(reached, self._receivers, given, self._flow(reached))

    def _flow(self, reached: Reached) -> Flow:
        edges = self._reach.edges[reached]
        made = frozenset(id(edge.site) for edge in edges if self._multiplies(edge.target))
        opened = frozenset(id(edge.site) for edge in edges)
        return Flow(
            seeded=False, decisions=True, results=made, opened=opened, seed=is_product, stop=attends
        )

    def _multiplies(self, target: Reached) -> bool:
        plain = Flow(seeded=False, decisions=True, seed=is_product, stop=attends)
        return any(is_tainted(value, set(), plain) for value in returned(self._receivers, target))


def _is_cache(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return _CACHE.fullmatch(node.id) is not None
    return isinstance(node, ast.Attribute) and _CACHE.fullmatch(node.attr) is not None


def _is_no_view(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = _called(node)
        return not (name in _VIEWS or fills(name))
    return isinstance(node, ast.BinOp | ast.Compare | ast.UnaryOp)


def _compared(node: ast.AST) -> list[ast.expr]:
    """The two sides of a comparison for equality; none for other expressions."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return [node.left, *node.comparators]
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="eq" | "ne"), args=sides):
            return sides if name in MODULES else [ast.Name(name, ast.Load()), *sides]
        case ast.Call(func=ast.Attribute(value=value, attr="eq" | "ne"), args=sides):
            return [value, *sides]
    return []


def _looks_up(node: ast.AST) -> bool:
    """Whether elements are read by an index that is neither a slice nor a number."""
    if isinstance(node, ast.Subscript):
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return any(not isinstance(part, ast.Slice | ast.Constant) for part in index)
    return _called(node) in LOOKUPS | {"load", "take_along_axis"}


def attends(node: ast.AST) -> bool:
    """Whether weights, or values, are made of what was masked; a mask times a number stays one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _is_variable(node.left) and _is_variable(node.right)
    return _called(node) in _ATTENDING or is_product(node)


def _called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_variable(node: ast.expr) -> bool:
    return any(
        isinstance(one, ast.Name) and one.id not in MODULES | {"float"} for one in ast.walk(node)
    )


def is_product(node: ast.AST) -> bool:
    """Whether an expression is a product of matrices, as scores are of queries and keys."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in PRODUCTS
