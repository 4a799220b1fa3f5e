"""Adding a rule is adding one file, and a rule that cannot be tested does not load."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ddtree.analyzers import rules
from ddtree.analyzers.result import Stage, StageVerdict
from ddtree.analyzers.rules import Example, Rule, Scope, all_rules
from tests import checkout
from tests.analyzers import inputs, mini

NEW_RULE = '''"""A rule that a test adds."""

from collections.abc import Iterator

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope


class AcceptanceIsNamed(Rule):
    """A function that the logits reach is called `verify`."""

    stage = Stage.VERIFICATION
    supports = StageVerdict.TREE
    scope = Scope.LOGITS

    def gate(self, outline: Outline) -> bool:
        return True

    def find(self, view: FunctionView) -> Iterator[Finding]:
        if view.symbol == "verify":
            yield self.at(view, view.tree, "it is called verify")

    FOUND = (Example("def verify(target): return target"),)
    NOT_FOUND = (Example("def other(target): return target"),)
'''
# Takes the folder with the new rule and the target; prints what an inspection says of it.
INSPECT = """
import json, sys
from ddtree.analyzers import rules
rules.__path__.append(sys.argv[1])
from ddtree.analyzers.inspect import inspect_target
report = inspect_target(sys.argv[2], cache=False)
found = [[item.rule, item.symbol, item.message] for item in report.evidence]
print(json.dumps({"rules": report.coverage.rules, "found": found}))
"""


def test_every_file_beside_the_base_is_a_rule() -> None:
    folder = checkout.ROOT / "analyzers" / "rules"
    files = {path.stem.replace("_", "-") for path in folder.glob("*.py")} - {"--init--", "rule"}

    assert {rule.name for rule in all_rules()} == files
    assert len(all_rules()) == len(files)


def test_rules_are_ordered_by_name() -> None:
    names = [rule.name for rule in all_rules()]

    assert names == sorted(names)


def test_a_new_rule_is_one_file(tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    (new / "acceptance_is_named.py").write_text(NEW_RULE, encoding="utf-8")
    name, source = next(iter(inputs.POSITIVES.items()))
    target = mini.install(tmp_path / name, source)

    done = subprocess.run(
        [sys.executable, "-c", INSPECT, str(new), str(target)],
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(done.stdout)

    assert set(said["rules"]) == {*(rule.name for rule in all_rules()), "acceptance-is-named"}
    assert ["acceptance-is-named", "verify", "it is called verify"] in said["found"]


@pytest.mark.parametrize("missing", ["stage", "supports", "scope", "FOUND", "NOT_FOUND", "__doc__"])
def test_an_incomplete_rule_does_not_load(missing: str) -> None:
    whole: dict[str, object] = {
        "stage": Stage.VERIFICATION,
        "supports": StageVerdict.TREE,
        "scope": Scope.LOGITS,
        "FOUND": (Example("def f(): pass"),),
        "NOT_FOUND": (Example("def g(): pass"),),
        "__doc__": "What it looks for.",
        "__module__": "somewhere.incomplete_rule",
    }
    before = list(Rule.registry)
    del whole[missing]

    with pytest.raises(TypeError, match="rule incomplete-rule: expected a"):
        type("IncompleteRule", (Rule,), whole)

    assert Rule.registry == before


@pytest.mark.parametrize("kind", ["FOUND", "NOT_FOUND"])
def test_an_empty_list_of_examples_is_a_missing_one(kind: str) -> None:
    whole: dict[str, object] = {
        "stage": Stage.VERIFICATION,
        "supports": StageVerdict.TREE,
        "scope": Scope.LOGITS,
        "FOUND": (Example("def f(): pass"),),
        "NOT_FOUND": (Example("def g(): pass"),),
        "__doc__": "What it looks for.",
        "__module__": "somewhere.incomplete_rule",
    }

    with pytest.raises(TypeError, match=f"expected a value for {kind}, found none"):
        type("IncompleteRule", (Rule,), whole | {kind: ()})


def test_the_package_names_what_a_rule_needs() -> None:
    assert {"Example", "Finding", "Rule", "Scope", "all_rules"} <= set(rules.__all__)
