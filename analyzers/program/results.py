"""Where some values go: what functions return or write into their arguments, or are handed."""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .arguments import passed
from .reach import Reach, Reached
from .receivers import Receivers
from .survey import walk_code
from .taint import Flow, bound_names, callee, is_tainted, set_on_others, spread
from .values import positional


@dataclass(slots=True, eq=False)
class _Results:
    """The running state: names that hold results in each function, and who returns them."""

    reach: Reach
    receivers: Receivers
    names: dict[Reached, set[str]] = field(default_factory=lambda: defaultdict(set))
    # Functions that hand results back, and through which of their parameters as well.
    makers: dict[Reached, set[str]] = field(default_factory=dict)
    attributes: frozenset[str] = frozenset()
    functions: Collection[Reached] = ()
    callers: dict[Reached, list[Reached]] = field(default_factory=lambda: defaultdict(list))


def follow_results(
    reach: Reach,
    receivers: Receivers,
    makers: Iterable[Reached] = (),
    held: Mapping[Reached, set[str]] = MappingProxyType({}),
    within: Collection[Reached] = (),
) -> dict[Reached, set[str]]:
    """The names that hold what the makers made, or what was `held` at first, to a fixed point.

    Results are followed out of calls into variables, attributes and the parameters of other
    functions. What wraps a function hands its results to nobody: the function's callers get them,
    mixed with all that they always got. Only functions `within` some are followed, if these are
    given.
    """
    state = _Results(reach, receivers, functions=within or reach.functions)
    for reached in state.functions:
        for edge in reach.edges[reached]:
            if edge.wrap is None:
                state.callers[edge.target].append(reached)
    queue = deque[Reached](held)
    state.names.update((reached, set(names)) for reached, names in held.items())
    for maker in makers:
        parameters = set(positional(maker.function.node))
        stored = receivers.survey(maker.function).outline.stored
        state.makers[maker] = parameters & stored
        queue.extend(state.callers[maker])
    while queue:
        queue.extend(_visit(state, queue.popleft()))
    return {reached: names for reached, names in state.names.items() if names}


def _visit(state: _Results, reached: Reached) -> Iterator[Reached]:
    """Follow results within one function; the functions that have to be visited for that."""
    edges = state.reach.edges[reached]
    made = frozenset(id(edge.site) for edge in edges if edge.target in state.makers)
    opened = frozenset(id(e.site) for e in edges if e.target.function.node.name != "__init__")
    flow = Flow(False, True, state.attributes, made, opened)
    written = set(_written(state, reached))
    names = spread(reached, state.receivers, state.names[reached] | written, flow)
    state.names[reached] = names
    stored = set(set_on_others(reached, state.receivers, names, flow))
    if stored - state.attributes:
        state.attributes |= stored
        # Whoever reads such an attribute holds a result.
        yield from (other for other in state.functions if _reads(state, other, stored))
    given = [*passed(edges, reached, state.receivers, names, flow)]
    for target, parameters in [*given, *_instances(state, reached, names, flow)]:
        if not parameters <= state.names[target]:
            state.names[target] |= parameters
            yield target
    handed_back = written & set(positional(reached.function.node))
    returned = _returned(state.receivers, reached) if names or made else ()
    if handed_back or any(is_tainted(value, names, flow) for value in returned):
        known = state.makers.get(reached)
        if known is None or not handed_back <= known:
            state.makers[reached] = (known or set()) | handed_back
            yield from state.callers[reached]


def _returned(receivers: Receivers, reached: Reached) -> Iterator[ast.expr]:
    """What a function returns or yields."""
    survey = receivers.survey(reached.function)
    yield from (node.value for node in survey.returns if node.value is not None)
    if {ast.Yield, ast.YieldFrom} & survey.outline.operators:
        for node in walk_code(reached.function.node):
            if isinstance(node, ast.Yield | ast.YieldFrom) and node.value is not None:
                yield node.value


def _instances(
    state: _Results, reached: Reached, names: set[str], flow: Flow
) -> Iterator[tuple[Reached, set[str]]]:
    """The methods that are called on results, with the parameter that is the instance."""
    for edge in state.reach.edges[reached]:
        own = positional(edge.target.function.node)
        if edge.target.receiver is None or not own or not isinstance(edge.site, ast.Attribute):
            continue
        if is_tainted(edge.site.value, names, flow):
            yield edge.target, {own[0]}


def _written(state: _Results, reached: Reached) -> Iterator[str]:
    """The names that makers write into when they are called here."""
    scope = state.receivers.scope(reached.function, reached.receiver)
    calls = {id(callee(call)): call for call in scope.mentions.calls}
    for edge in state.reach.edges[reached]:
        out = state.makers.get(edge.target)
        call = calls.get(id(edge.site))
        if not out or call is None:
            continue
        parameters = positional(edge.target.function.node)
        words = {word.arg: word.value for word in call.keywords if word.arg}
        given = {**dict(zip(parameters, call.args, strict=False)), **words}
        if any(isinstance(value, ast.Starred) for value in call.args):
            given = dict.fromkeys(parameters, call.args[0])
        for name in out & given.keys():
            yield from bound_names([given[name]])


def _reads(state: _Results, reached: Reached, attributes: set[str]) -> bool:
    outline = state.receivers.survey(reached.function).outline
    return bool(outline.names & attributes)
