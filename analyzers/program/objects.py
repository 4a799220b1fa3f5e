"""Objects that carry followed values in their fields, and which reads of a field are of them.

Fields are followed by name, since of most expressions the class is not known. So that a field is
not read out of an object that never got there, the objects that were made with such values are
followed too.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from .reach import Reach, Reached
from .receivers import Receivers
from .results import Followed, follow, returned
from .taint import MODULES, Flow, callee, is_tainted


@dataclass(slots=True)
class Objects:
    """Where the objects go that carry what was followed.

    Args:
        reach: the functions.
        receivers: opens their scopes.
        values: what was followed.
    """

    reach: Reach
    receivers: Receivers
    values: Followed
    _held: Followed
    _free: frozenset[Reached]

    def __init__(self, reach: Reach, receivers: Receivers, values: Followed) -> None:
        self.reach, self.receivers, self.values = reach, receivers, values
        built = list(self._built())
        calls = {call for _, call in built}
        starts: dict[Reached, set[str]] = {reached: set() for reached, _ in built}
        self._held = follow(
            reach,
            receivers,
            held=starts,
            seed=lambda _, node: id(node) in calls,
            stop=_is_no_object,
            whole=True,
        )
        called = {edge.target for edges in reach.edges.values() for edge in edges}
        entries = frozenset(one for one in reach.functions if one not in called)
        # What nobody calls is handed what leaves the code at hand, by a model that calls it.
        some = [*starts, *self._held.names, *values.names]
        out = any(self._goes_out(one, one in entries) for one in some)
        self._free = entries if out else frozenset()

    def carry(self, reached: Reached, read: ast.Attribute) -> bool:
        """Whether a field is read, in a function, of an object that may carry a followed value."""
        names = self._held.names.get(reached, set())
        return reached in self._free or is_tainted(read.value, names, self._flow)

    @property
    def _flow(self) -> Flow:
        return Flow(
            seeded=False,
            decisions=True,
            attributes=self._held.attributes,
            results=frozenset(),
            stop=_is_no_object,
        )

    def _built(self) -> Iterator[tuple[Reached, int]]:
        """The calls that make an object and give it a followed value, or whose class keeps one."""
        yield from ((reached, call) for call, reached in self.values.built.items())
        for reached in self.reach.functions if self.values.owners else ():
            scope = self.receivers.scope(reached.function, reached.receiver)
            for call, cls in self.receivers.instances(scope):
                if cls.key in self.values.owners:
                    yield reached, id(call)

    def _goes_out(self, reached: Reached, entry: bool) -> bool:
        """Whether objects, or values themselves, leave the code that is at hand."""
        names = self._held.names.get(reached, set()) | self.values.names.get(reached, set())
        if entry and any(
            is_tainted(value, names, self._flow) for value in returned(self.receivers, reached)
        ):
            return True
        known = {id(edge.site) for edge in self.reach.edges[reached]}
        scope = self.receivers.scope(reached.function, reached.receiver)
        return any(
            id(callee(call)) not in known
            and _is_foreign(call)
            and any(
                is_tainted(one, names, self._flow)
                for one in [*call.args, *(word.value for word in call.keywords)]
            )
            for call in scope.mentions.calls
        )


# What gives an object back that was put into a container.
_CONTAINERS = frozenset(
    {"list", "tuple", "dict", "set", "zip", "enumerate", "sorted", "reversed", "iter", "next"}
)


def _is_no_object(node: ast.AST) -> bool:
    """Whether an expression is a part of an object, or computed from it, and so none itself.

    A method of an object of unknown class may give another one that it holds.
    """
    if isinstance(node, ast.Call):
        root = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        name = root.id if isinstance(root, ast.Name) else ""
        return name in MODULES or (root is node.func and name not in _CONTAINERS)
    return isinstance(node, ast.Attribute | ast.BinOp | ast.UnaryOp | ast.Compare)


def _is_foreign(call: ast.Call) -> bool:
    """Whether a call leads to none of the modules of arrays, and to no method of an array."""
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id in MODULES or hasattr(builtins, root.id):
        return False
    return isinstance(call.func, ast.Name) or root.id == "self"
