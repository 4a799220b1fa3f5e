"""Pointer walks: loops whose position is looked up through itself, not counted."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from .expressions import Load, is_constant, loads, names, walk
from .facts import Bind, Facts, Loop, Site, comparison_sides, is_equality


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop that follows pointers: the names that move, the arrays of links, how they move."""

    pointers: frozenset[str]
    links: frozenset[str]
    how: str


def pointer_walk(facts: Facts, loop: Loop, logits: frozenset[str]) -> Walk | None:
    """The walk that a loop makes over linked nodes while it compares tokens with the target's.

    Both halves are needed: the position is loaded or selected through itself, *and* what the
    target said at that position is compared with a drafted token.
    """
    # What the target said is first taken for no link; where that leaves nothing, links and tokens
    # came out of one container, and its name tells nothing.
    return _walk(facts, loop, logits, logits) or _walk(facts, loop, logits, frozenset())


def _walk(
    facts: Facts, loop: Loop, logits: frozenset[str], barred: frozenset[str]
) -> Walk | None:
    movers = _movers(facts, loop, barred)
    pointers, links, how = _moved(facts, loop, movers, barred)
    if not pointers:
        return None
    pointers = _with_copies(facts, loop, movers, pointers)
    if not _tests_tokens(facts, loop, pointers, links, logits):
        return None
    return Walk(pointers, links, how)


def _movers(facts: Facts, loop: Loop, logits: frozenset[str]) -> frozenset[str]:
    """Carried positions that are assigned more than a constant, a count, or what the target said."""
    carried = facts.carried(loop) & _positions(facts, loop)
    return frozenset(
        name
        for bind in facts.inside(loop)
        for name in bind.targets & carried
        if not is_constant(bind.value)
        and not facts.counts(bind, name)
        and not any(load.base & logits for load in loads(bind.value))
    )


def _positions(facts: Facts, loop: Loop) -> frozenset[str]:
    """The names by which a loop indexes something, or that it asks to equal something."""
    parts: list[cst.CSTNode] = [bind.value for bind in facts.inside(loop)]
    parts += [site.node for site in facts.conditions if loop in site.loops]
    parts += [store.value for store in facts.stores if store.value and loop in store.loops]
    found = {name for part in parts for load in loads(part) for name in load.index | load.base}
    for site in facts.compares:
        if loop in site.loops and is_equality(site.node):
            found.update(name for side in comparison_sides(site.node) for name in _bare(side))
    # A position may be handed on under another name before it is used.
    for bind in facts.inside(loop):
        if bind.targets & found:
            found |= names(bind.value)
    return frozenset(found)


def _moved(
    facts: Facts, loop: Loop, movers: frozenset[str], logits: frozenset[str]
) -> tuple[frozenset[str], frozenset[str], str]:
    pointers: set[str] = set()
    links: set[str] = set()
    how = ""
    for bind in facts.inside(loop):
        for name in bind.targets & movers:
            if is_constant(bind.value) or facts.counts(bind, name):
                continue
            through = _loaded(facts, loop, bind, movers, logits)
            through = through or _matched(facts, loop, bind, movers)
            if through is not None:
                pointers.add(name)
                links |= through[0]
                how = how or through[1]
    return frozenset(pointers), frozenset(links), how


def _loaded(
    facts: Facts, loop: Loop, bind: Bind, movers: frozenset[str], logits: frozenset[str]
) -> tuple[frozenset[str], str] | None:
    """`cur = link[cur]`: the new position is read at the old one, from something not the target's."""
    for load in facts.value_reads(bind.value, loop, stop=movers):
        if load.base & logits:
            continue
        seen = facts.behind(load.index_nodes, loop, stop=movers) & movers
        if not seen and load.index and not any(isinstance(n, cst.Slice) for n in load.index_nodes):
            # A level of nested maps: what is looked up in it is the next level.
            seen = load.base & movers
        if seen:
            return load.base, f"`{min(seen)}` is looked up by itself in {_listed(load.base)}"
    return None


def _matched(
    facts: Facts, loop: Loop, bind: Bind, movers: frozenset[str]
) -> tuple[frozenset[str], str] | None:
    """`cur = j where parent[j] == cur`: the new position is the node whose link is the old one."""
    deciding = [bind.value, *bind.guards]
    reached = {
        id(node)
        for part in deciding
        for expression in facts.expand(part, loop, stop=movers)
        for node in walk(expression)
    }
    for site in facts.compares:
        if id(site.node) not in reached or loop not in site.loops or not is_equality(site.node):
            continue
        sides = comparison_sides(site.node)
        for here, there in ((sides[0], sides[-1]), (sides[-1], sides[0])):
            bare = _bare(here) & movers
            if bare and not (names(there) & bare) and _is_array(facts, loop, there):
                link = frozenset(name for load in loads(there) for name in load.base)
                link = link or names(there)
                return link, f"`{min(bare)}` moves to a node whose {_listed(link)} equals it"
    return None


