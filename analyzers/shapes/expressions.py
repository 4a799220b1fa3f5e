"""Names and loads in an expression.

A *load* is any way to read an element of something by an index: `x[i]`, `tl.load(ptr + i)`,
`x.gather(1, i)`, `torch.index_select(x, 0, i)`, `table.get(i)`; and `node.field`, which reads a
field by the node. Chains of attributes (`self.parents`) count as one name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import libcst as cst
import libcst.matchers as m

MODULES = frozenset({"torch", "np", "numpy", "tl", "triton", "math", "F", "libdevice"})
GATHERS = frozenset(
    {"gather", "index_select", "take", "take_along_dim", "take_along_axis", "get", "select", "load"}
)
# What tells of a tensor without its contents is no array that is read.
_FORM = m.Attribute(
    attr=m.Name(value=m.MatchIfTrue(frozenset({"shape", "dtype", "device", "ndim"}).__contains__))
)
_LOAD_CALL = m.Call(func=m.Attribute(attr=m.Name(m.MatchIfTrue(GATHERS.__contains__))))
_CONSTANT = (
    m.Integer()
    | m.Float()
    | m.SimpleString()
    | m.Name("None")
    | m.Name("True")
    | m.Name("False")
    | m.UnaryOperation(expression=m.Integer() | m.Float())
)


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """One read by index: the names of what is read, and the names in the index."""

    node: cst.CSTNode
    base: frozenset[str]
    index: frozenset[str]
    index_nodes: tuple[cst.CSTNode, ...]


def dotted(node: cst.CSTNode) -> str | None:
    """`a.b.c` as one string; None for anything but a chain of names."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr.value}" if base else None
    return None


def is_constant(node: cst.CSTNode) -> bool:
    """Whether an expression is a literal."""
    return m.matches(node, _CONSTANT)


# Fields of nodes that hold only layout.
_LAYOUT = ("whitespace", "leading", "trailing", "header", "footer", "lpar", "rpar", "lbra")
_PUNCTUATION = ("rbra", "comma", "semicolon", "dot", "equal")

_SEQUENCES = (tuple, list)


# Both are asked millions of times: `dataclasses.fields` and abstract bases are slow.
_FIELDS: dict[type[cst.CSTNode], tuple[str, ...]] = {}
_NODES: dict[type[object], bool] = {}


def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    known = _FIELDS.get(kind)
    if known is None:
        every = (field.name for field in fields(kind))
        known = _FIELDS[kind] = tuple(
            name for name in every if not name.startswith(_LAYOUT + _PUNCTUATION)
        )
    return known


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The parts of a node that are code, in order.

    libcst's own `children` visits layout too and builds a visitor each time: ten times slower.
    """
    found: list[cst.CSTNode] = []
    for name in _fields(type(node)):
        value = getattr(node, name)
        if _is_node(type(value)):
            found.append(value)
        elif value.__class__ in _SEQUENCES:
            found.extend(item for item in value if _is_node(type(item)))
    return found


def _is_node(kind: type[object]) -> bool:
    known = _NODES.get(kind)
    if known is None:
        known = _NODES[kind] = issubclass(kind, cst.CSTNode)
    return known


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """All nodes of code below an expression, itself first, in source order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(children(current)))


@lru_cache(maxsize=1 << 15)
def names(node: cst.CSTNode) -> frozenset[str]:
    """The names an expression reads; functions of known modules and keywords are left out."""
    return frozenset(_names(node, True))


@lru_cache(maxsize=1 << 15)
def value_names(node: cst.CSTNode) -> frozenset[str]:
    """The names whose values an expression takes on: those inside comparisons are left out."""
    return frozenset(_names(node, False))


def _names(node: cst.CSTNode, into_comparisons: bool) -> Iterator[str]:
    if isinstance(node, cst.Comparison) and not into_comparisons:
        return
    if isinstance(node, cst.Name):
        if node.value not in MODULES:
            yield node.value
    elif isinstance(node, cst.Attribute):
        chain = dotted(node)
        if chain is None:
            yield from _names(node.value, into_comparisons)
        elif chain.partition(".")[0] not in MODULES:
            yield chain
            yield from _names(node.value, into_comparisons)
    elif isinstance(node, cst.Arg):
        yield from _names(node.value, into_comparisons)
    elif isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute):
            yield from _names(node.func.value, into_comparisons)
        for argument in node.args:
            yield from _names(argument, into_comparisons)
    else:
        for child in children(node):
            yield from _names(child, into_comparisons)


@lru_cache(maxsize=1 << 15)
def loads(node: cst.CSTNode, into_comparisons: bool = True) -> tuple[Load, ...]:
    """Every load in an expression, outermost first."""
    return tuple(_loads(node, into_comparisons))


def _loads(node: cst.CSTNode, into_comparisons: bool) -> Iterator[Load]:
    stack = [node]
    while stack:
        inner = stack.pop()
        if isinstance(inner, cst.Comparison) and not into_comparisons:
            continue
        found = _load(inner)
        if found is not None:
            yield found
        if isinstance(inner, cst.Call) and isinstance(inner.func, cst.Attribute):
            # The name of a method is no field that is read.
            stack.extend([inner.func.value, *inner.args])
        else:
            stack.extend(children(inner))


def _load(node: cst.CSTNode) -> Load | None:
    if isinstance(node, cst.Subscript):
        if m.matches(node.value, _FORM):
            return None
        return _made(node, node.value, [item.slice for item in node.slice])
    if m.matches(node, _FORM):
        return None
    if isinstance(node, cst.Call) and m.matches(node, _LOAD_CALL):
        return _called(node)
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
        root = node.value.value
        if root not in MODULES and root not in {"self", "cls"}:
            return Load(node, frozenset({f".{node.attr.value}"}), frozenset({root}), (node.value,))
    return None


def _called(node: cst.Call) -> Load | None:
    function = cst.ensure_type(node.func, cst.Attribute)
    arguments = [argument.value for argument in node.args]
    if not arguments:
        return None
    if function.attr.value == "load":
        return _made(node, *split_address(arguments[0]))
    if dotted(function.value) in MODULES:
        return _made(node, arguments[0], arguments[1:])
    return _made(node, function.value, arguments)


def split_address(address: cst.BaseExpression) -> tuple[cst.CSTNode, list[cst.CSTNode]]:
    """The pointer and the offsets of `ptr + a * stride + b`: its leftmost leaf, and all else."""
    leaf: cst.CSTNode = address
    offsets: list[cst.CSTNode] = []
    while isinstance(leaf, cst.BinaryOperation):
        offsets.append(leaf.right)
        leaf = leaf.left
    return leaf, offsets


def _made(node: cst.CSTNode, base: cst.CSTNode, index: Sequence[cst.CSTNode]) -> Load:
    found = frozenset(name for part in index for name in names(part))
    return Load(node, names(base), found, tuple(index))
