"""Places of a function at which a mask is put onto attention scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import libcst as cst
import libcst.matchers as m

from .expressions import MODULES, children, dotted, names, walk
from .facts import Facts
from .view import FunctionView

_FILLS = frozenset({"masked_fill", "masked_fill_"})
# Attention as one call, each with the places and the words of its masks.
_ATTENDS: dict[str, tuple[slice, tuple[str, ...]]] = {
    "scaled_dot_product_attention": (slice(3, 4), ("attn_mask",)),
    "memory_efficient_attention": (slice(3, 4), ("attn_bias",)),
    "flex_attention": (slice(3, 5), ("score_mod", "block_mask")),
    "plan": (slice(0), ("custom_mask", "packed_custom_mask")),
    "begin_forward": (slice(0), ("custom_mask", "packed_custom_mask")),
    "single_prefill_with_kv_cache": (slice(0), ("custom_mask", "packed_custom_mask")),
}
_SOFTMAX = frozenset({"softmax", "log_softmax", "logsumexp", "exp", "exp2"})
_PRODUCTS = frozenset({"dot", "matmul", "bmm", "mm", "einsum", "inner", "tensordot", "baddbmm"})
# What a function that masks scores calls, unless it has products written as `@`.
CALLED = _FILLS | _SOFTMAX | _PRODUCTS | _ATTENDS.keys() | {"where"}
_PRODUCT = m.BinaryOperation(operator=m.MatrixMultiply()) | m.Call(
    func=m.Attribute(attr=m.Name(m.MatchIfTrue(_PRODUCTS.__contains__)))
)
_INFINITE = (
    m.SimpleString(m.MatchRegex(r"[\"']-?inf(inity)?[\"']"))
    | m.Attribute(attr=m.Name("inf") | m.Name("min") | m.Name("NINF"))
    | m.Name(m.MatchRegex(r"(?i)(minus|neg|negative)_?(inf|infinity|large)"))
    | m.UnaryOperation(
        operator=m.Minus(), expression=m.Float(m.MatchRegex(r"(?i).*e\+?\d+|\d{4}.*"))
    )
)


class Masking:
    """Looks for the places of one function at which a mask is put onto scores."""

    def __init__(self, view: FunctionView) -> None:
        self._facts = view.facts
        self._scores = view.held()
        self._masks = view.logits
        # What is made with a function inside that reads the mask has it too.
        self._closures = _closures(view)
        # What every expression is kept in, so that one which drops the mask is seen.
        self._kept = {
            id(node): frozenset(kept)
            for value, kept in [
                *((bind.value, bind.targets) for bind in view.facts.binds if not bind.recursive),
                *((store.value, store.base) for store in view.facts.stores if store.index_nodes),
            ]
            if value is not None
            for node in walk(value)
        }

    def places(self) -> Iterator[cst.CSTNode]:
        """The calls, sums and stores that do so."""
        facts = self._facts
        for site in facts.calls:
            call = cst.ensure_type(site.node, cst.Call)
            attended = any(self._is_mask(mask, call) for mask in _attended(call))
            if attended or any(self._masks_by(call, *pair) for pair in _filled(call)):
                yield call
        for bind in facts.binds:
            if isinstance(bind.node, cst.AugAssign):
                added = m.matches(bind.node.operator, m.AddAssign())
                if added and self._masks_by(bind.value, bind.value, bind.node.target):
                    yield bind.node
        for value in [*(bind.value for bind in facts.binds), *facts.returns, *_given(facts)]:
            for node in _sums(value):
                for mask, scores in ((node.left, node.right), (node.right, node.left)):
                    if self._masks_by(node, mask, scores):
                        yield node
        for store in facts.stores:
            if store.value is None or not store.index_nodes or not _is_infinite(store.value):
                continue
            if self._are_named(store.base) and any(
                self._is_mask(part, store.value) for part in store.index_nodes
            ):
                yield store.node

    def _masks_by(self, place: cst.CSTNode, mask: cst.CSTNode, scores: cst.CSTNode) -> bool:
        """Whether something that carries the mask is put onto scores, and what becomes of it."""
        return self._is_mask(mask, place) and (self._are_scores(scores) or self._weighs(place))

    def _is_mask(self, node: cst.CSTNode, place: cst.CSTNode) -> bool:
        """Whether a part of what stands at a place carries the mask."""
        if any(dotted(one) in self._masks for one in self._seen(node)):
            return True
        if self._closures and self._facts.behind([node], None) & self._closures:
            return True
        # What a function makes of the mask may be without it: what it is kept in tells.
        kept = self._kept.get(id(place), frozenset())
        return bool(names(node) & self._masks and kept & self._masks)

    def _seen(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The parts of an expression, but for what is given to functions of the code."""
        yield node
        if isinstance(node, cst.Call) and (_is_blank(node.func) or self._is_own(node.func)):
            return
        for child in children(node):
            yield from self._seen(child)

    def _is_own(self, function: cst.BaseExpression) -> bool:
        root = (dotted(function) or "self").partition(".")[0]
        known = self._facts.parameters - {"self", "cls"}
        return root not in MODULES | known and not self._facts.bindings(root)

    def _are_scores(self, node: cst.CSTNode) -> bool:
        """Whether a value is made of products of queries and keys, here or before."""
        parts = self._facts.expand(node, None, read=_contents)
        return any(
            _contents(part) & self._scores or any(m.matches(one, _PRODUCT) for one in _values(part))
            for part in parts
        )

    def _are_named(self, held: Iterable[str]) -> bool:
        return any(
            self._are_scores(bind.value) for name in held for bind in self._facts.bindings(name)
        )

    def _weighs(self, place: cst.CSTNode) -> bool:
        """Whether a value goes on into a softmax of this function."""
        for site in self._facts.calls:
            call = cst.ensure_type(site.node, cst.Call)
            if _name_of(call.func) in _SOFTMAX:
                parts = [argument.value for argument in call.args[:1]]
                if isinstance(call.func, cst.Attribute):
                    parts.append(call.func.value)
                for part in parts:
                    for expression in self._facts.expand(part, None, read=_contents):
                        if any(node is place for node in _values(expression)):
                            return True
        return False


