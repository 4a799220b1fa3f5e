"""Tests that are generated from the examples which every rule carries."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import pytest

from ddtree.analyzers.program.survey import survey
from ddtree.analyzers.program.taint import Flow, spread
from ddtree.analyzers.rules import Example, Finding, Rule, all_rules
from ddtree.analyzers.shapes.view import FunctionView, view_of_source
from tests.analyzers.program.programs import Loaded

RULES = all_rules()


@dataclass(frozen=True)
class Case:
    """One example of one rule."""

    rule: Rule
    example: Example

    @property
    def view(self) -> FunctionView:
        """The example as the rule sees it."""
        source = self.example.source
        return view_of_source(source, named(source, "target"), named(source, "held"))

    @property
    def passes(self) -> bool:
        """Whether the rule wants to see the function at all."""
        return self.rule.gate(survey(self.view.node).outline)

    def findings(self) -> list[Finding]:
        """What an inspection would find in the function."""
        return list(self.rule.find(self.view)) if self.passes else []


def named(source: str, start: str) -> set[str]:
    """The names of an example that begin with a word, and those that take over their values."""
    names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    names |= {node.arg for node in ast.walk(ast.parse(source)) if isinstance(node, ast.arg)}
    function = next(
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)
    )
    one = Loaded({"app/m.py": source})
    (reached,) = one.reach(f"app.m:{function.name}").functions[:1]
    begun = {name for name in names if name.startswith(start)}
    return spread(reached, one.receivers, begun, Flow(seeded=False, decisions=True))


def cases(kind: str) -> list[object]:
    """A test parameter for each example of a kind, named after its rule and its function."""
    return [
        pytest.param(Case(rule, example), id=f"{rule.name}-{place}")
        for rule in RULES
        for place, example in enumerate(getattr(rule, kind))
    ]


@pytest.mark.parametrize("case", cases("FOUND"))
def test_found(case: Case) -> None:
    assert case.passes, "the gate keeps the rule from its own example"
    assert case.findings()


@pytest.mark.parametrize("case", cases("FOUND"))
def test_findings_lie_in_the_function_and_say_something(case: Case) -> None:
    node = case.view.node
    lines = case.example.source.splitlines()
    for finding in case.findings():
        assert node.end_lineno is not None
        assert node.lineno <= finding.line <= finding.end_line <= node.end_lineno
        assert 1 <= finding.column <= len(lines[finding.line - 1])
        assert not lines[finding.line - 1][finding.column - 1].isspace()
        assert finding.message == " ".join(finding.message.split())
        assert finding.message


@pytest.mark.parametrize("case", cases("NOT_FOUND"))
def test_not_found(case: Case) -> None:
    assert case.findings() == []


@pytest.mark.parametrize("case", cases("FOUND"))
def test_found_wherever_the_function_stands(case: Case) -> None:
    source = "class Holder:\n" + "".join(
        f"    {line}" for line in case.example.source.strip("\n").splitlines(keepends=True)
    )
    node = next(node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    view = FunctionView(source.encode(), node, node.name, case.view.logits, case.view.held)
    moved = list(case.rule.find(view))

    # The source of an example begins with an empty line, as the class does with its head.
    expected = [(one.line, one.column + 4, one.message) for one in case.findings()]
    assert [(one.line, one.column, one.message) for one in moved] == expected


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_has_several_negatives(rule: Rule) -> None:
    assert len(rule.NOT_FOUND) >= 2


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_help_opens_with_one_sentence(rule: Rule) -> None:
    first, _, rest = rule.help.partition("\n")

    assert first.endswith(".")
    assert rest == "" or rest.startswith("\n")


def test_no_example_serves_twice() -> None:
    sources = [
        (rule.name, example.source.strip())
        for rule in RULES
        for example in (*rule.FOUND, *rule.NOT_FOUND)
    ]

    assert len(set(sources)) == len(sources)
