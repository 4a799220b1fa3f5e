"""Where some values go: what functions return or write into their arguments, or are handed."""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

from .arguments import passed, spread_out
from .reach import Edge, Reach, Reached
from .receivers import Receivers, Scope
from .survey import fills, walk_code
from .taint import (
    PRODUCER,
    Flow,
    bound_names,
    callee,
    is_own,
    is_tainted,
    set_on_others,
    spread,
)
from .values import positional

# Whether a node of a function is followed for what it is itself.
Seed = Callable[[Reached, ast.AST], bool]
# Whether a field that is read in a function belongs to an object that carries results.
Carry = Callable[[Reached, ast.Attribute], bool]


@dataclass(slots=True, eq=False)
class _Results:
    """The running state: names that hold results in each function, and who returns them."""

    reach: Reach
    receivers: Receivers
    functions: Collection[Reached]
    seed: Seed | None
    stop: Callable[[ast.AST], bool] | None
    carry: Carry | None
    decides: bool
    whole: bool
    names: dict[Reached, set[str]] = field(default_factory=lambda: defaultdict(set))
    # The names that hold results from the beginning.
    begun: dict[Reached, set[str]] = field(default_factory=lambda: defaultdict(set))
    # Functions that hand results back, and through which of their parameters as well.
    makers: dict[Reached, set[str]] = field(default_factory=dict)
    # Those that hand back what they are given.
    carriers: dict[Reached, set[str]] = field(default_factory=dict)
    attributes: frozenset[str] = frozenset()
    # The attributes that hold results in instances of each class.
    own: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    # The calls that make an object and give it results, by identity, with where they are.
    built: dict[int, Reached] = field(default_factory=dict)
    callers: dict[Reached, list[Reached]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True, slots=True)
class Followed:
    """Where values go: the names that hold them in each function, and the attributes of objects.

    `owners` are the keys of the classes whose own methods keep them in their instances; `built` are
    the calls, by identity, that make an object of them, each with the function that makes it;
    `givers` hand them back to where they are called.
    """

    names: Mapping[Reached, set[str]]
    attributes: frozenset[str]
    owners: frozenset[tuple[str, str]]
    built: Mapping[int, Reached]
    givers: frozenset[Reached]


def follow(
    reach: Reach,
    receivers: Receivers,
    makers: Iterable[Reached] = (),
    held: Mapping[Reached, Set[str]] = MappingProxyType({}),
    seed: Seed | None = None,
    *,
    stop: Callable[[ast.AST], bool] | None = None,
    carry: Carry | None = None,
    decides: bool = False,
    whole: bool = False,
    within: Collection[Reached] = (),
) -> Followed:
    """Where results go, to a fixed point: what the makers made, or what was `held` at first.

    Results are followed out of calls into variables, attributes and the parameters of other
    functions. What wraps a function hands its results to nobody: the function's callers get them,
    mixed with all that they always got.

    Args:
        reach: the functions.
        receivers: opens their scopes.
        makers: all that a call of these gives, and writes into its arguments, is followed.
        held: the functions to begin in, with the names that hold what is followed there.
        seed: what is followed besides, wherever it stands in these functions and in those that
            the rest leads to.
        stop: what is followed no further, whatever it is made of.
        carry: which reads of an attribute that holds results count; all of them if not given.
        decides: what a result selects, and how many elements it has, is a result too.
        whole: an object that is made of results is one.
        within: only these functions are followed, if they are given.
    """
    functions = within or reach.functions
    state = _Results(reach, receivers, functions, seed, stop, carry, decides, whole)
    for reached in functions:
        for edge in reach.edges[reached]:
            if edge.wrap is None:
                state.callers[edge.target].append(reached)
    queue = deque[Reached](held)
    for reached, names in held.items():
        state.begun[reached] = {*names}
        if written := _stored(receivers, reached) & names:
            state.makers[reached] = written
            queue.extend(state.callers[reached])
    for maker in makers:
        state.makers[maker] = _stored(receivers, maker)
        queue.extend(state.callers[maker])
    while queue:
        queue.extend(_visit(state, queue.popleft()))
    for reached in reach.functions:
        if _reads(state, reached, state.attributes):
            state.names[reached].update(_read_from_objects(state, reached))
    return Followed(
        {reached: names for reached, names in state.names.items() if names},
        state.attributes,
        frozenset(key for key, names in state.own.items() if names),
        state.built,
        frozenset(state.makers) | frozenset(state.carriers),
    )


def _read_from_objects(state: _Results, reached: Reached) -> Iterator[str]:
    """The attributes of other objects that hold results in a function: `metadata.bias`."""
    scope = state.receivers.scope(reached.function, reached.receiver)
    methods = {id(call.func) for call in scope.mentions.calls}
    for node in scope.mentions.attributes:
        if node.attr not in state.attributes or is_own(node) or id(node) in methods:
            continue
        if state.carry is None or state.carry(reached, node):
            yield ast.unparse(node)


