"""Ways from the target's logits to the tokens that an engine keeps, past every known verifier.

A chain proves nothing while another way leads beside it to the same place. So the functions that
lead to a verifier are run over marks, and wherever something that only came
from the target arrives where verified tokens do, the code that made it is named.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator

from ..program.dataflow import Region
from ..program.program import ClassRef, ModuleRef
from ..program.reach import Reach, Reached
from ..program.receivers import Receivers
from ..program.values import positional
from .absence import absent_branches
from .calls import wrappers_of
from .code import Code
from .marks import NOTHING, Mark, Way
from .statements import run
from .substitute import Substitute

# A name that is not known, and one that decides which code every other name stands for.
_ANY = frozenset({"", "__import__"})


def unexplained(
    reach: Reach,
    receivers: Receivers,
    region: Region,
    engine: Iterable[ClassRef],
    found: Iterable[tuple[Reached, range]],
    substitutes: Iterable[Substitute] = (),
) -> list[Way]:
    """The ways past the verifiers that rules found, each once and in the order of the code.

    Args:
        reach: what the engine's sampling step reaches.
        receivers: opens the functions' scopes.
        region: the functions that the target's logits reach.
        engine: the engine's class and its bases.
        found: where a verifier was found: the function, and the lines of the finding.
        substitutes: what plug-ins replace by what cannot be followed.
    """
    verifiers: dict[int, list[range]] = defaultdict(list)
    starts: list[Reached] = []
    nodes = set()
    for reached, lines in found:
        verifiers[id(reached.function.node)].append(lines)
        nodes.add(id(reached.function.node))
    starts = [one for one in region.tainted if id(one.function.node) in nodes]
    deciding = _leading_to(reach, region, starts)
    code = Code(
        run,
        reach,
        receivers,
        region.tainted,
        region.handed,
        region.attribute_names,
        frozenset(cls.key for cls in engine),
        deciding,
        verifiers,
    )
    ways = _past(code, partly=False)
    # That a branch only samples is costly to know, and needed where it would be a way.
    ways = _past(code, partly=True) if ways else ways
    ways |= {one.way for one in substitutes if any(_replaces(one, each) for each in deciding)}
    return sorted(ways)


def _past(code: Code, *, partly: bool) -> set[Way]:
    code.absent = frozenset(
        branch
        for reached in code.deciding
        for branch in absent_branches(code, reached, partly=partly)
    )
    code.forget()
    return {way for reached in code.deciding for way in _beside(code, reached)}


def _replaces(substitute: Substitute, reached: Reached) -> bool:
    """Whether a function, or its class, may be the one that is replaced."""
    function = reached.function
    if isinstance(substitute.replaced, ClassRef):
        return function.owner is not None and function.owner.key == substitute.replaced.key
    if isinstance(substitute.replaced, ModuleRef):
        return function.module.name == substitute.replaced.name
    if substitute.replaced is not None:
        return function.node is substitute.replaced.node
    if substitute.name in _ANY:
        return True
    # Too many classes have methods of these names.
    return function.node.name == substitute.name and substitute.name not in {"forward", "__call__"}


def _leading_to(reach: Reach, region: Region, starts: Iterable[Reached]) -> frozenset[Reached]:
    """The functions of the region from which calls lead to some others, and these.

    What runs in place of one of them and calls it leads there as well.
    """
    callers: dict[Reached, list[Reached]] = defaultdict(list)
    for reached in region.tainted:
        for edge in reach.edges[reached]:
            callers[edge.target].append(reached)
    found: dict[Reached, None] = {}
    waiting = list(starts)
    while waiting:
        reached = waiting.pop()
        if reached not in found:
            found[reached] = None
            waiting += callers[reached]
            waiting += [one for one in wrappers_of(reach, reached) if _calls_wrapped(one)]
    return frozenset(found)


def _calls_wrapped(wrapper: Reached) -> bool:
    """Whether a wrapper calls the function in whose place it runs."""
    function = wrapper.function
    wrapped = function.wraps
    return wrapped is not None and any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in function.bound
        and function.bound[node.func.id].node is wrapped.node
        for node in ast.walk(function.node)
    )


def _beside(code: Code, reached: Reached) -> Iterator[Way]:
    """What arrives, past the verifiers, where verified values arrive in one function."""
    path = reached.function.module.path
    handed = code.handed.get(reached, set())
    parameters = {
        name: Mark(raw=frozenset({Way(path, 0, name)})) if name in handed else NOTHING
        for name in positional(reached.function.node)
        if name in handed or not code.is_own(reached)
    }
    outcome = code.outcome(reached, parameters)
    marks = [mark for _, mark in outcome.returned]
    if any(mark.verified for mark in marks):
        for at, mark in outcome.returned:
            yield from _named(reached, at, mark)
    for name, mark in outcome.written.items():
        if mark.verified:
            # What a parameter held before is no way of its own.
            yield from (way for way in mark.raw if way.line or way.text != name)
    yield from outcome.chosen
    for _, mark in outcome.kept:
        yield from (way for way in mark.raw if way.opaque)


def _named(reached: Reached, at: ast.AST, mark: Mark) -> Iterator[Way]:
    """The ways of a mark; what was made here of the bare logits is named by what is returned."""
    for way in mark.raw:
        if way.line:
            yield way
        elif isinstance(at, ast.Return) and at.value is not None:
            yield Way(reached.function.module.path, at.lineno, ast.unparse(at.value))
