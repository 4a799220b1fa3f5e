"""What a value is made of: how contents go on from name to name within a function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

from .reach import Reached
from .receivers import Receivers
from .survey import parts_of, walk_code

# What the field calls a target's output; an engine's method that has one holds the target's.
SEEDS = frozenset({"logits", "probs", "logprobs"})
# The method by which every model of vLLM turns hidden states into logits.
PRODUCER = "compute_logits"
_SEEDING = SEEDS | {PRODUCER}
# What tells of a tensor without its contents, and what reads elements by an index.
DESCRIPTIONS = frozenset({"device", "dtype", "shape", "ndim", "size", "dim", "numel", "stride"})
# Those that tell how many elements there are.
EXTENTS = frozenset({"shape", "size", "numel"})
LOOKUPS = frozenset({"get", "gather", "index_select", "take", "take_along_dim"})
MODULES = frozenset({"torch", "np", "numpy", "F", "tl"})


@dataclass(frozen=True, slots=True)
class Flow:
    """How values are followed in one function."""

    # The function belongs to the engine's own class, whose logits are the target's.
    seeded: bool
    # What a call returns is still followed.
    decisions: bool
    # Attributes that hold logits in instances of some class, by name alone.
    attributes: frozenset[str] = frozenset()
    # What is followed came out of calls (their callees, by identity), and may be called anything.
    results: frozenset[int] | None = None
    # Callees whose code is known: what they return is known from that, not from their arguments.
    opened: frozenset[int] = frozenset()
    # Of these, what they return is made of what they are given.
    through: frozenset[int] = frozenset()
    # An expression that is followed for what it is itself, whatever it is made of.
    seed: Callable[[ast.AST], bool] | None = None
    # An expression in which nothing of what it is made of is followed any further.
    stop: Callable[[ast.AST], bool] | None = None
    # Whether an attribute that is read by name belongs to an object that has it.
    carry: Callable[[ast.Attribute], bool] | None = None
    # What is followed decides: what it selects, and how many elements it has, is followed as well.
    decides: bool = False


def set_on_others(
    reached: Reached, receivers: Receivers, names: set[str], flow: Flow
) -> Iterable[str]:
    """The attributes of other objects that a function sets to logits: `state.scores = logits`."""
    for store in receivers.scope(reached.function, reached.receiver).mentions.stores:
        for target, value in _pairs(store):
            if not isinstance(target, ast.Attribute) or is_own(target):
                continue
            if isinstance(target.ctx, ast.Store) and is_tainted(value, names, flow):
                yield target.attr


def _pairs(store: ast.Assign | ast.AnnAssign) -> Iterable[tuple[ast.expr, ast.expr]]:
    """What is assigned to what; `a.x, b.y = f()` gives the whole value to each."""
    targets = store.targets if isinstance(store, ast.Assign) else [store.target]
    for target in targets:
        if store.value is None:
            continue
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        values: list[ast.expr] = [store.value] * len(parts)
        if isinstance(store.value, ast.Tuple) and len(store.value.elts) == len(parts) > 1:
            values = store.value.elts
        yield from zip(parts, values, strict=True)


def spread(reached: Reached, receivers: Receivers, names: set[str], flow: Flow) -> set[str]:
    """Close the set of tainted names over the function's assignments."""
    scope = receivers.scope(reached.function, reached.receiver)
    found = set(names)
    if flow.seeded:
        found |= {node.id for node in scope.mentions.names if node.id in SEEDS}
    if flow.results is None and (flow.seeded or names):
        found |= SEEDS & set(scope.locals)
    while True:
        before = len(found)
        for store in scope.mentions.stores:
            if store.value is None:
                continue
            if not (flow.decides or _may_hold(store.value, found, flow)):
                continue
            if flow.results is not None:
                found.update(_taken_over(store, found, flow))
            elif is_tainted(store.value, found, flow):
                targets = store.targets if isinstance(store, ast.Assign) else [store.target]
                found.update(bound_names(targets))
        if len(found) == before:
            return found


def _taken_over(store: ast.Assign | ast.AnnAssign, names: set[str], flow: Flow) -> Iterable[str]:
    """The names that take results over in an assignment; `a, b = c, d` gives each its own."""
    for target, value in _pairs(store):
        if is_tainted(value, names, flow) or (flow.decides and _placed(target, names, flow)):
            yield from bound_names([target])


def _placed(target: ast.expr, names: set[str], flow: Flow) -> bool:
    """Whether what is followed says where something is written."""
    return isinstance(target, ast.Subscript) and is_tainted(target.slice, names, flow)


@dataclass(frozen=True, slots=True)
class _Read:
    """What a value is made of, whatever becomes of it: cheaper to ask than to follow it."""

    # Attributes of `self` as `self.name`.
    names: frozenset[str]
    attributes: frozenset[str]
    # By identity.
    callees: frozenset[int]


@lru_cache(maxsize=1 << 14)
def _read(value: ast.expr) -> _Read:
    names: set[str] = set()
    attributes: set[str] = set()
    callees: set[int] = set()
    for node in walk_code(value):
        if type(node) is ast.Name:
            names.add(node.id)
        elif type(node) is ast.Attribute:
            attributes.add(node.attr)
            names.update([f"self.{node.attr}"] if is_own(node) else [])
        elif type(node) is ast.Call:
            callees.add(id(callee(node)))
    return _Read(frozenset(names), frozenset(attributes), frozenset(callees))