def _stored(receivers: Receivers, reached: Reached) -> set[str]:
    """The parameters that a function writes into by index."""
    stored = receivers.survey(reached.function).outline.stored
    return {*positional(reached.function.node)} & stored


def _visit(state: _Results, reached: Reached) -> Iterator[Reached]:
    """Follow results within one function; the functions that have to be visited for that."""
    edges = state.reach.edges[reached]
    flow = _flow(state, reached, edges)
    own = state.begun[reached] | _held(state, reached) | set(_written(state, reached))
    given = own | state.names[reached]
    names = _closed(state, reached, given, flow)
    state.names[reached] = names
    yield from _keep(state, reached, names, flow)
    handed = [*passed(edges, reached, state.receivers, names, flow)]
    for target, parameters in [*handed, *_instances(state, reached, names, flow)]:
        if not parameters <= state.names[target]:
            state.names[target] |= parameters
            yield target
    back = _handed_back(state, reached, given, names, flow)
    if back is not None:
        yield from _hand_back(state, reached, own, given, flow, back)


def _hand_back(
    state: _Results, reached: Reached, own: set[str], given: set[str], flow: Flow, back: set[str]
) -> Iterator[Reached]:
    """Note what a function hands back, of its own or of what it was given; who has to be visited.

    What it was given goes on to where it was given it, and to no other caller.
    """
    mine: set[str] | None = back
    if own < given:
        mine = _handed_back(state, reached, own, _closed(state, reached, own, flow), flow)
    news = mine is not None and _is_news(state.makers, reached, mine)
    if own < given and (mine is None or not back <= mine):
        news = _is_news(state.carriers, reached, back) or news
    if news:
        yield from state.callers[reached]


def _closed(state: _Results, reached: Reached, names: set[str], flow: Flow) -> set[str]:
    """The names of a function that hold what some of them hold, or point to it."""
    pointed = "store" in state.receivers.survey(reached.function).outline.called
    while True:
        names = spread(reached, state.receivers, names, flow)
        if not pointed and not state.carriers:
            return names
        more = set(_put(state, reached, names, flow)) | set(_carried(state, reached, names, flow))
        if more <= names:
            return names
        names |= more


def _handed_back(
    state: _Results, reached: Reached, given: set[str], names: set[str], flow: Flow
) -> set[str] | None:
    """The parameters through which a function hands back what some names hold.

    None if it hands nothing back; an empty set if it returns it.
    """
    parameters = {*positional(reached.function.node)}
    back = parameters & names
    if back:
        made = set(_written(state, reached)) | state.begun[reached]
        more = back & (names - given)
        filled = _stored(state.receivers, reached) | set(_filled(state, reached)) if more else set()
        back = parameters & (made | (more & filled))
    if back or any(is_tainted(value, names, flow) for value in returned(state.receivers, reached)):
        return back
    return None


def _is_news(known: dict[Reached, set[str]], reached: Reached, back: set[str]) -> bool:
    """Note that a function hands results back; whether that was not known."""
    before = known.get(reached)
    known[reached] = (before or set()) | back
    return before is None or not back <= before


def _flow(state: _Results, reached: Reached, edges: Iterable[Edge]) -> Flow:
    made = frozenset(id(edge.site) for edge in edges if edge.target in state.makers)
    opened = {id(edge.site) for edge in edges if edge.target not in state.carriers}
    known = {id(edge.site) for edge in edges}
    scope = state.receivers.scope(reached.function, reached.receiver)
    # What a model makes of a result is nothing that the result is in.
    opened |= {id(c.func) for c in scope.mentions.calls if _is_object(scope, c, known)}
    instances = {id(call.func) for call, _ in state.receivers.instances(scope)}
    # Of an object that is made of results, only the fields that they are given to hold them.
    opened = opened - instances if state.whole else opened | instances
    seed = partial(state.seed, reached) if state.seed is not None else None
    return Flow(
        seeded=False,
        decisions=True,
        attributes=state.attributes,
        results=made,
        opened=frozenset(opened),
        through=frozenset((known | instances if state.whole else known) - opened),
        seed=seed,
        stop=state.stop,
        carry=partial(state.carry, reached) if state.carry is not None else None,
        decides=state.decides,
    )


def _is_object(scope: Scope, call: ast.Call, known: Set[int]) -> bool:
    """Whether an object of unknown class is called, as models are: `self.model(ids)`."""
    if id(call.func) in known:
        return False
    if isinstance(call.func, ast.Name):
        return bool(call.func.id in scope.locals)
    return isinstance(call.func, ast.Attribute) and (
        is_own(call.func) or call.func.attr in {"model", "forward", PRODUCER}
    )