def _closures(view: FunctionView) -> frozenset[str]:
    """The functions inside that read the mask, as those that tell which columns a row sees do."""
    inner = (node for node in walk(view.tree.body) if isinstance(node, cst.FunctionDef))
    return frozenset(node.name.value for node in inner if names(node.body) & view.logits)


def _attended(call: cst.Call) -> Iterator[cst.BaseExpression]:
    """The masks that a call of attention as a whole is given."""
    known = _ATTENDS.get(_name_of(call.func))
    if known is not None:
        places, words = known
        yield from [argument.value for argument in call.args if argument.keyword is None][places]
        yield from (a.value for a in call.args if a.keyword and a.keyword.value in words)


def _filled(call: cst.Call) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The mask of a call that puts minus infinity into a value, or adds, and the value."""
    name = _name_of(call.func)
    plain = [argument.value for argument in call.args if argument.keyword is None]
    method = isinstance(call.func, cst.Attribute) and dotted(call.func.value) not in MODULES
    if method and name in _FILLS | {"add", "add_", "where"}:
        plain.insert(1 if name == "where" else 0, cst.ensure_type(call.func, cst.Attribute).value)
    if name in _FILLS and len(plain) == 3 and _is_infinite(plain[2]):
        yield plain[1], plain[0]
    elif name == "where" and len(plain) == 3:
        for value, other in ((plain[1], plain[2]), (plain[2], plain[1])):
            if _is_infinite(other):
                yield plain[0], value
    elif name in {"add", "add_"} and len(plain) >= 2:
        yield plain[1], plain[0]
        yield plain[0], plain[1]


def _given(facts: Facts) -> Iterator[cst.BaseExpression]:
    """What calls are given, other than addresses."""
    for site in facts.calls:
        call = cst.ensure_type(site.node, cst.Call)
        if _name_of(call.func) not in {"load", "store"}:
            yield from (argument.value for argument in call.args)


def _sums(value: cst.BaseExpression) -> Iterator[cst.BinaryOperation]:
    for node in _values(value):
        if isinstance(node, cst.BinaryOperation) and m.matches(node.operator, m.Add()):
            yield node


def _values(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The parts of an expression whose contents it takes on: no addresses, indices and shapes."""
    yield node
    if isinstance(node, cst.Subscript):
        yield from _values(node.value)
    elif isinstance(node, cst.Call):
        if _name_of(node.func) in {"load", "store"} or _is_blank(node.func):
            return
        parts = [argument.value for argument in node.args]
        if isinstance(node.func, cst.Attribute):
            parts.append(node.func.value)
        for part in parts:
            yield from _values(part)
    elif not isinstance(node, cst.Comparison):
        for child in children(node):
            yield from _values(child)


def _is_blank(function: cst.BaseExpression) -> bool:
    """Whether a call only takes the form of what it is given."""
    name = _name_of(function)
    return name.endswith("_like") or name.startswith("new_")


@lru_cache(maxsize=1 << 12)
def _contents(node: cst.CSTNode) -> frozenset[str]:
    """The names whose contents an expression takes on."""
    found = (dotted(one) for one in _values(node))
    return frozenset(name for name in found if name)


def _is_infinite(value: cst.CSTNode) -> bool:
    return any(m.matches(node, _INFINITE) for node in walk(value))


def _name_of(function: cst.BaseExpression) -> str:
    """The last part of what is called."""
    if isinstance(function, cst.Attribute):
        return function.attr.value
    return function.value if isinstance(function, cst.Name) else ""
