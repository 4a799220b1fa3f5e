"""What decorators put around a function, and which arguments it is handed."""

from __future__ import annotations

import pytest

from ddtree.analyzers.program.wrappers import Wrap

from .programs import Loaded, symbols

ENGINE = """
from beside.hooks import hook

class Runner:
    def run(self, scores):
        return self.decide(scores, 3)

    @hook("decide")
    def decide(self, scores, count):
        return stock(scores)

def stock(scores): ...
"""
HANDLER = "def handler(function, runner, scores, *rest): return function(runner, scores, *rest)\n"
WRAPPER = """
    def decorate(function):
        def wrapper(*args, **kwargs):
            return way(function, *args, **kwargs)
        return wrapper
    return decorate
"""


def loaded(hooks: str) -> Loaded:
    return Loaded({"app/worker.py": ENGINE, "beside/hooks.py": HANDLER + hooks})


def wraps(hooks: str) -> tuple[Wrap, ...]:
    one = loaded(hooks)
    return one.receivers.wrappers.of(one.function("app.worker:Runner.decide")).wraps


def test_a_handler_is_handed_the_arguments_after_the_function() -> None:
    first, _ = wraps("def hook(name):\n    way = handler" + WRAPPER)

    assert first.function.symbol == "handler"
    assert first.handed == (("runner", 0), ("scores", 1), ("rest", 2))
    assert {name: held.symbol for name, held in first.function.bound.items()} == {
        "function": "Runner.decide"
    }


@pytest.mark.parametrize(
    "hooks",
    [
        "def hook(name): return lambda function: function\n",
        "def hook(name):\n    def decorate(function): return function\n    return decorate\n",
        "def hook(name): return keep\ndef keep(function): return function\n",
        "from functools import wraps\ndef hook(name):\n    def decorate(function):\n"
        "        @wraps(function)\n        def inner(*args): return function(*args)\n"
        "        return inner\n    return decorate\n",
        "def hook(name): return unknown(name)\n",
        "def hook(name): raise LookupError(name)\n",
        "def hook(name): return hook(name)\n",
        "hook = hook\n",
        "def hook(name): return 3\n",
    ],
)
def test_what_hands_the_function_back_wraps_nothing(hooks: str) -> None:
    assert wraps(hooks) == ()


def test_constants_decide_between_handlers() -> None:
    hooks = (
        "def other(function, *args): return 1\n"
        'def hook(name):\n    if name != "decide":\n        way = other\n'
        "    else:\n        way = handler" + WRAPPER
    )

    assert [wrap.function.symbol for wrap in wraps(hooks)] == ["handler", "wrapper"]


def test_what_no_constant_decides_may_be_either() -> None:
    hooks = (
        "import os\n"
        "def other(function, *args): return 1\n"
        "def hook(name):\n    if os.environ:\n        return lambda f: lambda *a: other(f, *a)\n"
        "    return lambda f: lambda *a: handler(f, *a)\n"
    )

    assert {wrap.function.symbol for wrap in wraps(hooks)} == {"other", "handler"}


def test_a_wrapper_with_parameters_of_its_own_is_followed_itself() -> None:
    hooks = (
        "def hook(name):\n    def decorate(function):\n"
        "        def inner(runner, values, count): return walk(values)\n"
        "        return inner\n    return decorate\ndef walk(values): ...\n"
    )
    one = loaded(hooks)

    (wrap,) = one.receivers.wrappers.of(one.function("app.worker:Runner.decide")).wraps

    assert wrap.handed == (("runner", 0), ("values", 1), ("count", 2))
    reach = one.reach("app.worker:Runner.run")
    assert symbols(reach) == ["Runner.run", "Runner.decide", "stock", "inner", "walk"]


def test_a_fallback_counts_only_where_the_import_fails() -> None:
    guarded = ENGINE.replace(
        "from beside.hooks import hook\n",
        "try:\n    from beside.hooks import hook\nexcept ImportError:\n"
        "    def hook(name):\n        return lambda function: function\n",
    )
    hooks = HANDLER + "def hook(name):\n    way = handler" + WRAPPER
    there = Loaded({"app/worker.py": guarded, "beside/hooks.py": hooks})
    gone = Loaded({"app/worker.py": guarded})

    assert "handler" in symbols(there.reach("app.worker:Runner.run"))
    assert symbols(gone.reach("app.worker:Runner.run")) == ["Runner.run", "Runner.decide", "stock"]


def test_only_the_handler_of_the_name_is_reached() -> None:
    hooks = (
        "def other(function, *args): return 1\n"
        'WAYS = {"decide": handler, "other": other}\n'
        "def hook(name):\n    way = WAYS[name]" + WRAPPER
    )

    found = symbols(loaded(hooks).reach("app.worker:Runner.run"))

    assert "handler" in found
    assert "other" not in found


def test_logits_are_handed_to_the_right_parameter() -> None:
    hooks = "def hook(name):\n    way = handler" + WRAPPER
    engine = ENGINE.replace("scores", "logits")
    one = Loaded({"app/worker.py": engine, "beside/hooks.py": HANDLER + hooks})

    region = one.logits("app.worker:Runner", "run")

    held = {reached.function.symbol: names for reached, names in region.tainted.items()}
    assert held["handler"] == {"scores"}