def _held(state: _Results, reached: Reached) -> set[str]:
    """The attributes of the receiver that hold results, as names."""
    if reached.receiver is None:
        return set()
    return {f"self.{name}" for name in state.own.get(reached.receiver.key, ())}


def _keep(state: _Results, reached: Reached, names: set[str], flow: Flow) -> Iterator[Reached]:
    """Note which attributes of objects hold results; whoever reads them has to be visited."""
    own = {name.removeprefix("self.") for name in names if name.startswith("self.")}
    if reached.receiver is not None and own - state.own[reached.receiver.key]:
        state.own[reached.receiver.key] |= own
        yield from state.reach.of_receiver(reached.receiver)
    stored = own | set(set_on_others(reached, state.receivers, names, flow))
    stored |= set(_fields(state, reached, names, flow))
    new = stored - state.attributes
    if new:
        state.attributes |= new
        yield from (other for other in state.functions if _reads(state, other, new))


def _fields(state: _Results, reached: Reached, names: set[str], flow: Flow) -> Iterator[str]:
    """The fields that results are given to, of objects whose class has no constructor."""
    scope = state.receivers.scope(reached.function, reached.receiver)
    for call, cls in state.receivers.instances(scope):
        given: list[tuple[str, ast.expr]] = [(word.arg or "", word.value) for word in call.keywords]
        given += [("", value) for value in call.args]
        held = [(name, value) for name, value in given if is_tainted(value, names, flow)]
        if held:
            state.built[id(call)] = reached
        if held and state.reach.constructor(cls) is None:
            fields = zip(state.receivers.fields(cls), call.args, strict=False)
            yield from (name for name, _ in held if name)
            yield from (name for name, value in fields if is_tainted(value, names, flow))


def _filled(state: _Results, reached: Reached) -> Iterator[str]:
    """The names of what is filled in place: `out.copy_(x)`, `rows.append(x)`."""
    scope = state.receivers.scope(reached.function, reached.receiver)
    for call in scope.mentions.calls:
        if isinstance(call.func, ast.Attribute) and fills(call.func.attr):
            yield from bound_names([call.func.value])


def _put(state: _Results, reached: Reached, names: set[str], flow: Flow) -> Iterator[str]:
    """The pointers through which a kernel stores results: `tl.store(out_ptr + i, result)`."""
    scope = state.receivers.scope(reached.function, reached.receiver)
    for call in scope.mentions.calls:
        stores = isinstance(call.func, ast.Attribute) and call.func.attr == "store"
        if stores and len(call.args) > 1 and is_tainted(call.args[1], names, flow):
            address = call.args[0]
            while isinstance(address, ast.BinOp):
                address = address.left
            yield from bound_names([address])


def returned(receivers: Receivers, reached: Reached) -> Iterator[ast.expr]:
    """What a function returns or yields."""
    survey = receivers.survey(reached.function)
    nodes: Iterable[ast.AST] = survey.returns
    if {ast.Yield, ast.YieldFrom} & survey.outline.operators:
        nodes = walk_code(reached.function.node)
    for node in nodes:
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) and node.value is not None:
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
    for _, parameters, given in _calls(state, reached, state.makers):
        for name in parameters & given.keys():
            yield from bound_names([given[name]])


def _carried(state: _Results, reached: Reached, names: set[str], flow: Flow) -> Iterator[str]:
    """The names into which what is called here writes results that it is given here."""
    for call, parameters, given in _calls(state, reached, state.carriers):
        values = [*call.args, *(word.value for word in call.keywords)]
        if any(is_tainted(value, names, flow) for value in values):
            for name in parameters & given.keys():
                yield from bound_names([given[name]])


def _calls(
    state: _Results, reached: Reached, known: Mapping[Reached, set[str]]
) -> Iterator[tuple[ast.Call, set[str], dict[str, ast.expr]]]:
    """The calls of some functions that write into parameters, with what each parameter is given."""
    scope = state.receivers.scope(reached.function, reached.receiver)
    calls = {id(callee(call)): call for call in scope.mentions.calls}
    for edge in state.reach.edges[reached]:
        call = calls.get(id(edge.site))
        if call is not None and known.get(edge.target):
            call = spread_out(call, scope)
            words = {word.arg: word.value for word in call.keywords if word.arg}
            places = _places(positional(edge.target.function.node), call.args)
            yield call, known[edge.target], places | words


def _places(parameters: list[str], arguments: list[ast.expr]) -> dict[str, ast.expr]:
    """Which argument each parameter takes; all that follow take a list that is spread out."""
    for place, value in enumerate(arguments):
        if isinstance(value, ast.Starred):
            rest = dict.fromkeys(parameters[place:], value)
            return dict(zip(parameters, arguments[:place], strict=False)) | rest
    return dict(zip(parameters, arguments, strict=False))


def _reads(state: _Results, reached: Reached, attributes: Set[str]) -> bool:
    outline = state.receivers.survey(reached.function).outline
    return bool(outline.names & attributes)
