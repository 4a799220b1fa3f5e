"""When a wrapper leaves a step to what it wraps."""

from __future__ import annotations

from ddtree.analyzers.conditions import condition_of
from tests.analyzers.program.programs import Loaded

ENGINE = """
from beside import hook

class Runner:
    @hook
    def decide(self, logits): ...
"""


def condition(body: str) -> str:
    hooks = f"def way(stock, runner, logits):\n{body}\ndef walk(logits): ...\n"
    hooks += "def hook(function): return lambda *args: way(function, *args)\n"
    loaded = Loaded({"app/worker.py": ENGINE, "beside.py": hooks})
    reach = loaded.reach("app.worker:Runner.decide")
    (walk,) = [one for one in reach.functions if one.function.symbol == "walk"]
    return condition_of(walk)


def test_a_guard_that_returns_the_stock_function_alone_is_named() -> None:
    found = condition("    if runner.off:\n        return stock(runner, logits)\n    walk(logits)")

    assert found.startswith("app/worker.py:5 wraps Runner.decide in way (beside.py:2)")
    assert "where `runner.off`" in found


def test_a_wrapper_that_always_decides_has_no_condition() -> None:
    assert condition("    logits = walk(logits)\n    return stock(runner, logits)") == ""


def test_code_of_the_engine_itself_has_no_condition() -> None:
    loaded = Loaded({"app/worker.py": ENGINE.replace("@hook", "@plain")})
    (decide,) = loaded.reach("app.worker:Runner.decide").functions

    assert condition_of(decide) == ""
