"""The statements of a function, run over marks."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from ..program.reach import Reached
from ..program.survey import last_name
from ..program.values import positional
from .calls import Calls, pointer_of
from .code import Code
from .marks import NOTHING, VERIFIED, Mark, Outcome, decided, mixed


def run(code: Code, reached: Reached, given: Mapping[str, Mark], depth: int) -> Outcome:
    """What a function returns and writes, for what its parameters hold."""
    return Statements(code, reached, dict(given), depth).outcome()


class Statements(Calls):
    """Adds the order of statements: branches that join, loops, and what a verifier settles."""

    def outcome(self) -> Outcome:
        """Run the whole body."""
        self._body(self._reached.function.node.body)
        parameters = positional(self._reached.function.node)
        written = {
            name: self.state[name]
            for name in parameters
            if self.state.get(name) and self.state[name] != self._given.get(name)
        }
        return Outcome(tuple(self._returned), written, tuple(self._kept), frozenset(self._chosen))

    def _body(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)
            if self._verifies(statement):
                self._settle(statement)

    def _verifies(self, statement: ast.stmt) -> bool:
        """Whether a verifier that a rule found is this very statement, or lies in it alone."""
        if isinstance(statement, ast.For | ast.While):
            return any(lines.start == statement.lineno for lines in self._verifiers)
        if hasattr(statement, "body") or isinstance(statement, ast.Match):
            return False
        end = statement.end_lineno or statement.lineno
        return any(statement.lineno <= lines.start <= end for lines in self._verifiers)

    def _settle(self, statement: ast.stmt) -> None:
        """What the statement of a verifier assigns, it decided."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.state[node.id] = VERIFIED
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                self._write(node.value, VERIFIED, strong=True)
            elif isinstance(node, ast.Call):
                self._settle_call(node)

    def _settle_call(self, call: ast.Call) -> None:
        name = last_name(call.func)
        if name in {"append", "extend", "copy_"} and isinstance(call.func, ast.Attribute):
            self._write(call.func.value, VERIFIED, strong=True)
        elif name == "store" and call.args:
            self._write(pointer_of(call.args[0]), VERIFIED, strong=True)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                mark = self._value(value)
                for target in targets:
                    self._assign(target, mark, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self._value(value), value)
            case ast.AugAssign(target=target, value=value):
                self._write(target, mixed([self._value(target), self._value(value)]), strong=True)
            case ast.Expr(value=value):
                self._value(value)
            case ast.Return(value=value):
                self._return(statement, value)
            case ast.FunctionDef():
                self._local[statement.name] = statement
            case _:
                self._compound(statement)

    def _return(self, statement: ast.Return, value: ast.expr | None) -> None:
        if value is not None:
            self._returned.append((statement, self._value(value)))

    def _compound(self, statement: ast.stmt) -> None:
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                self._choice(test, body, orelse)
            case ast.For(target=target, iter=source, body=body, orelse=orelse):
                self._assign(target, self._value(source), source)
                self._loop(body, orelse)
            case ast.While(test=test, body=body, orelse=orelse):
                self._value(test)
                self._loop(body, orelse)
            case ast.With(items=items, body=body):
                for item in items:
                    mark = self._value(item.context_expr)
                    if item.optional_vars is not None:
                        self._assign(item.optional_vars, mark, item.context_expr)
                self._body(body)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                before = dict(self.state)
                self._body([*body, *orelse])
                for handler in handlers:
                    self._join(self._branch(before, handler.body))
                self._body(final)
            case ast.Match(subject=subject, cases=cases):
                self._value(subject)
                before = dict(self.state)
                for case in cases:
                    self._join(self._branch(before, case.body))

    def _loop(self, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        before = dict(self.state)
        # The second round sees what the first one left.
        for _ in range(2):
            self._body(body)
            self._join(before)
        self._body(orelse)

    def _choice(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        settled = self._value(test).settled
        before = dict(self.state)
        after = self._guarded(before, body, settled, empty=self._is_absent(body))
        other = self._guarded(before, orelse, settled, empty=self._is_absent(orelse))
        ends = [_leaves(body), _leaves(orelse)]
        if ends == [True, False]:
            self.state = other
        elif ends == [False, True]:
            self.state = after
        else:
            self.state = after
            self._join(other)

    def _is_absent(self, body: list[ast.stmt]) -> bool:
        return bool(body) and id(body[0]) in self._code.absent

    def _guarded(
        self, before: dict[str, Mark], body: list[ast.stmt], settled: bool, *, empty: bool
    ) -> dict[str, Mark]:
        """The state after a branch; where nothing was drafted, there is nothing to verify."""
        returned, kept = len(self._returned), len(self._kept)
        after = self._branch(before, body)
        if not empty and not settled:
            return after
        relieved = _without_raw if empty else decided
        self._returned[returned:] = [(at, relieved(mark)) for at, mark in self._returned[returned:]]
        self._kept[kept:] = [(at, relieved(mark)) for at, mark in self._kept[kept:]]
        return {
            name: mark if before.get(name) == mark else relieved(mark)
            for name, mark in after.items()
        }

    def _branch(self, before: dict[str, Mark], body: list[ast.stmt]) -> dict[str, Mark]:
        saved, self.state = self.state, dict(before)
        self._body(body)
        after, self.state = self.state, saved
        return after

    def _join(self, other: Mapping[str, Mark]) -> None:
        for name in self.state.keys() | other.keys():
            self.state[name] = self.state.get(name, NOTHING) | other.get(name, NOTHING)


def _without_raw(mark: Mark) -> Mark:
    return VERIFIED if mark else NOTHING


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a branch certainly ends in a jump."""
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
