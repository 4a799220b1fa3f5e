"""What an engine path can reach: a walk over calls and references from its entry methods.

A reference counts like a call: kernels are launched as `kernel[grid](...)`, handed to dispatchers
by decorators, stored in tables. A virtual call reaches the overriding methods of those subclasses
that reached code instantiates or names (rapid type analysis).
"""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from ..result import Call
from .program import ClassRef, FunctionRef, ModuleRef, Program
from .receivers import Receivers, Scope
from .wrappers import Wrap

# Python 3.11 has no syntax for the parameter of a single function.
_Mention = TypeVar("_Mention", ast.Name, ast.Attribute)
MAX_DEPTH = 12
MAX_FUNCTIONS = 4000


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """A function with the shortest chain of calls that leads to it."""

    function: FunctionRef
    receiver: ClassRef | None
    via: Reached | None
    line: int
    depth: int

    def calls(self) -> tuple[Call, ...]:
        """The call path from the entry method to this function, entry first."""
        steps: list[Call] = []
        at: Reached | None = self
        while at is not None:
            line = at.line if at.via else at.function.node.lineno
            where = at.via.function if at.via else at.function
            steps.append(Call(where.module.path, line, at.function.symbol))
            at = at.via
        return tuple(reversed(steps))

    def chain(self) -> Iterator[Reached]:
        """The function and those on the way to it, nearest first."""
        at: Reached | None = self
        while at is not None:
            yield at
            at = at.via

    @property
    def wrapper(self) -> Reached | None:
        """The nearest function on the way that runs in place of another one."""
        return next((one for one in self.chain() if one.function.wraps is not None), None)

    @property
    def entry(self) -> Reached:
        """The entry method from which the function was reached."""
        return list(self.chain())[-1]


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A mention of `target` in a function; `site` is the name or attribute that mentions it.

    A wrapper of the function is mentioned by a decorator, and `wrap` says what it is handed.
    """

    site: ast.expr
    target: Reached
    wrap: Wrap | None = None


# A mention, what it resolves to, and the class through which it was named.
_Static = tuple[ast.expr, FunctionRef | ClassRef, ClassRef | None]


class Reach:
    """Breadth-first over the program; call `run` once, then read `functions` and `edges`.

    Args:
        program: the code.
        receivers: the types of its expressions.
        max_depth: how many calls are followed in a row.
        within: follow only into this package.
    """

    def __init__(
        self,
        program: Program,
        receivers: Receivers,
        max_depth: int = MAX_DEPTH,
        within: str | None = None,
    ) -> None:
        self._max_depth = max_depth
        self._within = within
        self._program = program
        self._receivers = receivers
        self._queue: deque[Reached] = deque()
        self._seen: dict[tuple[int, tuple[str, str] | None], Reached] = {}
        self._instantiated: dict[tuple[str, str], ClassRef] = {}
        self._subclasses: dict[tuple[str, str], list[ClassRef]] = defaultdict(list)
        self._virtual: dict[tuple[str, str], dict[str, list[tuple[Reached, ast.expr]]]] = (
            defaultdict(lambda: defaultdict(list))
        )
        self._known: dict[int, tuple[list[_Static], list[ast.Attribute]]] = {}
        self.functions: list[Reached] = []
        self.edges: dict[Reached, list[Edge]] = defaultdict(list)

    def run(self, entries: Iterable[tuple[FunctionRef, ClassRef | None]]) -> None:
        """Follow everything that the entry functions call or mention; may be called again."""
        for function, receiver in entries:
            self._push(function, receiver, None, None)
        self._drain()

    def run_wrappers(self, functions: Iterable[FunctionRef]) -> None:
        """Follow what runs in place of functions that are not followed themselves."""
        for function in functions:
            entry = Reached(function, None, None, function.node.lineno, 0)
            for wrap in self._receivers.wrappers.of(function).wraps:
                self._push(wrap.function, None, entry, wrap.site, wrap)
        self._drain()

    def _drain(self) -> None:
        while self._queue and len(self.functions) < MAX_FUNCTIONS:
            reached = self._queue.popleft()
            self.functions.append(reached)
            if reached.depth < self._max_depth:
                self._expand(reached)

    def _push(
        self,
        function: FunctionRef,
        receiver: ClassRef | None,
        via: Reached | None,
        site: ast.expr | None,
        wrap: Wrap | None = None,
    ) -> None:
        name = function.module.name
        if self._program.is_outside(name):
            return
        if self._within is not None and not f"{name}.".startswith(f"{self._within}."):
            return
        key = (id(function.node), receiver.key if receiver else None)
        target = self._seen.get(key)
        if target is None:
            line = site.lineno if site else function.node.lineno
            target = Reached(function, receiver, via, line, via.depth + 1 if via else 0)
            self._seen[key] = target
            self._queue.append(target)
        if via is not None and site is not None:
            self.edges[via].append(Edge(site, target, wrap))

    @property
    def classes(self) -> tuple[ClassRef, ...]:
        """The classes that reached code instantiates or names."""
        return tuple(self._instantiated.values())

    def of_receiver(self, receiver: ClassRef) -> list[Reached]:
        """The methods that were reached on instances of a class."""
        return [
            reached
            for reached in self.functions
            if reached.receiver is not None and reached.receiver.key == receiver.key
        ]

    def below(self, starts: Iterable[Reached]) -> set[Reached]:
        """Some functions, and all that calls lead to from them."""
        found: set[Reached] = set()
        waiting = list(starts)
        while waiting:
            reached = waiting.pop()
            if reached not in found:
                found.add(reached)
                waiting += [edge.target for edge in self.edges[reached]]
        return found

    def above(self, starts: Iterable[Reached]) -> set[Reached]:
        """Some functions, and all from which calls lead to them."""
        callers: dict[Reached, list[Reached]] = defaultdict(list)
        for reached, edges in self.edges.items():
            for edge in edges:
                callers[edge.target].append(reached)
        found: set[Reached] = set()
        waiting = list(starts)
        while waiting:
            reached = waiting.pop()
            if reached not in found:
                found.add(reached)
                waiting += callers[reached]
        return found

    def _expand(self, reached: Reached) -> None:
        scope = self._receivers.scope(reached.function, reached.receiver)
        static, dynamic = self._mentions(scope)
        called = {id(call.func) for call in scope.mentions.calls}
        for site, found, owner in static:
            if isinstance(found, FunctionRef):
                self._push(found, owner, reached, site)
            else:
                self._construct(found, reached, site, called=id(site) in called)
        for site in dynamic:
            self._attribute(scope, site, reached)
        for call in scope.mentions.calls:
            self._call(scope, call, reached)
        for wrap in self._receivers.wrappers.of(reached.function).wraps:
            self._push(wrap.function, None, reached, wrap.site, wrap)

    def _mentions(self, scope: Scope) -> tuple[list[_Static], list[ast.Attribute]]:
        """What a function mentions whatever its receiver is, and what depends on the receiver."""
        key = id(scope.function.node)
        if key not in self._known:
            static: list[_Static] = []
            dynamic: list[ast.Attribute] = []
            # `Class.method` and `isinstance(x, Class)` name the class, but make no instance of it.
            bases = {id(attribute.value) for attribute in scope.mentions.attributes}
            asked = _asked(scope)
            bases |= asked
            # Decorators that were followed are known by what they do, not by what they mention.
            followed = self._receivers.wrappers.of(scope.function).followed
            wrapped = scope.function.wraps
            for name in _distinct(scope, scope.mentions.names):
                for meant in self._receivers.meanings(scope, name):
                    if id(name) in followed or (wrapped and meant.node is wrapped.node):
                        continue
                    if isinstance(meant, FunctionRef) or id(name) not in bases:
                        static.append((name, meant, None))
            for attribute in _distinct(scope, scope.mentions.attributes):
                if id(attribute) in followed:
                    continue
                holders = self._holders(scope, attribute.value)
                if not holders:
                    dynamic.append(attribute)
                for named in holders:
                    found = self._program.member(named, attribute.attr)
                    if isinstance(found, ClassRef) and id(attribute) in asked:
                        continue
                    if isinstance(found, FunctionRef | ClassRef):
                        owner = named if isinstance(named, ClassRef) else None
                        static.append((attribute, found, owner))
            self._known[key] = static, dynamic
        return self._known[key]

    def _holders(self, scope: Scope, base: ast.expr) -> list[ModuleRef | ClassRef]:
        """The module or class whose member is mentioned, or the modules of which it is one."""
        named = self._receivers.resolve(scope, base)
        if isinstance(named, ModuleRef | ClassRef):
            return [named]
        return list(self._receivers.modules(scope, base)) if named is None else []

    def _construct(self, cls: ClassRef, reached: Reached, site: ast.expr, *, called: bool) -> None:
        self._instantiate(cls)
        constructor = self.constructor(cls) if called else None
        if constructor is not None:
            self._push(constructor, cls, reached, site)

    def constructor(self, cls: ClassRef) -> FunctionRef | None:
        """The `__init__` that making an instance runs, if the code has it."""
        return self._program.method(cls, "__init__")

    def _attribute(self, scope: Scope, node: ast.Attribute, reached: Reached) -> None:
        base = node.value
        if isinstance(base, ast.Call) and _is_name(base.func, "super"):
            self._super(scope, node, reached)
            return
        for owner in self._receivers.types(scope, base):
            self._virtual_call(owner, node.attr, reached, node)

    def _super(self, scope: Scope, node: ast.Attribute, reached: Reached) -> None:
        owner, receiver = scope.function.owner, scope.receiver
        if owner is not None and receiver is not None:
            found = self._program.method(receiver, node.attr, after=owner)
            if found is not None:
                self._push(found, receiver, reached, node)

    def _call(self, scope: Scope, node: ast.Call, reached: Reached) -> None:
        # An instance that is called runs `__call__`, or `forward` where it is a torch module.
        if not isinstance(node.func, ast.Name | ast.Attribute | ast.Call):
            return
        if self._receivers.resolve(scope, node.func) is not None:
            return
        for owner in self._receivers.types(scope, node.func):
            for name in ("__call__", "forward"):
                self._virtual_call(owner, name, reached, node.func)

    def _virtual_call(self, owner: ClassRef, name: str, reached: Reached, site: ast.expr) -> None:
        self._virtual[owner.key][name].append((reached, site))
        for cls in [owner, *self._subclasses[owner.key]]:
            self._dispatch(cls, name, reached, site)

    def _instantiate(self, cls: ClassRef) -> None:
        if cls.key in self._instantiated:
            return
        self._instantiated[cls.key] = cls
        for ancestor in self._program.ancestry(cls)[1:]:
            self._subclasses[ancestor.key].append(cls)
            for name, sites in list(self._virtual[ancestor.key].items()):
                for via, site in list(sites):
                    self._dispatch(cls, name, via, site)

    def _dispatch(self, cls: ClassRef, name: str, reached: Reached, site: ast.expr) -> None:
        method = self._program.method(cls, name)
        if method is not None:
            self._push(method, cls, reached, site)


def _asked(scope: Scope) -> set[int]:
    """The classes that something is only asked to be an instance of, as nodes by identity."""
    return {
        id(node)
        for call in scope.mentions.calls
        if isinstance(call.func, ast.Name) and call.func.id in {"isinstance", "issubclass"}
        for argument in call.args[1:]
        for node in ast.walk(argument)
    }


def _distinct(scope: Scope, nodes: Iterable[_Mention]) -> Iterator[_Mention]:
    """The mentions worth looking at: all that are called, and of the rest each text once.

    Calls are all needed, because each hands over arguments of its own.
    """
    called = {id(call.func) for call in scope.mentions.calls}
    called |= {
        id(call.func.value) for call in scope.mentions.calls if isinstance(call.func, ast.Subscript)
    }
    seen: set[tuple[str, ...]] = set()
    for node in nodes:
        if not isinstance(node.ctx, ast.Load):
            continue
        text = _text(node)
        if id(node) in called or text is None or text not in seen:
            yield node
        if text is not None:
            seen.add(text)


def _text(node: ast.expr) -> tuple[str, ...] | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (*parts, node.id) if isinstance(node, ast.Name) else None


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
