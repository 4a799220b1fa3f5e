"""The rules as a reader meets them: name, what they show, help text and examples."""

from __future__ import annotations

import difflib
import inspect
from dataclasses import dataclass

from ..analyzers.errors import UsageError
from ..analyzers.result import Stage, StageVerdict


@dataclass(frozen=True, slots=True)
class RuleHelp:
    """What `ddtree inspect rules` says about one rule; all of it stands in the rule's class."""

    name: str
    stage: Stage
    supports: StageVerdict
    summary: str
    help: str
    found: tuple[str, ...]
    not_found: tuple[str, ...]


def rulebook() -> tuple[RuleHelp, ...]:
    """Every rule, by name."""
    from ..analyzers.rules import all_rules

    entries = []
    for rule in all_rules():
        text = inspect.getdoc(rule) or ""
        examples = tuple(rule.FOUND), tuple(rule.NOT_FOUND)
        summary = text.partition("\n")[0]
        entries.append(RuleHelp(rule.name, rule.stage, rule.supports, summary, text, *examples))
    return tuple(sorted(entries, key=lambda entry: entry.name))


def find(name: str, book: tuple[RuleHelp, ...]) -> RuleHelp:
    """The rule of that name.

    Raises:
        UsageError: there is none.
    """
    for entry in book:
        if entry.name == name:
            return entry
    near = difflib.get_close_matches(name, [entry.name for entry in book], n=1)
    raise UsageError(
        f"there is no rule {name!r}",
        expected=f"a rule such as {near[0]}" if near else "a rule of the list",
        hint=f"ddtree inspect rules {near[0]}" if near else "ddtree inspect rules",
    )
