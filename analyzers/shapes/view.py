"""One function cut out of its file, parsed with libcst only when a rule wants to look."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

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
    _module: cst.Module | None = field(default=None, init=False)
    _offset: int = field(default=0, init=False)
    _spans: Mapping[cst.CSTNode, CodeRange] | None = field(default=None, init=False)

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
        self._offset = self.node.lineno - 1
        if self.node.col_offset:
            text = f"if True:\n{text}"
            self._offset -= 1
        self._module = cst.parse_module(text)
        statement: cst.CSTNode = self._module.body[0]
        if isinstance(statement, cst.If):
            statement = statement.body.body[0]
        return cst.ensure_type(statement, cst.FunctionDef)

    def span(self, node: cst.CSTNode) -> tuple[int, int, int]:
        """First line, column and last line of a node in the file, counted from 1.

        Positions cost three times as much as parsing, so they are resolved for findings only.
        """
        if self._spans is None and self._module is not None:
            wrapper = MetadataWrapper(self._module, unsafe_skip_copy=True)
            self._spans = wrapper.resolve(PositionProvider)
        if self._spans is None:
            raise ValueError("expected a node of the parsed function, found none parsed")
        found = self._spans[node]
        start, end = found.start, found.end
        return start.line + self._offset, start.column + 1, end.line + self._offset


def view_of_source(source: str, logits: Iterable[str] = ()) -> FunctionView:
    """The first function of a piece of source: how rules' own examples are looked at."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return FunctionView(source.encode(), node, node.name, frozenset(logits))
    raise ValueError("expected a function in the source, found none")
