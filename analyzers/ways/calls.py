"""The marks of calls: of what is followed, what only computes, and what nothing tells about."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from ..program.arguments import matched
from ..program.opaque import computes, is_imported, is_passed_over
from ..program.reach import Edge, Reach, Reached
from ..program.survey import last_name
from ..program.taint import DESCRIPTIONS, PRODUCER, bound_names, callee, is_own
from ..program.values import positional
from .code import Code
from .marks import NOTHING, VERIFIED, Mark, Way, mixed
from .values import Values

_MAX_DEPTH = 4


class Calls(Values):
    """Adds what calls give, and what they write into their arguments."""

    def _call(self, call: ast.Call) -> Mark:
        name = last_name(call.func)
        if isinstance(call.func, ast.Attribute) and name == PRODUCER:
            return self._raw(ast.unparse(call.func)) if self._own else self._arguments(call)
        site = callee(call)
        edges = self._edges.get(id(site), [])
        if edges:
            return self._followed(call, edges)
        if isinstance(call.func, ast.Name) and call.func.id in self._local:
            return self._nested(call, self._local[call.func.id])
        if isinstance(call.func, ast.Name) and self._wraps_verifier(call.func.id):
            return VERIFIED
        if self._is_plain(call):
            return self._computed(call, name)
        return self._opaque(call)

    def _wraps_verifier(self, name: str) -> bool:
        """Whether a name stands for the function in whose place this one runs, which verifies."""
        held = self._reached.function.bound.get(name)
        return held is not None and id(held.node) in self._code.nodes

    def _arguments(self, call: ast.Call) -> Mark:
        return mixed(self._value(value) for value in given_to(call))

    def _is_plain(self, call: ast.Call) -> bool:
        if computes(self._code.receivers, self._scope, call):
            return True
        # A method of what is followed is an array's or an object's own.
        own = isinstance(call.func, ast.Attribute) and bool(self._value(call.func.value))
        return own and not is_imported(self._scope, call)

    def _computed(self, call: ast.Call, name: str) -> Mark:
        marks = [self._value(value) for value in given_to(call)]
        base = NOTHING
        if isinstance(call.func, ast.Attribute):
            base = self._value(call.func.value)
            if name in DESCRIPTIONS or name.endswith("_like") or name.startswith("new_"):
                return NOTHING
            if name == "where" and len(marks) == 3:
                return self._selected(*marks)
            if name == "store" and call.args:
                return self._store(call, marks)
            if name == "load" and call.args:
                return mixed(marks)
            if name in {"append", "extend"} or (name.endswith("_") and not name.startswith("_")):
                self._write(call.func.value, mixed(marks), strong=False)
        for word in call.keywords:
            if word.arg == "out":
                self._write(word.value, mixed([base, *marks]), strong=True)
        return mixed([base, *marks])

    def _store(self, call: ast.Call, marks: Sequence[Mark]) -> Mark:
        """`tl.store(pointer + offsets, value, mask)`: verified offsets or masks select."""
        pointer = pointer_of(call.args[0])
        offsets = [self._value(part) for part in _offsets(call.args[0])]
        settled = any(mark.settled for mark in [*offsets, *marks[2:]])
        value = marks[1] if len(marks) > 1 else NOTHING
        self._write(pointer, VERIFIED if settled and value else value, strong=False)
        return NOTHING

    def _nested(self, call: ast.Call, node: ast.FunctionDef) -> Mark:
        """A function of this function: it sees the names around it."""
        if self._depth >= _MAX_DEPTH:
            return self._arguments(call)
        names = positional(node)
        inner = dict(zip(names, [self._value(value) for value in call.args], strict=False))
        inner |= {word.arg: self._value(word.value) for word in call.keywords if word.arg}
        returned, self._returned = self._returned, []
        before, self.state = self.state, self.state | inner
        self._depth += 1
        self._body(node.body)
        self._depth -= 1
        found, self._returned = self._returned, returned
        self.state = {n: m for n, m in self.state.items() if n in before or n.startswith("self.")}
        result = NOTHING
        for _, mark in found:
            result |= mark
        return result

    def _followed(self, call: ast.Call, edges: Sequence[Edge]) -> Mark:
        result = NOTHING
        verified = any(edge.target in self._code.deciding for edge in edges)
        for edge in edges:
            given = self._from(call, edge.target)
            if verified and given.raw and edge.target.function.node.name != "__init__":
                # Beside a verifier, what may run in its place is named, and not the call.
                given = self._raw_from(edge.target)
            result |= given
            for wrapper in wrappers_of(self._code.reach, edge.target):
                if wrapper not in self._code.deciding and edge.target in self._code.deciding:
                    result |= self._raw_from(wrapper)
        return result

    def _from(self, call: ast.Call, target: Reached) -> Mark:
        """What one of the functions gives that a call may lead to."""
        if target in self._code.deciding:
            self._chosen.update(self._choosing(given_to(call)))
            self._pass_back(call, target, dict.fromkeys(settled_by(self._code, target), VERIFIED))
            return VERIFIED
        given = self._bound(call, target)
        if target.function.node.name == "__init__":
            return mixed(given.values())
        return self._transformed(call, target, given)

    def _raw_from(self, function: Reached) -> Mark:
        """What runs in place of a verifier and does not lead to one."""
        symbol, module = function.function.symbol, function.function.module
        line = function.function.node.lineno
        return Mark(raw=frozenset({Way(module.path, line, symbol, opaque=False)}))

    def _choosing(self, values: Sequence[ast.expr]) -> Iterator[Way]:
        """What chose the drafts that a verifier is given, where the target had a say in it."""
        marks = [self._value(value) for value in values]
        if any(mark.raw and not any(way.opaque for way in mark.raw) for mark in marks):
            # What the target said is there as well, so this is not it.
            yield from (way for mark in marks for way in mark.raw if way.opaque)
        for value in values:
            if isinstance(value, ast.Subscript) and not self._value(value.value):
                yield from (way for way in self._value(value.slice).raw if way.line)
            elif isinstance(value, ast.Name) and value.id in self._turned:
                yield from (way for way in self._named(value.id).raw if way.line)

    def _transformed(self, call: ast.Call, target: Reached, given: Mapping[str, Mark]) -> Mark:
        """What code that verifies nothing makes of what it is given."""
        marks = [mark for mark in given.values() if mark]
        if all(mark.settled for mark in marks):
            return VERIFIED if marks else NOTHING
        if any(mark.settled for mark in marks) and self._depth < _MAX_DEPTH:
            outcome = self._code.outcome(target, given, self._depth + 1)
            self._pass_back(call, target, outcome.written)
            return outcome.value
        made = Mark(raw=frozenset({self._way(call, opaque=False)}))
        self._pass_back(call, target, dict.fromkeys(stored_by(self._code, target), made))
        return made

    def _bound(self, call: ast.Call, target: Reached) -> dict[str, Mark]:
        """The marks of the parameters of what is called."""
        return {name: self._value(value) for name, value in matched(call, target)}

    def _pass_back(self, call: ast.Call, target: Reached, written: Mapping[str, Mark]) -> None:
        """What a function writes into its parameters is written into the arguments."""
        for name, value in matched(call, target):
            mark = written.get(name)
            if mark and mark != self._value(value):
                self._write(value, mark, strong=mark.settled)

    def _opaque(self, call: ast.Call) -> Mark:
        """Nothing tells what a call does: all that it is given may be written."""
        values = given_to(call)
        marks = [self._value(value) for value in values]
        base = self._value(call.func.value) if isinstance(call.func, ast.Attribute) else NOTHING
        if not any(mark.raw for mark in [base, *marks]):
            return mixed([base, *marks])
        passed_over = is_passed_over(self._code.receivers, self._scope, call)
        made = Mark(raw=frozenset({self._way(call, opaque=not passed_over)}))
        for value, mark in zip(values, marks, strict=True):
            if isinstance(value, ast.Name) and not mark:
                self._write(value, made, strong=True)
        if isinstance(call.func, ast.Attribute) and not base and not passed_over:
            self._feed(call.func.value, made)
        return made

    def _feed(self, holder: ast.expr, made: Mark) -> None:
        """An object of which nothing is known keeps what it is handed: `picker.feed(logits)`."""
        name = holder.id if isinstance(holder, ast.Name) else ""
        if is_own(holder):
            name = f"self.{holder.attr}"
        if name and name != "self":
            self.state[name] = made

    def _way(self, call: ast.Call, *, opaque: bool) -> Way:
        return Way(self._file, call.lineno, ast.unparse(call.func), opaque)


def stored_by(code: Code, target: Reached) -> frozenset[str]:
    """The parameters into which a function writes by an index."""
    stored = code.receivers.survey(target.function).outline.stored
    return stored & set(positional(target.function.node))


def settled_by(code: Code, target: Reached) -> frozenset[str]:
    """The parameters into which a function, or a verifier that it calls, writes what is kept."""
    if target not in code.settled:
        # Entered before it is known, so that recursion ends.
        code.settled[target] = frozenset()
        code.settled[target] = frozenset(_settled(code, target))
    return code.settled[target]


def _settled(code: Code, target: Reached) -> Iterator[str]:
    node = target.function.node
    if id(node) in code.found:
        yield from stored_by(code, target)
    own = positional(node)
    scope = code.receivers.scope(target.function, target.receiver)
    calls = {id(callee(call)): call for call in scope.mentions.calls}
    marks = {id(part) for mark in node.decorator_list for part in ast.walk(mark)}
    for edge in code.reach.edges[target]:
        if edge.target not in code.deciding:
            continue
        written = settled_by(code, edge.target)
        call = calls.get(id(edge.site))
        if id(edge.site) in marks:
            # A decorator that launches a kernel hands it what the function is given.
            pairs = zip(positional(edge.target.function.node), own, strict=False)
            yield from (mine for theirs, mine in pairs if theirs in written)
        elif call is not None:
            for name, value in matched(call, edge.target):
                if name in written:
                    yield from set(own) & set(bound_names([value]))


def wrappers_of(reach: Reach, reached: Reached) -> Iterator[Reached]:
    """What runs in place of a function, without what only hands its arguments on to such."""
    for edge in reach.edges[reached]:
        if edge.wrap is not None and not edge.wrap.forwards:
            yield edge.target


def given_to(call: ast.Call) -> list[ast.expr]:
    """What a call is given, spread values included."""
    plain = [one.value if isinstance(one, ast.Starred) else one for one in call.args]
    return [*plain, *(word.value for word in call.keywords)]


def pointer_of(address: ast.expr) -> ast.expr:
    """The pointer of `pointer + a * stride + b`."""
    while isinstance(address, ast.BinOp):
        address = address.left
    return address


def _offsets(address: ast.expr) -> Iterator[ast.expr]:
    while isinstance(address, ast.BinOp):
        yield address.right
        address = address.left
