"""One function cut out of its file, parsed with libcst only when a rule wants to look."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from ..program.module import FunctionNode
from .facts import Facts, collect


@dataclass(slots=True, eq=False)
class FunctionView:
    """A function as rules see it.

    Args:
        source: the whole file.
        node: the function in the file's `ast`.
        symbol: its qualified name.
        logits: the local names that hold the target's logits or what was made of them.
    """

    source: bytes
    node: FunctionNode
    symbol: str = ""
    logits: frozenset[str] = frozenset()
    _tree: cst.FunctionDef | None = field(default=None, init=False)
    _facts: Facts | None = field(default=None, init=False)
    _positions: dict[cst.CSTNode, tuple[int, int, int]] = field(default_factory=dict, init=False)

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
        lines = self.source.decode("utf-8", "replace").splitlines(keepends=True)
        text = "".join(lines[self.node.lineno - 1 : self.node.end_lineno])
        # An indented function stands in a block; one more line on top keeps the indentation.
        offset = self.node.lineno - 1
        if self.node.col_offset:
            text = f"if True:\n{text}"
            offset -= 1
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        for node, span in wrapper.resolve(PositionProvider).items():
            start, end = span.start, span.end
            self._positions[node] = (start.line + offset, start.column + 1, end.line + offset)
        found: list[cst.FunctionDef] = []
        wrapper.module.visit(_FirstFunction(found))
        return found[0]

    def span(self, node: cst.CSTNode) -> tuple[int, int, int]:
        """First line, column and last line of a node in the file, counted from 1."""
        return self._positions[node]

    def line(self, node: cst.CSTNode) -> int:
        """The first line of a node in the file."""
        return self._positions[node][0]


class _FirstFunction(cst.CSTVisitor):
    def __init__(self, found: list[cst.FunctionDef]) -> None:
        self._found = found

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self._found.append(node)
        return False


def view_of_source(source: str, logits: Iterable[str] = ()) -> FunctionView:
    """The first function of a piece of source: how rules' own examples are looked at."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return FunctionView(source.encode(), node, node.name, frozenset(logits))
    raise ValueError("expected a function in the source, found none")
