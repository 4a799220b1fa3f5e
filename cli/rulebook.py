"""The rules as a reader meets them: name, what they show, help text and examples."""

from __future__ import annotations

import difflib
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

    return tuple(
        RuleHelp(
            name=rule.name,
            stage=rule.stage,
            supports=rule.supports,
            summary=rule.help.partition("\n")[0],
            help=rule.help,
            found=tuple(example.source for example in rule.FOUND),
            not_found=tuple(example.source for example in rule.NOT_FOUND),
        )
        for rule in all_rules()
    )


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
