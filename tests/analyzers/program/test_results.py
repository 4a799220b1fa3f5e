"""Where the results of a function go."""

from __future__ import annotations

import pytest

from ddtree.analyzers.program.objects import Objects
from ddtree.analyzers.program.results import follow

from .programs import Loaded, symbol


def held(source: str, entry: str = "run", maker: str = "make") -> dict[str, set[str]]:
    one = Loaded({"app/m.py": source})
    reach = one.reach(f"app.m:{entry}")
    makers = [reached for reached in reach.functions if reached.function.symbol == maker]
    found = follow(reach, one.receivers, makers).names
    return {symbol(reached): set(names) for reached, names in found.items()}


def test_results_go_into_variables_and_arguments() -> None:
    source = """
def make(x): return x
def use(first, second): ...
def run(a):
    path = make(a)
    order = path + 1
    use(a, second=order)
"""
    assert held(source) == {"run": {"path", "order"}, "use": {"second"}}


def test_functions_that_hand_results_on_make_them_too() -> None:
    source = """
def make(x): return x
def outer(x): return make(x) + 1
def each(x):
    yield make(x)
def run(a):
    one = outer(a)
    for two in each(a):
        pass
"""
    assert held(source)["run"] == {"one", "two"}


def test_what_a_known_function_returns_does_not_hold_what_it_was_given() -> None:
    source = """
def make(x): return x
def count(x): return 3
def run(a):
    path = make(a)
    number = count(path)
    other = unknown(path)
"""
    assert held(source)["run"] == {"path", "other"}


def test_attributes_of_objects_carry_results() -> None:
    source = """
def make(x): return x
class State: ...
STATE = State()
def before(a):
    STATE.path, STATE.size = make(a), 3
def after():
    order = STATE.path
    size = STATE.size
def run(a):
    before(a)
    after()
"""
    assert held(source)["after"] == {"STATE.path", "order"}


def test_methods_on_results_know_their_instance() -> None:
    source = """
def make(x) -> "Step": ...
class Step:
    def order(self):
        rows = self.rows
        return rows
def run(a):
    step = make(a)
    rows = step.order()
"""
    found = held(source)
    assert found["run"] == {"step", "rows"}
    assert found["Step.order"] == {"self", "rows"}


def test_what_is_written_into_an_argument_is_a_result() -> None:
    source = """
def make(out, x):
    out[0] = x
def outer(buffer, x):
    make(buffer, x)
def run(a, table):
    outer(table, a)
    order = table
    other = a
"""
    assert held(source)["run"] == {"table", "order"}


def test_what_is_handed_through_comes_back_to_whoever_handed_it_in() -> None:
    source = """
def make(x): return x
def moved(x): return x.to("cuda")
def copied(out, x): out.copy_(x)
def run(a, b, first, second):
    path = make(a)
    mine = moved(path)
    other = moved(b)
    copied(first, path)
    copied(second, b)
"""
    assert held(source)["run"] == {"path", "mine", "first"}


def test_an_object_holds_results_in_the_fields_that_were_given_them() -> None:
    source = """
class Step:
    def __init__(self, path, size):
        self.path, self.size = path, size
class Pair:
    order: object
    width: int
def make(x): return x
def run(a):
    step = Step(make(a), 3)
    pair = Pair(make(a), width=4)
    first, second = step.path, step.size
    third, fourth = pair.order, pair.width
"""
    assert held(source)["run"] == {"step.path", "pair.order", "first", "third"}


def test_what_a_model_makes_of_a_result_is_no_result() -> None:
    source = """
def make(x): return x
class Engine:
    def run(self, a):
        path = make(a)
        hidden = self.model(path)
        return hidden
"""
    assert held(source, entry="Engine.run") == {"Engine.run": {"path"}}


CARRIED = """
class Metadata:
    def __init__(self, mask): self.mask = mask
class Other:
    def __init__(self): self.mask = None
def make(x): return x
def attend(metadata):
    bias = metadata.mask
def run(a):
    made = Metadata(make(a))
    attend(GIVEN)
"""


@pytest.mark.parametrize(
    ("given", "found"), [("made", {"metadata.mask", "bias"}), ("Other()", None)]
)
def test_a_field_counts_where_the_object_got_to(given: str, found: set[str] | None) -> None:
    one = Loaded({"app/m.py": CARRIED.replace("GIVEN", given)})
    reach = one.reach("app.m:run")
    makers = [reached for reached in reach.functions if reached.function.symbol == "make"]
    objects = Objects(reach, one.receivers, follow(reach, one.receivers, makers))

    names = follow(reach, one.receivers, makers, carry=objects.carry).names

    assert {symbol(reached): held for reached, held in names.items()}.get("attend") == found