def _bare(node: cst.BaseExpression) -> frozenset[str]:
    """The names of a value that is itself, at most reshaped: `cur`, `cur[:, None]`."""
    while True:
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            node = node.func.value
        elif isinstance(node, cst.Subscript) and _reshapes(node):
            node = node.value
        else:
            break
    return names(node) if isinstance(node, cst.Name | cst.Attribute) else frozenset()


def _reshapes(node: cst.Subscript) -> bool:
    return all(
        m.matches(item.slice, m.Slice(lower=None, upper=None) | m.Index(value=m.Name("None")))
        for item in node.slice
    )


def _is_array(facts: Facts, loop: Loop, node: cst.BaseExpression) -> bool:
    if is_constant(node):
        return False
    if any(True for _ in facts.reads(node, loop)):
        return True
    return isinstance(node, cst.Name | cst.Attribute) and not (names(node) & loop.index)


def _with_copies(
    facts: Facts, loop: Loop, movers: frozenset[str], pointers: frozenset[str]
) -> frozenset[str]:
    """Pointers, and carried names that take over a pointer's value (`last = cur`)."""
    found = set(pointers)
    while True:
        before = len(found)
        for bind in facts.inside(loop):
            if names(bind.value) & found and isinstance(bind.value, cst.Name | cst.Call):
                found |= bind.targets & movers
        if len(found) == before:
            return frozenset(found)


def _tests_tokens(
    facts: Facts, loop: Loop, pointers: frozenset[str], links: frozenset[str], logits: frozenset[str]
) -> bool:
    kept = _kept_tokens(facts, loop, pointers, logits)
    for site in facts.compares:
        if loop not in site.loops:
            continue
        sides = comparison_sides(site.node)
        for here, there in ((sides[0], sides[-1]), (sides[-1], sides[0])):
            if is_constant(there) or is_constant(here):
                continue
            if is_equality(site.node) and names(here) & kept:
                return True
            if _compared_at(facts, loop, site, (here, there), pointers, links, logits):
                return True
    return _looks_up(facts, loop, pointers, logits)


def _compared_at(
    facts: Facts,
    loop: Loop,
    site: Site,
    sides: tuple[cst.BaseExpression, cst.BaseExpression],
    pointers: frozenset[str],
    links: frozenset[str],
    logits: frozenset[str],
) -> bool:
    """Whether a comparison holds what the target said at the pointer against something else."""
    here, there = sides
    read = _read_at(facts, loop, here, pointers, links)
    if not facts.behind(sides, loop) & logits:
        return False
    # One array compared with itself (the failure links of a string search) is no walk.
    others = _sources(facts, loop, there, pointers)
    if is_equality(site.node):
        return any(not load.base & others for load in read)
    # A probability of the target, against a coin that belongs to the same node.
    coin = _read_at(facts, loop, there, pointers, links)
    return bool(coin) and any(load.base & logits and not load.base & others for load in read)


def _kept_tokens(
    facts: Facts, loop: Loop, pointers: frozenset[str], logits: frozenset[str]
) -> frozenset[str]:
    """Names that keep the target's token at the pointer: reloaded exactly where the pointer moves."""
    moves = [bind.guards for bind in facts.inside(loop) if bind.targets & pointers]
    return frozenset(
        name
        for bind in facts.inside(loop)
        for name in bind.targets & facts.carried(loop) - pointers
        if bind.guards in moves
        and bind.guards
        and any(load.base & logits for load in facts.value_reads(bind.value, loop))
    )


def _read_at(
    facts: Facts, loop: Loop, side: cst.CSTNode, pointers: frozenset[str], links: frozenset[str]
) -> list[Load]:
    return [
        load
        for load in facts.reads(side, loop, stop=pointers)
        if facts.behind(load.index_nodes, loop, stop=pointers) & pointers
        and not load.base <= links
    ]


def _sources(
    facts: Facts, loop: Loop, side: cst.CSTNode, pointers: frozenset[str]
) -> frozenset[str]:
    """What a value is read from."""
    bases = [load.base for load in facts.reads(side, loop, stop=pointers)]
    return frozenset().union(*bases) if bases else names(side)


def _looks_up(
    facts: Facts, loop: Loop, pointers: frozenset[str], logits: frozenset[str]
) -> bool:
    """`cur = children[cur].get(target[cur])`: the table's key is what the target said there."""
    for bind in facts.inside(loop):
        if not bind.targets & pointers:
            continue
        for table in facts.reads(bind.value, loop, stop=pointers):
            for part in table.index_nodes:
                for key in facts.reads(part, loop, stop=pointers):
                    at = facts.behind(key.index_nodes, loop, stop=pointers) & pointers
                    if at and key.base & logits and not key.base <= table.base:
                        return True
    return False


def _listed(names_: frozenset[str]) -> str:
    shown = sorted(name for name in names_ if name) or ["?"]
    return "`" + max(shown, key=len) + "`"
