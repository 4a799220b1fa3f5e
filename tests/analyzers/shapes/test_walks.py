"""Which loops follow pointers over target tokens, and which only look like it."""

from __future__ import annotations

import re

import pytest

from ddtree.analyzers.shapes.view import view_of_source
from ddtree.analyzers.shapes.walks import Walk, pointer_walk


def walks(source: str) -> list[Walk]:
    """The walks of the first function; names that begin with `target` hold logits."""
    seen = view_of_source(source, [f"target{end}" for end in ("", "_ids", "_ptr", "s")])
    found = [pointer_walk(seen.facts, loop, seen.logits) for loop in seen.facts.rounds]
    return [walk for walk in found if walk is not None]


SIBLINGS = """
def f(child, sibling, tokens, target):
    at = 0
    while True:
        wanted = target[at]
        here = child[at]
        while here >= 0 and tokens[here] != wanted:
            here = sibling[here]
        if here < 0:
            break
        at = here
    return at
"""
PARENTS = """
def f(parents, tokens, target, n):
    at = 0
    for j in range(n):
        if parents[j] == at and tokens[j] == target[at]:
            at = j + 1
    return at
"""
CHILD_MAP = """
def f(children, target):
    at, path = 0, []
    while target[at] in children[at]:
        at = children[at][target[at]]
        path.append(at)
    return path
"""
LOOKED_UP = """
def f(children, target):
    at = 0
    while at is not None:
        at = children[at].get(target[at])
    return at
"""
TRITON = """
def f(child_ptr, token_ptr, target_ptr, out_ptr, depth):
    at = 0
    for step in range(depth):
        wanted = tl.load(target_ptr + at)
        here = tl.load(child_ptr + at)
        if tl.load(token_ptr + here) == wanted:
            at = here
    tl.store(out_ptr, at)
"""
RECURSIVE = """
def f(at, child, tokens, target):
    for j in child[at]:
        if tokens[j] == target[at]:
            return f(j, child, tokens, target)
    return at
"""


@pytest.mark.parametrize(
    ("source", "pointer", "link"),
    [
        (SIBLINGS, "at", "child"),
        (PARENTS, "at", "parents"),
        (CHILD_MAP, "at", "children"),
        (LOOKED_UP, "at", "children"),
        (TRITON, "at", "child_ptr"),
        (RECURSIVE, "at", "child"),
    ],
)
def test_walks(source: str, pointer: str, link: str) -> None:
    found = walks(source)

    assert any(pointer in walk.pointers and link in walk.links for walk in found), found
    assert all(walk.how for walk in found)


CHAIN = """
def f(tokens, target, n):
    for i in range(n):
        if tokens[i] != target[i]:
            return i
    return n
"""
CURSOR = """
def f(tokens, target, n):
    at = 0
    while at < n and tokens[at] == target[at]:
        at += 1
    return at
"""
STRIDED = """
def f(tokens, target, starts, n):
    at = starts[0]
    for i in range(n):
        if tokens[at + i] != target[at + i]:
            break
    return i
"""
STRING_SEARCH = """
def f(tokens, failure):
    at = 0
    for i in range(1, len(tokens)):
        while at > 0 and tokens[i] != tokens[at]:
            at = failure[at]
        if tokens[i] == tokens[at]:
            at += 1
    return at
"""
WITHOUT_TOKENS = """
def f(parents, target):
    at = 3
    depth = 0
    while at >= 0:
        at = parents[at]
        depth += 1
    return depth, target
"""
WITHOUT_TARGET = """
def f(children, tokens):
    at = 0
    for token in tokens:
        at = children[at][token]
    return at
"""
GENERATES = """
def f(model, target, n):
    token = target[0]
    out = []
    for _ in range(n):
        token = model(token).argmax()
        out.append(token)
    return out
"""


@pytest.mark.parametrize(
    "source",
    [CHAIN, CURSOR, STRIDED, STRING_SEARCH, WITHOUT_TOKENS, WITHOUT_TARGET, GENERATES],
    ids=["chain", "cursor", "strided", "string-search", "no-tokens", "no-target", "generates"],
)
def test_no_walks(source: str) -> None:
    assert walks(source) == []


def test_names_do_not_matter() -> None:
    words = {"child": "a", "sibling": "b", "tokens": "c", "at": "d", "here": "e", "wanted": "g"}
    renamed = re.sub(r"\w+", lambda found: words.get(found[0], found[0]), SIBLINGS)
    (plain,), (other,) = walks(SIBLINGS), walks(renamed)

    assert {words[name] for name in plain.pointers} == other.pointers
    assert {words[name] for name in plain.links} == other.links
