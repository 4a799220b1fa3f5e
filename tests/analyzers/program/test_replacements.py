"""Methods that are replaced on an object that the engine holds."""

from __future__ import annotations

import pytest

from ddtree.analyzers.program.reach import Reach
from ddtree.analyzers.program.replacements import replacements
from ddtree.analyzers.program.wrappers import Wrap

from .programs import Loaded, symbols

DRAFTERS = """
class Base:
    def draft(self, rows): ...

class Fast(Base):
    def draft(self, rows):
        return chain(rows)

def chain(rows): ...

def made(): return Fast()
"""
ENGINE = """
from functools import partial
from app.drafters import made
from beside.hooks import hook, mine

class Runner:
    @hook
    def __init__(self, config):
        self.drafter = made()
        self.count = 3
        {stored}

    def run(self, rows):
        return self.drafter.draft(rows)
"""
HOOKS = """
import functools

def mine(state, function, rows): return tree(function(rows))

def tree(rows): ...

def init(function, runner, *args):
    function(runner, *args)
    {stored}

def hook(function):
    def hooked(*args): return init(function, *args)
    return hooked
"""
BY_HOOK = "held = runner.drafter\n    held.draft = functools.partial(mine, {}, held.draft)"
CHAIN = ["Runner.run", "Fast.draft", "chain"]
TREE = ["Runner.run", "Fast.draft", "chain", "mine", "tree"]


def loaded(in_engine: str = "pass", in_hook: str = "pass") -> Loaded:
    files = {
        "app/drafters.py": DRAFTERS,
        "app/worker.py": ENGINE.replace("{stored}", in_engine),
        "beside/hooks.py": HOOKS.replace("{stored}", in_hook),
    }
    return Loaded(files)


def reached(one: Loaded) -> Reach:
    for method, wrap in found(one):
        one.receivers.wrappers.put(one.function(f"app.drafters:{method}"), wrap)
    return one.reach("app.worker:Runner.run")


def found(one: Loaded) -> list[tuple[str, Wrap]]:
    pairs = replacements(one.program, one.receivers, one.cls("app.worker:Runner"))
    return [(method.symbol, wrap) for method, wrap in pairs]


def test_what_a_hook_stores_on_a_held_object_runs_in_the_method_s_place() -> None:
    """It is handed what was there before, and the method's arguments without the instance."""
    one = loaded(in_hook=BY_HOOK)

    ((method, wrap),) = found(one)

    assert method == "Fast.draft"
    assert wrap.function.symbol == "mine"
    assert wrap.handed == (("rows", 1),)
    assert {name: held.symbol for name, held in wrap.function.bound.items()} == {
        "function": "Fast.draft"
    }
    assert wrap.function.wraps is not None
    assert symbols(reached(one)) == TREE


@pytest.mark.parametrize(
    "stored",
    [
        "self.drafter.draft = partial(mine, {}, self.drafter.draft)",
        "self.drafter.draft = lambda rows: mine({}, chain, rows)",
        "if config:\n            self.drafter.draft = partial(mine, {}, self.drafter.draft)",
    ],
)
def test_the_engine_may_store_it_itself(stored: str) -> None:
    assert "mine" in symbols(reached(loaded(in_engine=stored)))


@pytest.mark.parametrize(
    "stored",
    [
        "pass",
        # Another object, another attribute, another value.
        "other = config.drafter\n        other.draft = partial(mine, {}, other.draft)",
        "self.drafter.other = partial(mine, {}, self.drafter.draft)",
        "self.drafter.draft = self.count",
        "self.drafter.draft = 3",
        "self.drafter.draft = unknown(mine)",
        "self.count.draft = partial(mine, {}, self.drafter.draft)",
        "draft = partial(mine, {}, self.drafter.draft)",
        "self.drafter.rows.draft = partial(mine, {}, self.drafter.draft)",
    ],
)
def test_anything_else_replaces_nothing(stored: str) -> None:
    one = loaded(in_engine=stored)

    assert found(one) == []
    assert symbols(reached(one)) == CHAIN


def test_objects_that_hold_each_other_end() -> None:
    """Names that are assigned from each other lead nowhere."""
    one = loaded(in_hook="a = b\n    b = a\n    a.draft = functools.partial(mine, {}, a.draft)")

    assert found(one) == []
