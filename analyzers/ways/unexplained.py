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
from ..program.program import ClassRef
from ..program.reach import Reach, Reached
from ..program.receivers import Receivers
from .absence import absent_branches
from .code import Code
from .marks import Mark, Way
from .statements import run


def unexplained(
    reach: Reach,
    receivers: Receivers,
    region: Region,
    engine: Iterable[ClassRef],
    found: Iterable[tuple[Reached, range]],
) -> list[Way]:
    """The ways past the verifiers that rules found, each once and in the order of the code.

    Args:
        reach: what the engine's sampling step reaches.
        receivers: opens the functions' scopes.
        region: the functions that the target's logits reach.
        engine: the engine's class and its bases.
        found: where a verifier was found: the function, and the lines of the finding.
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
        region.attribute_names,
        frozenset(cls.key for cls in engine),
        deciding,
        verifiers,
    )
    code.absent = frozenset(
        branch for reached in deciding for branch in absent_branches(code, reached)
    )
    ways = {way: None for reached in deciding for way in _beside(code, reached)}
    return sorted(ways)


def _leading_to(reach: Reach, region: Region, starts: Iterable[Reached]) -> frozenset[Reached]:
    """The functions of the region from which calls lead to some others, and these."""
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
    return frozenset(found)


def _beside(code: Code, reached: Reached) -> Iterator[Way]:
    """What arrives, past the verifiers, where verified values arrive in one function."""
    parameters = {
        name: Mark(raw=frozenset({Way(reached.function.module.path, 0, name)}))
        for name in code.names.get(reached, ())
        if not name.startswith("self.")
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
