"""Trees grown best first: the best entry of a frontier becomes a node, and its children enter.

The frontier is a heap, a sorted list, or a few arrays of which the best place is looked up. What
makes a tree of it is the link: an entry carries the number of the node below which it hangs, and
the node that is made of it keeps that number as its parent's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from .expressions import MODULES, dotted, names, walk
from .facts import Bind, Facts, Loop, Store

_POPS = frozenset({"heappop", "heappushpop", "heapreplace"})
_PUSHES = frozenset({"heappush", "heappushpop", "heapreplace", "insort", "insort_left"})
_SORTED = frozenset({"sort", "sorted", "insort", "insort_left", "insort_right", "heapify"})
_BEST_PLACE = frozenset({"argmax", "argmin", "argpartition", "argsort"})
_BEST_OF = frozenset({"nlargest", "nsmallest"})
# A part of an entry by its place, by its name, or by the array that holds it; "" if not known.
Slot = int | str


@dataclass(frozen=True, slots=True)
class _Pick:
    """The best entry of a frontier: the names that hold its parts, or its place in arrays."""

    containers: frozenset[str]
    parts: Mapping[str, Slot]
    entry: str = ""
    places: frozenset[str] = frozenset()

    @property
    def taken(self) -> frozenset[str]:
        """The names that hold the entry, its parts or its place."""
        return frozenset(self.parts) | self.places | ({self.entry} if self.entry else set())


def grows_tree(facts: Facts, function: cst.FunctionDef) -> cst.CSTNode | None:
    """The loop of a function that grows a tree best first."""
    pushers = _pushers(function)
    for loop in facts.loops:
        picks = [pick for bind in facts.inside(loop) for pick in _picked(facts, loop, bind)]
        # A merge takes two of the best at a time, and makes one of them.
        if len(picks) == 1 and _Growth(facts, loop, picks[0], pushers).links():
            return loop.node
    return None


def _picked(facts: Facts, loop: Loop, bind: Bind) -> Iterator[_Pick]:
    if bind.loops[-1] is not loop or bind.augmented:
        return
    call = _call_of(bind.value)
    name, operands = _named(call) if call is not None else ("", [])
    first = names(operands[0]) if operands else frozenset[str]()
    if name in _BEST_PLACE and call is not None:
        places = _with_names(facts, loop, bind.targets)
        yield from _in_arrays(facts, loop, places)
    elif name in _POPS or (name in {"min", "max"} and len(operands) == 1 and _is_list(call)):
        yield _entry(facts, loop, bind, first)
    elif name in _BEST_OF and len(operands) == 2:
        yield _entry(facts, loop, bind, names(operands[1]))
    elif name == "pop" and _is_sorted(facts, first):
        yield _entry(facts, loop, bind, first)


def _is_list(call: cst.Call | None) -> bool:
    return call is not None and isinstance(call.func, cst.Name)


def _call_of(value: cst.BaseExpression) -> cst.Call | None:
    """The call behind `int(x.argmin())`, `heap.pop()[0]`, `scores.argmax().item()`."""
    while True:
        if isinstance(value, cst.Subscript | cst.Attribute):
            value = value.value
        elif isinstance(value, cst.Call):
            name, operands = _named(value)
            if name not in {"int", "item", "tolist"} or not operands:
                return value
            value = operands[0]
        else:
            return None


def _named(call: cst.Call) -> tuple[str, list[cst.BaseExpression]]:
    plain = [argument.value for argument in call.args if argument.keyword is None]
    if isinstance(call.func, cst.Attribute):
        module = dotted(call.func.value) in MODULES | {"heapq", "bisect"}
        return call.func.attr.value, [*([] if module else [call.func.value]), *plain]
    return (call.func.value if isinstance(call.func, cst.Name) else ""), plain


def _is_sorted(facts: Facts, container: frozenset[str]) -> bool:
    """Whether a list is kept in order somewhere in the function."""
    for site in facts.calls:
        if isinstance(site.node, cst.Call):
            name, operands = _named(site.node)
            if name in _SORTED and operands and names(operands[0]) & container:
                return True
    return any(
        isinstance(bind.value, cst.Call) and _named(bind.value)[0] == "sorted"
        for name in container
        for bind in facts.bindings(name)
    )


def _entry(facts: Facts, loop: Loop, bind: Bind, containers: frozenset[str]) -> _Pick:
    """The parts of an entry that is taken apart at once, later, or by its fields."""
    parts = dict(_by_place(bind.node))
    if len(bind.targets) != 1 or parts:
        return _Pick(containers, parts)
    (entry,) = bind.targets
    for other in facts.inside(loop):
        if isinstance(other.value, cst.Name) and other.value.value == entry:
            parts |= dict(_by_place(other.node))
        elif (slot := _slot_of(other.value, entry)) is not None:
            parts |= dict.fromkeys(other.targets, slot)
    return _Pick(containers, parts, entry)


def _by_place(node: cst.CSTNode) -> Iterator[tuple[str, Slot]]:
    target = node.targets[0].target if isinstance(node, cst.Assign) else None
    for place, element in enumerate(target.elements if isinstance(target, cst.Tuple) else ()):
        if isinstance(element.value, cst.Name):
            yield element.value.value, place


def _slot_of(node: cst.CSTNode, entry: str) -> Slot | None:
    """Which part of an entry `entry[1]` or `entry.parent` is."""
    if isinstance(node, cst.Attribute) and m.matches(node.value, m.Name(entry)):
        return node.attr.value
    if isinstance(node, cst.Subscript) and m.matches(node.value, m.Name(entry)):
        index = node.slice[0].slice
        if isinstance(index, cst.Index) and isinstance(index.value, cst.Integer):
            return int(index.value.value)
    return None


def _with_names(facts: Facts, loop: Loop, places: frozenset[str]) -> frozenset[str]:
    """The names of a place, and those that take it over: `at = int(best)`."""
    found = set(places)
    for bind in facts.inside(loop):
        if not facts.loads(bind.value) and names(bind.value) & found and not bind.augmented:
            found |= bind.targets
    return frozenset(found)


def _in_arrays(facts: Facts, loop: Loop, places: frozenset[str]) -> Iterator[_Pick]:
    """An entry whose parts lie in several arrays that the loop also writes to elsewhere."""
    read = {
        name
        for part in _values(facts, loop)
        for load in facts.loads(part)
        if load.index & places
        for name in load.base
    }
    written = {name for store in facts.stores if loop in store.loops for name in store.base}
    arrays = frozenset(read & written)
    parts: dict[str, Slot] = {
        name: min(load.base & arrays)
        for bind in facts.inside(loop)
        for load in facts.loads(bind.value)
        if load.index & places and load.base & arrays
        for name in bind.targets
    }
    if arrays:
        yield _Pick(arrays, parts, places=places)


def _values(facts: Facts, loop: Loop) -> Iterator[cst.CSTNode]:
    yield from (bind.value for bind in facts.inside(loop))
    for store in facts.stores:
        if loop in store.loops and store.value is not None:
            yield from (store.value, *store.index_nodes)


def _pushers(function: cst.FunctionDef) -> Mapping[str, tuple[list[str], list[cst.Call]]]:
    """The functions inside a function that push, with their parameters and what they push."""
    found = {}
    for node in walk(function.body):
        if isinstance(node, cst.FunctionDef):
            calls = [one for one in walk(node.body) if isinstance(one, cst.Call)]
            pushes = [call for call in calls if _named(call)[0] in _PUSHES]
            if pushes:
                found[node.name.value] = ([p.name.value for p in node.params.params], pushes)
    return found


@dataclass(frozen=True, slots=True)
class _Push:
    """An entry that is put onto the frontier; `many` if one place puts several."""

    parts: tuple[tuple[Slot, cst.BaseExpression], ...]
    many: bool = False


@dataclass(frozen=True, slots=True)
class _Growth:
    """Asks of a loop whether what it picks, keeps and pushes is a tree."""

    facts: Facts
    loop: Loop
    pick: _Pick
    pushers: Mapping[str, tuple[list[str], list[cst.Call]]]

    def links(self) -> bool:
        """Whether a tree grows in the loop.

        Entries carry their parent's number, more than one per node is pushed, and a candidate is
        kept with each parent.
        """
        kept = [store for store in self.facts.stores if self._is_kept(store)]
        numbers = self._numbers(kept)
        pushes = list(self._pushes())
        for slot in {slot for store in kept for slot in self._slots(store.value)}:
            # The fields of an object that is made by position are not known by name.
            known = {slot, ""} if self.pick.entry else {slot}
            entries = [push for push in pushes if known & {one for one, _ in push.parts}]
            branches = len(entries) > 1 or any(push.many for push in entries) or self._refills()
            if branches and any(
                self._is_number(value, kept, numbers)
                for push in entries
                for one, value in push.parts
                if one in known
            ):
                return any(self._is_candidate(store, slot) for store in kept)
        return False

    def _refills(self) -> bool:
        """Whether the place of what was picked takes another entry: its next sibling."""
        return any(
            self.loop in store.loops
            and store.base & self.pick.containers
            and store.index & self.pick.places
            and store.value is not None
            and (isinstance(store.node, cst.AugAssign) or bool(names(store.value)))
            for store in self.facts.stores
        )

    def _is_kept(self, store: Store) -> bool:
        inside = bool(store.loops) and store.loops[-1] is self.loop and store.value is not None
        return inside and not store.base & self.pick.containers

    def _slots(self, value: cst.CSTNode | None) -> Iterator[Slot]:
        """The parts of the picked entry that a value holds."""
        for node in walk(value) if value is not None else ():
            if isinstance(node, cst.Name) and node.value in self.pick.parts:
                yield self.pick.parts[node.value]
            if self.pick.entry and (slot := _slot_of(node, self.pick.entry)) is not None:
                yield slot
        for load in self.facts.loads(value) if value is not None and self.pick.places else ():
            if load.index & self.pick.places and load.base & self.pick.containers:
                yield min(load.base & self.pick.containers)

    def _numbers(self, kept: list[Store]) -> frozenset[str]:
        """The counters that number the nodes: those by which they are kept, if by any."""
        counted = self.facts.counted(self.loop)
        if self.loop.counts:
            counted |= self.loop.index
        placed = frozenset(name for store in kept for name in store.index) & counted
        return placed or counted

    def _is_number(
        self, value: cst.BaseExpression, kept: list[Store], numbers: frozenset[str]
    ) -> bool:
        """Whether an expression is the number of the node just kept."""
        holders = frozenset(name for store in kept for name in store.base)
        for part in self.facts.expand(value, self.loop, stop=self.pick.taken):
            if names(part) & numbers:
                return True
            lengths = m.findall(part, m.Call(func=m.Name("len")))
            if any(names(length) & holders for length in lengths):
                return True
        return False

    def _is_candidate(self, store: Store, parent: Slot) -> bool:
        """Whether something other than the parent is kept: a token, or what leads to one."""
        if store.value is None:
            return False
        read = [load for load in self.facts.loads(store.value) if load.index & self.pick.taken]
        return bool(read) or any(slot != parent for slot in self._slots(store.value))

    def _pushes(self) -> Iterator[_Push]:
        for site in self.facts.calls:
            if self.loop in site.loops and isinstance(site.node, cst.Call):
                for push in self._pushed(site.node):
                    yield _Push(push.parts, push.many or site.loops[-1] is not self.loop)
        if self.pick.places:
            yield from self._into_arrays()
        for bind in self.facts.inside(self.loop):
            if bind.augmented and bind.targets & self.pick.containers:
                yield from (_Push(self._parts(one), True) for one in _made(bind.value))

    def _pushed(self, call: cst.Call) -> Iterator[_Push]:
        name, operands = _named(call)
        if isinstance(call.func, cst.Name) and name in self.pushers:
            parameters, pushes = self.pushers[name]
            given = dict(zip(parameters, operands, strict=False))
            for push in pushes:
                inner = self._parts(_named(push)[1][-1])
                yield _Push(tuple((slot, _given(value, given)) for slot, value in inner))
        elif len(operands) > 1 and names(operands[0]) & self.pick.containers:
            if name in _PUSHES | {"append", "insert"}:
                yield _Push(self._parts(operands[-1]))
            elif name == "extend":
                yield from (_Push(self._parts(one), True) for one in _made(operands[1]))

    def _into_arrays(self) -> Iterator[_Push]:
        """Writes to the arrays of the frontier, other than to the place of what was picked."""
        for store in self.facts.stores:
            arrays = store.base & self.pick.containers
            if not arrays or self.loop not in store.loops or store.index & self.pick.places:
                continue
            if isinstance(store.value, cst.BaseExpression):
                several = any(isinstance(part, cst.Slice) for part in store.index_nodes)
                inner = store.loops[-1] is not self.loop
                yield _Push(((min(arrays), store.value),), several or inner)

    def _parts(self, entry: cst.BaseExpression) -> tuple[tuple[Slot, cst.BaseExpression], ...]:
        """The parts of an entry that is written out, or bound to a name before."""
        if isinstance(entry, cst.Name):
            made = [bind.value for bind in self.facts.bindings(entry.value)]
            entry = made[0] if len(made) == 1 else entry
        if isinstance(entry, cst.Tuple | cst.List):
            return tuple((place, one.value) for place, one in enumerate(entry.elements))
        if isinstance(entry, cst.Call):
            return tuple(
                (argument.keyword.value if argument.keyword else "", argument.value)
                for argument in entry.args
            )
        return ()


def _given(
    value: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]
) -> cst.BaseExpression:
    """A parameter as the caller gives it."""
    return given.get(value.value, value) if isinstance(value, cst.Name) else value


def _made(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The entries of a list that is written out or comprehended."""
    if isinstance(value, cst.ListComp | cst.GeneratorExp):
        yield value.elt
    elif isinstance(value, cst.List | cst.Tuple):
        yield from (element.value for element in value.elements)
