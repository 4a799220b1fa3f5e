"""One function cut out of its file, parsed with libcst only when a rule wants to look."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import libcst as cst

from ..program.module import FunctionNode
from .collect import collect
from .expressions import walk
from .facts import Facts


@dataclass(slots=True, eq=False)
class FunctionView:
    """A function as rules see it.

    Args:
        source: the whole file.
        node: the function in the file's `ast`.
        symbol: its qualified name.
        logits: the local names that hold the target's logits or what was made of them.
        held: gives the local names that hold what else the rules of a scope ask about: matches of
            drafted tokens (`LOGITS`), attention scores (`MASKED`), the KV cache (`COMMIT`).
        defines: whether a dotted name stands for a function whose code is at hand.
    """

    source: bytes
    node: FunctionNode
    symbol: str = ""
    logits: frozenset[str] = frozenset()
    held: Callable[[], frozenset[str]] = frozenset
    defines: Callable[[str], bool] = lambda _: False
    _tree: cst.FunctionDef | None = field(default=None, init=False)
    _facts: Facts | None = field(default=None, init=False)

    @property
    def tree(self) -> cst.FunctionDef:
        """The function as libcst sees it, without its decorators.

        Raises:
            cst.ParserSyntaxError: `ast` accepts the function and libcst does not.
        """
        if self._tree is None:
            self._tree = self._parse()
        return self._tree

    @property
    def facts(self) -> Facts:
        """What the function binds, compares, stores and calls; collected once for all rules."""
        if self._facts is None:
            self._facts = collect(self.tree)
        return self._facts

    def _parse(self) -> cst.FunctionDef:
        # Bytes are split where Python ends a line; text would be split at form feeds as well.
        lines = self.source.splitlines(keepends=True)
        text = b"".join(lines[self.node.lineno - 1 : self.node.end_lineno]).decode(
            "utf-8", "replace"
        )
        # An indented function stands in a block.
        if self.node.col_offset:
            text = f"if True:\n{text}"
        statement: cst.CSTNode = cst.parse_module(text).body[0]
        if isinstance(statement, cst.If):
            statement = statement.body.body[0]
        return cst.ensure_type(statement, cst.FunctionDef)

    def span(self, node: cst.CSTNode) -> tuple[int, int, int]:
        """First line, column and last line of a node in the file, counted from 1.

        libcst resolves positions by writing the function out again, which costs three times as
        much as parsing; the `ast` has them, so the nodes of one kind are matched by their order.
        """
        kind = _TWINS[type(node)]
        mine = [other for other in walk(self.tree) if type(other) in _TWINS]
        same = [other for other in mine if _TWINS[type(other)] is kind]
        place = next(place for place, other in enumerate(same) if other is node)
        marks = {id(part) for mark in self.node.decorator_list for part in ast.walk(mark)}
        every = (other for other in ast.walk(self.node) if id(other) not in marks)
        twins = [other for other in every if isinstance(other, kind)]
        twins.sort(key=_order)
        found = twins[place]
        return found.lineno, found.col_offset + 1, found.end_lineno or found.lineno


_Positioned = ast.stmt | ast.expr
# The kinds of nodes that findings are made at, with their counterparts.
_TWINS: dict[type[cst.CSTNode], type[_Positioned]] = {
    cst.For: ast.For,
    cst.While: ast.While,
    cst.FunctionDef: ast.FunctionDef,
    cst.Assign: ast.Assign,
    cst.AnnAssign: ast.AnnAssign,
    cst.AugAssign: ast.AugAssign,
    cst.NamedExpr: ast.NamedExpr,
    cst.Call: ast.Call,
    cst.BinaryOperation: ast.BinOp,
}


def _order(node: _Positioned) -> tuple[int, int, int, int]:
    # Of two that begin together, the outer one comes first, as it does in libcst.
    return node.lineno, node.col_offset, -(node.end_lineno or 0), -(node.end_col_offset or 0)


def view_of_source(
    source: str, logits: Iterable[str] = (), held: Iterable[str] = ()
) -> FunctionView:
    """The first function of a piece of source: how rules' own examples are looked at."""
    beside = frozenset(held)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return FunctionView(source.encode(), node, node.name, frozenset(logits), lambda: beside)
    raise ValueError("expected a function in the source, found none")
