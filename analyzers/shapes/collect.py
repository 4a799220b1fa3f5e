"""One visit of a function that sorts what it binds, stores, calls, compares and leaves early."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from .expressions import children, dotted, names, split_address
from .facts import COMPARE_CALL, Bind, Facts, Loop, Site, Store


def collect(function: cst.FunctionDef) -> Facts:
    """Walk a function once and sort what it does."""
    facts = Facts(parameters=frozenset(_parameters(function)))
    _Collector(facts, function).walk(function.body)
    if facts.recursion is not None and not any(
        facts.recursion in bind.loops and bind.recursive for bind in facts.binds
    ):
        facts.recursion = None
    return facts


def _parameters(function: cst.FunctionDef) -> list[str]:
    listed = function.params
    every = [*listed.posonly_params, *listed.params, *listed.kwonly_params]
    return [parameter.name.value for parameter in every]


class _Collector:
    """Walks statements and expressions, and keeps track of the loops and conditions around."""

    def __init__(self, facts: Facts, function: cst.FunctionDef) -> None:
        self._facts = facts
        self._own = {function.name.value, f"self.{function.name.value}"}
        self._parameters = [name for name in _parameters(function) if name != "self"]
        # All of the function is one round, if it turns out to call itself.
        facts.recursion = Loop(function, frozenset(), None)
        self._loops: tuple[Loop, ...] = (facts.recursion,)
        self._guards: tuple[cst.BaseExpression, ...] = ()

    def walk(self, node: cst.CSTNode) -> None:
        """Sort one node, then what is below it."""
        loops, guards = self._loops, self._guards
        match node:
            case cst.For():
                self._for(node)
            case cst.While():
                self._enter(Loop(node, frozenset(), node.test))
                self._condition(node.test)
            case cst.If():
                self._condition(node.test)
            case cst.Comparison():
                self._facts.compares.append(self._site(node))
            case cst.Call():
                self._call(node)
            case cst.Break() | cst.Return():
                self._leave(node)
            case cst.Continue():
                self._facts.skips.append(self._site(node))
            case _:
                self._assign(node)
        for child in children(node):
            self.walk(child)
        self._loops, self._guards = loops, guards

    def _site(self, node: cst.CSTNode) -> Site:
        return Site(node, self._loops, self._guards)

    def _enter(self, loop: Loop) -> None:
        self._facts.loops.append(loop)
        self._loops = (*self._loops, loop)

    def _for(self, node: cst.For) -> None:
        loop = Loop(node, frozenset(_target_names(node.target)), node.iter)
        self._enter(loop)
        if not loop.counts:
            self._bind(node.target, node.iter, node, False)

    def _condition(self, test: cst.BaseExpression) -> None:
        self._facts.conditions.append(self._site(test))
        self._guards = (*self._guards, test)

    def _leave(self, node: cst.Break | cst.Return) -> None:
        self._facts.exits.append(self._site(node))
        if isinstance(node, cst.Return) and node.value is not None:
            self._facts.returns.append(node.value)

    def _call(self, node: cst.Call) -> None:
        self._facts.calls.append(self._site(node))
        if m.matches(node, COMPARE_CALL):
            self._facts.compares.append(self._site(node))
        store = _store_call(node, self._loops, self._guards)
        if store is not None:
            self._facts.stores.append(store)
            self._grow(store)
        if dotted(node.func) in self._own:
            self._recurse(node)

    def _grow(self, store: Store) -> None:
        """A list that is appended to takes on the value: its last element may be read again."""
        if not store.index_nodes and isinstance(store.value, cst.BaseExpression):
            self._facts.binds.append(
                Bind(store.base, store.value, self._loops, self._guards, False, store.node)
            )

    def _recurse(self, node: cst.Call) -> None:
        for place, argument in enumerate(node.args):
            keyword = argument.keyword.value if argument.keyword else None
            if keyword is None and place < len(self._parameters):
                keyword = self._parameters[place]
            if keyword is not None:
                bound = frozenset({keyword})
                self._facts.binds.append(
                    Bind(bound, argument.value, self._loops, self._guards, False, node, True)
                )

    def _assign(self, node: cst.CSTNode) -> None:
        match node:
            case cst.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target.target, value, node, False)
            case cst.AnnAssign(target=target, value=cst.BaseExpression() as value):
                self._bind(target, value, node, False)
            case cst.AugAssign(target=target, value=value):
                self._bind(target, value, node, True)
            case cst.NamedExpr(target=target, value=value):
                self._bind(target, value, node, False)

    def _bind(
        self, target: cst.CSTNode, value: cst.BaseExpression, node: cst.CSTNode, augmented: bool
    ) -> None:
        bound = frozenset(_target_names(target))
        if bound:
            self._facts.binds.append(Bind(bound, value, self._loops, self._guards, augmented, node))
        for written in _subscripts(target):
            index = tuple(item.slice for item in written.slice)
            found = frozenset(name for part in index for name in names(part))
            self._facts.stores.append(
                Store(names(written.value), found, index, value, self._loops, node, self._guards)
            )


def _store_call(
    node: cst.Call, loops: tuple[Loop, ...], guards: tuple[cst.BaseExpression, ...]
) -> Store | None:
    if not isinstance(node.func, cst.Attribute):
        return None
    arguments = [argument.value for argument in node.args]
    called = node.func.attr.value
    if called == "store" and len(arguments) >= 2:
        pointer, offsets = split_address(arguments[0])
        index = frozenset(name for part in offsets for name in names(part))
        return Store(names(pointer), index, tuple(offsets), arguments[1], loops, node, guards)
    if called in {"append", "add", "extend"} and len(arguments) == 1:
        return Store(names(node.func.value), frozenset(), (), arguments[0], loops, node, guards)
    if called in {"index_copy_", "scatter_", "index_put_"} and len(arguments) >= 2:
        index = frozenset(name for part in arguments[:-1] for name in names(part))
        value = arguments[-1]
        places = tuple(arguments[:-1])
        return Store(names(node.func.value), index, places, value, loops, node, guards)
    return None


def _target_names(target: cst.CSTNode) -> Iterator[str]:
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _target_names(element.value)


def _subscripts(target: cst.CSTNode) -> Iterator[cst.Subscript]:
    if isinstance(target, cst.Subscript):
        yield target
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _subscripts(element.value)
