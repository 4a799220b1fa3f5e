"""Which functions work on the target's logits: the region in which drafts are verified.

Logits, and probabilities made of them, are followed from the methods of the engine's own class
into the parameters of what they call. Drafters compute logits too, from another model; they are
not on this path, so a loop that drafts is never mistaken for one that verifies.

Some engines sample the target's token at every row first and verify the tokens. For them the flow
can be followed through what samplers return as well (`decisions`): a wider region, since later
steps, drafting among them, are handed tokens too.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeGuard

from .evaluate import positional
from .module import FunctionNode
from .program import ClassRef
from .reach import Edge, Reach, Reached
from .receivers import Receivers, Scope
from .survey import parts_of, walk_code

# What the field calls a target's output; an engine's method that has one holds the target's.
SEEDS = frozenset({"logits", "probs", "logprobs"})
# The method by which every model of vLLM turns hidden states into logits.
PRODUCER = "compute_logits"
# What tells of a tensor without its contents, and what reads elements by an index.
DESCRIPTIONS = frozenset({"device", "dtype", "shape", "ndim", "size", "dim", "numel", "stride"})
LOOKUPS = frozenset({"get", "gather", "index_select", "take", "take_along_dim"})
MODULES = frozenset({"torch", "np", "numpy", "F", "tl"})


@dataclass(slots=True, eq=False)
class Region:
    """The functions that receive the target's logits, each with the names that hold them.

    `attributes` are those that hold them in instances of a class; in a function they are among the
    names as `self.attribute`.
    """

    tainted: dict[Reached, set[str]] = field(default_factory=dict)
    attributes: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    # The names of all of them, and of those that are set from outside their class.
    attribute_names: frozenset[str] = frozenset()

    def __contains__(self, reached: Reached) -> bool:
        return reached in self.tainted


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


def follow_logits(
    reach: Reach, receivers: Receivers, engine: Iterable[ClassRef], decisions: bool = False
) -> Region:
    """Follow the logits from the methods of the `engine` classes to a fixed point.

    Args:
        reach: what the engine's sampling step reaches.
        receivers: opens the functions' scopes.
        engine: the engine's class and its bases.
        decisions: follow what samplers make of the logits too.
    """
    owners = {cls.key for cls in engine}
    seeds = [
        reached
        for reached in reach.functions
        if reached.function.owner is not None and reached.function.owner.key in owners
    ]
    return _follow(reach, receivers, seeds, decisions)


def follow_named_logits(reach: Reach, receivers: Receivers) -> Region:
    """The same where no engine class is known: whatever is called logits holds them."""
    return _follow(reach, receivers, reach.functions, True)


def _follow(
    reach: Reach, receivers: Receivers, seeds: Iterable[Reached], decisions: bool
) -> Region:
    region = Region()
    own = set(seeds)
    queue: deque[Reached] = deque(own)
    region.tainted.update((reached, set()) for reached in own)
    while queue:
        reached = queue.popleft()
        flow = Flow(reached in own, decisions, region.attribute_names)
        names = region.tainted[reached] | _held(region, reached)
        names = spread(reached, receivers, names, flow)
        region.tainted[reached] = names
        queue.extend(_keep_attributes(region, reach, receivers, reached, names, flow))
        for target, parameters in passed(reach.edges[reached], reached, receivers, names, flow):
            known = region.tainted.get(target)
            if known is None or not parameters <= known:
                region.tainted[target] = (known or set()) | parameters
                queue.append(target)
    # Seeds without logits are not part of the region.
    region.tainted = {reached: names for reached, names in region.tainted.items() if names}
    return region


def _held(region: Region, reached: Reached) -> set[str]:
    """The attributes of the receiver that hold logits, as names."""
    if reached.receiver is None:
        return set()
    return {f"self.{name}" for name in region.attributes.get(reached.receiver.key, ())}


def _keep_attributes(
    region: Region,
    reach: Reach,
    receivers: Receivers,
    reached: Reached,
    names: set[str],
    flow: Flow,
) -> list[Reached]:
    """Note what a function stores in objects; the functions that have to be seen again for that.

    The engine's own instance holds everything, and is left out.
    """
    again: list[Reached] = []
    found = set(set_on_others(reached, receivers, names, flow))
    if reached.receiver is not None and not flow.seeded:
        kept = region.attributes.setdefault(reached.receiver.key, set())
        new = {name.removeprefix("self.") for name in names if name.startswith("self.")} - kept
        if new:
            kept |= new
            found |= new
            again = reach.of_receiver(reached.receiver)
            for method in again:
                region.tainted.setdefault(method, set())
    if found - region.attribute_names:
        region.attribute_names |= found
        again += [other for other in region.tainted if other not in again]
    return again


def set_on_others(
    reached: Reached, receivers: Receivers, names: set[str], flow: Flow
) -> Iterable[str]:
    """The attributes of other objects that a function sets to logits: `state.scores = logits`."""
    for store in receivers.scope(reached.function, reached.receiver).mentions.stores:
        for target, value in _pairs(store):
            if not isinstance(target, ast.Attribute) or _is_own(target):
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
            anything = flow.seeded or flow.attributes or flow.results
            if not (anything or _read(store.value) & found):
                continue
            if not is_tainted(store.value, found, flow):
                continue
            targets = store.targets if isinstance(store, ast.Assign) else [store.target]
            found.update(bound_names(targets))
        if len(found) == before:
            return found


@lru_cache(maxsize=1 << 14)
def _read(value: ast.expr) -> frozenset[str]:
    """The names in a value, attributes of `self` as `self.name`: cheaper than following it."""
    found: set[str] = set()
    for node in walk_code(value):
        if type(node) is ast.Name:
            found.add(node.id)
        elif _is_own(node):
            found.add(f"self.{node.attr}")
    return frozenset(found)


def bound_names(targets: Sequence[ast.expr]) -> Iterable[str]:
    """The names that an assignment writes to, attributes of `self` as `self.name`."""
    for target in targets:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        for part in parts:
            holder = part.value if isinstance(part, ast.Starred | ast.Subscript) else part
            if isinstance(holder, ast.Name):
                yield holder.id
            elif _is_own(holder):
                yield f"self.{holder.attr}"
            elif isinstance(holder, ast.Tuple | ast.List):
                yield from bound_names([holder])


def _is_own(node: ast.AST) -> TypeGuard[ast.Attribute]:
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
    stack: list[ast.AST] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and node.id in names:
            return True
        if isinstance(node, ast.Attribute) and not _is_own(node) and node.attr in flow.attributes:
            return True
        if _is_own(node) and f"self.{node.attr}" in names:
            return True
        if flow.seeded and isinstance(node, ast.Attribute) and node.attr in SEEDS:
            return True
        if flow.results is not None and isinstance(node, ast.Call):
            called = id(callee(node))
            if called in flow.results:
                return True
            if called in flow.opened:
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


def _carrying(node: ast.AST) -> Iterable[ast.AST]:
    """The parts of an expression whose contents it takes on; an index only selects."""
    if isinstance(node, ast.Subscript):
        return [node.value]
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


def passed(
    edges: list[Edge], reached: Reached, receivers: Receivers, names: set[str], flow: Flow
) -> Iterable[tuple[Reached, set[str]]]:
    """Every callee that is handed logits, with the parameters that hold them there."""
    scope = receivers.scope(reached.function, reached.receiver)
    calls = {id(callee(call)): call for call in scope.mentions.calls}
    marks = reached.function.node.decorator_list
    decorators = {id(node) for mark in marks for node in ast.walk(mark)}
    handed = {
        id(argument): call
        for call in scope.mentions.calls
        for argument in [*call.args, *(word.value for word in call.keywords)]
    }
    for edge in edges:
        if edge.handed is not None:
            own = positional(reached.function.node)
            taken = {name for name, place in edge.handed if own[place] in names}
            if taken:
                yield edge.target, taken
            continue
        call = calls.get(id(edge.site))
        if call is not None and id(edge.site) not in decorators:
            spread = _spread_out(call, scope)
            named = _named(scope, receivers, call)
            parameters = _parameters(spread, edge.target, names, flow, named)
            if parameters:
                yield edge.target, parameters
        elif names and id(edge.site) in decorators:
            # A decorator wraps the function or launches a kernel with its arguments.
            yield edge.target, _all_parameters(edge.target)
        elif id(edge.site) in handed and _parameters(
            handed[id(edge.site)], edge.target, names, flow, False
        ):
            yield edge.target, _all_parameters(edge.target)


def _spread_out(call: ast.Call, scope: Scope) -> ast.Call:
    """A call with the elements of a tuple in the place of `*arguments`, if it is made once."""
    arguments: list[ast.expr] = []
    for argument in call.args:
        made = []
        if isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Name):
            made = scope.locals.get(argument.value.id, [])
        tuples = [one for one in made if isinstance(one, ast.Tuple)]
        arguments += tuples[0].elts if len(made) == len(tuples) == 1 else [argument]
    return ast.Call(call.func, arguments, call.keywords)


def callee(call: ast.Call) -> ast.expr:
    """What is called, or launched: `kernel[grid](...)` calls what is subscripted."""
    return call.func.value if isinstance(call.func, ast.Subscript) else call.func


def _named(scope: Scope, receivers: Receivers, call: ast.Call) -> bool:
    """Whether a method is called as `Class.method(instance, ...)`."""
    if not isinstance(call.func, ast.Attribute):
        return False
    return isinstance(receivers.resolve(scope, call.func.value), ClassRef)


def _parameters(
    call: ast.Call, target: Reached, names: set[str], flow: Flow, named: bool
) -> set[str]:
    arguments = target.function.node.args
    positional = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    if target.function.owner is not None and _takes_itself(target.function.node, named):
        positional = positional[1:]
    found: set[str] = set()
    for place, value in enumerate(call.args):
        if not is_tainted(value, names, flow):
            continue
        if isinstance(value, ast.Starred):
            return _all_parameters(target)
        if place < len(positional):
            found.add(positional[place])
        elif arguments.vararg is not None:
            found.add(arguments.vararg.arg)
    for word in call.keywords:
        if is_tainted(word.value, names, flow):
            if word.arg is None:
                return _all_parameters(target)
            found.add(word.arg)
    return found


def _takes_itself(method: FunctionNode, named: bool) -> bool:
    """Whether Python hands a method its instance or class before the arguments of the call."""
    marks = {mark.id for mark in method.decorator_list if isinstance(mark, ast.Name)}
    if "staticmethod" in marks:
        return False
    return "classmethod" in marks or method.name == "__init__" or not named


def _all_parameters(target: Reached) -> set[str]:
    """All parameters, also those of functions defined inside (a decorator's wrapper)."""
    found: set[str] = set()
    for node in ast.walk(target.function.node):
        if isinstance(node, ast.arguments):
            every = [*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg]
            found.update(argument.arg for argument in every if argument is not None)
    return found - {"self", "cls"}
