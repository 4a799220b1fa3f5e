"""Wording that the renderers of a comparison share; knows no output format."""

from __future__ import annotations

from ....analyzers.compare import Comparison, FactChange, Moved, PathChange, SetChange, Side
from ....analyzers.result import StageVerdict, Verdict
from .. import words


def side(one: Side) -> str:
    """An install in a few words: what it is, or where it is when it does not say."""
    if one.distribution is None:
        return one.target
    return f"{one.distribution} {one.version or '(version unknown)'}"


def verdict(value: StageVerdict | Verdict | None) -> str:
    """A verdict, or that its engine path does not exist there."""
    return "no such path" if value is None else value.value


def default(change: PathChange) -> str:
    """How the choice of this path as the default changes; empty where it does not."""
    if change.before is None or change.after is None:
        return ""
    before = words.default_word(change.default_before) or "not default"
    after = words.default_word(change.default_after) or "not default"
    return "" if before == after else f"{before} -> {after}"


def fact(change: FactChange) -> str:
    """A value before and after."""
    return f"{change.before or 'not stated'} -> {change.after or 'not stated'}"


def values(change: SetChange) -> str:
    """Every value that a set loses (-) and gains (+)."""
    lost = [f"-{value}" for value in change.lost]
    return " ".join([*lost, *(f"+{value}" for value in change.gained)])


def counts(change: SetChange) -> str:
    """How many values a set loses and gains, and the first few of each."""
    kinds = (("-", change.lost), ("+", change.gained))
    shown = [f"{sign}{len(found)}: {words.some(found, 3)}" for sign, found in kinds if found]
    return "; ".join(shown)


def move(moved: Moved) -> str:
    """The place before and after; the file once where it is the same."""
    one, other = moved.before, moved.after
    if one.file == other.file:
        return f"{one.file}:{one.line} -> {other.line}"
    return f"{one.file}:{one.line} -> {other.file}:{other.line}"


def headline(comparison: Comparison) -> str:
    """Both verdicts and what changed between them."""
    return f"{comparison.before.verdict} -> {comparison.after.verdict}: {comparison.summary}"