def _may_hold(value: ast.expr, names: set[str], flow: Flow) -> bool:
    """Whether anything in a value could be followed."""
    if flow.seed is not None:
        return True
    read = _read(value)
    if flow.seeded and not read.attributes.isdisjoint(_SEEDING):
        return True
    return not (
        read.names.isdisjoint(names)
        and read.attributes.isdisjoint(flow.attributes)
        and read.callees.isdisjoint(flow.results or ())
    )


def bound_names(targets: Sequence[ast.expr]) -> Iterable[str]:
    """The names that an assignment writes to, attributes of `self` as `self.name`."""
    for target in targets:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        for part in parts:
            holder = part.value if isinstance(part, ast.Starred | ast.Subscript) else part
            if isinstance(holder, ast.Call) and isinstance(holder.func, ast.Attribute):
                # `table.setdefault(key, {})[other] = value`, `rows.view(-1)[i] = value`.
                holder = holder.func.value
            if isinstance(holder, ast.Name):
                yield holder.id
            elif is_own(holder):
                yield f"self.{holder.attr}"
            elif isinstance(holder, ast.Tuple | ast.List):
                yield from bound_names([holder])


def is_own(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Whether an expression is an attribute of `self`."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def holds_logits(expression: ast.expr, names: set[str]) -> bool:
    """Whether a value is made of what some names hold."""
    return is_tainted(expression, names, Flow(seeded=False, decisions=True))


def is_tainted(expression: ast.expr, names: set[str], flow: Flow) -> bool:
    """Whether a value is made of logits; in the engine's class only torch carries them on.

    What the engine gets back from a sampler is a decision, not logits any more.
    """
    stack: list[Any] = [expression]
    while stack:
        node = stack.pop()
        kind = type(node)
        if flow.seed is not None and flow.seed(node):
            return True
        if kind is ast.Name:
            if node.id in names:
                return True
            continue
        if kind is ast.Attribute and _is_followed(node, names, flow):
            return True
        if flow.results is not None:
            if kind is ast.Call and id(callee(node)) in flow.results:
                return True
            stack.extend(_of_result(node, flow))
            continue
        if flow.seeded and isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == PRODUCER:
                return True
            if not flow.decisions and not _is_tensor_call(node):
                # Only the object of a method call, never its arguments.
                if isinstance(node.func, ast.Attribute) and node.func.attr not in DESCRIPTIONS:
                    stack.append(node.func.value)
                continue
        stack.extend(_carrying(node))
    return False


def _is_followed(node: ast.Attribute, names: set[str], flow: Flow) -> bool:
    """Whether an attribute holds what is followed."""
    if flow.seeded and node.attr in SEEDS:
        return True
    if is_own(node):
        return f"self.{node.attr}" in names
    return node.attr in flow.attributes and (flow.carry is None or flow.carry(node))


def _of_result(node: ast.AST, flow: Flow) -> Iterable[ast.AST]:
    """The parts of an expression that results go on into it from."""
    called = id(callee(node)) if isinstance(node, ast.Call) else 0
    if called in flow.opened:
        return []
    if called not in flow.through and flow.stop is not None and flow.stop(node):
        return []
    parts = _deciding(node) if flow.decides else _carrying(node)
    if isinstance(node, ast.Call) and not flow.decides and _is_blank(node.func):
        return []
    # A method of the name of an attribute is none.
    function = node.func if isinstance(node, ast.Call) else None
    return [
        part.value
        if part is function and isinstance(part, ast.Attribute) and not is_own(part)
        else part
        for part in parts
    ]


def _is_blank(function: ast.expr) -> bool:
    """Whether a call only takes the form of what it is given: `torch.zeros_like(x)`."""
    name = function.attr if isinstance(function, ast.Attribute) else ""
    return name.endswith("_like") or name.startswith("new_")


def _deciding(node: ast.AST) -> Iterable[ast.AST]:
    """The parts of an expression that decide what it is: indices and extents as well."""
    if isinstance(node, ast.Subscript):
        return [node.value, node.slice]
    if isinstance(node, ast.Attribute) and node.attr in EXTENTS:
        return [node.value]
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=arguments):
            if attr in EXTENTS | LOOKUPS:
                return [value, *arguments]
    return _carrying(node)


def _carrying(node: ast.AST) -> Iterable[ast.AST]:
    """The parts of an expression whose contents it takes on; an index or a condition selects."""
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
        return []
    if isinstance(node, ast.Attribute) and node.attr in DESCRIPTIONS:
        return []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in DESCRIPTIONS:
            return []
        if node.func.attr in LOOKUPS:
            module = isinstance(node.func.value, ast.Name) and node.func.value.id in MODULES
            return node.args[:1] if module else [node.func.value]
    return parts_of(node)


def _is_tensor_call(node: ast.Call) -> bool:
    root = node.func
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id in MODULES


def callee(call: ast.Call) -> ast.expr:
    """What is called, or launched: `kernel[grid](...)` calls what is subscripted."""
    return call.func.value if isinstance(call.func, ast.Subscript) else call.func
