"""Which classes an expression can be an instance of."""

from __future__ import annotations

import ast

import pytest

from .programs import Loaded

CLASSES = """
from typing import Optional
class A:
    def twin(self) -> "A": ...
    def other(self): return B()
class B: ...
def make(): return A()
def promise() -> A: ...
def either(flag):
    if flag:
        return A()
    return B()
"""


def types(body: str, expression: str, head: str = "def f(self, x, y):") -> set[str]:
    """The names of the classes that an expression may be an instance of in a function."""
    lines = "".join(f"    {line}\n" for line in body.splitlines() or ["..."])
    code = Loaded({"m.py": f"{CLASSES}\n{head}\n{lines}"})
    scope = code.scope("m:f")
    found = code.receivers.types(scope, ast.parse(expression, mode="eval").body)
    return {cls.node.name for cls in found}


@pytest.mark.parametrize(
    ("body", "expression", "found"),
    [
        ("x = A()", "x", {"A"}),
        ("x = A()\ny = x", "y", {"A"}),
        ("x = A() if y else B()", "x", {"A", "B"}),
        ("x = y or A()", "x", {"A"}),
        ("if y:\n    x = A()\nelse:\n    x = B()", "x", {"A", "B"}),
        ("x = make()", "x", {"A"}),
        ("x = promise()", "x", {"A"}),
        ("x = either(1)", "x", {"A", "B"}),
        ("x = A().twin().twin()", "x", {"A"}),
        ("x = A().other()", "x", {"B"}),
        ("x: A = y", "x", {"A"}),
        ("", "A()", {"A"}),
        ("", "x", set()),
        ("x = 1", "x", set()),
        ("x = x", "x", set()),
        ("x = unknown()", "x", set()),
        ("from nowhere import A\nx = A()", "x", set()),
    ],
)
def test_locals(body: str, expression: str, found: set[str]) -> None:
    assert types(body, expression) == found


@pytest.mark.parametrize(
    ("annotation", "found"),
    [
        ("A", {"A"}),
        ("'A'", {"A"}),
        ("A | None", {"A"}),
        ("'A | B'", {"A", "B"}),
        ("Optional[A]", {"A"}),
        ("list['B']", {"B"}),
        ("int", set()),
        ("'not python ('", set()),
    ],
)
def test_annotated_parameters(annotation: str, found: set[str]) -> None:
    assert types("", "x", f"def f(x: {annotation}):") == found


OWNERS = """
class Part:
    def make(self): return Part()
class Other: ...
class Base:
    def __init__(self, given: Other):
        self.given = given
        self.inherited = Part()
class Owner(Base):
    shared: Part
    def __init__(self, given):
        super().__init__(given)
        self.part = Part()
        self.named: Other = given
        self.first, self.second = make()
        self.count = 0
        self.a = self.b
        self.b = self.a
    def later(self):
        self.part = Other()
        self.made = self.part.make()
    @property
    def lent(self) -> Part: ...
def make():
    return Part()
"""


@pytest.mark.parametrize(
    ("attribute", "found"),
    [
        ("part", {"Part", "Other"}),
        ("named", {"Other"}),
        ("inherited", {"Part"}),
        ("given", {"Other"}),
        ("made", {"Part"}),
        ("lent", {"Part"}),
        ("first", {"Part"}),
        ("second", {"Part"}),
        ("count", set()),
        ("a", set()),
        ("missing", set()),
    ],
)
def test_attributes(attribute: str, found: set[str]) -> None:
    code = Loaded({"m.py": OWNERS})
    held = code.receivers.attribute(code.cls("m:Owner"), attribute)

    assert {cls.node.name for cls in held} == found
    assert len(held) == len(found)


def test_attributes_of_attributes() -> None:
    source = """
class Sampler: ...
class Runner:
    def __init__(self):
        self.sampler = Sampler()
class Worker:
    def __init__(self):
        self.runner = Runner()
    def f(self):
        return self.runner.sampler
"""
    code = Loaded({"m.py": source})
    scope = code.scope("m:Worker.f")
    expression = ast.parse("self.runner.sampler", mode="eval").body

    assert [cls.node.name for cls in code.receivers.types(scope, expression)] == ["Sampler"]


def test_self_is_the_instance_not_the_class_that_defines_the_method() -> None:
    source = "class A:\n    def f(self): ...\nclass B(A): ...\n"
    code = Loaded({"m.py": source})
    scope = code.receivers.scope(code.function("m:A.f"), code.cls("m:B"))

    found = code.receivers.types(scope, ast.parse("self", mode="eval").body)
    assert [cls.node.name for cls in found] == ["B"]


def test_what_a_function_imports_itself() -> None:
    files = {
        "app/user.py": "def f():\n    from .late import A\n    x = A()\n",
        "app/late.py": "class A: ...",
    }
    code = Loaded(files)
    scope = code.scope("app.user:f")

    found = code.receivers.types(scope, ast.parse("x", mode="eval").body)
    assert [cls.key for cls in found] == [("app.late", "A")]


def test_what_a_factory_returns() -> None:
    code = Loaded({"m.py": CLASSES})
    found = code.receivers.returned(code.function("m:either"))

    assert {cls.node.name for cls in found} == {"A", "B"}


def test_functions_that_return_each_other_end() -> None:
    code = Loaded({"m.py": "def f(): return g()\ndef g(): return f()\n"})

    assert list(code.receivers.returned(code.function("m:f"))) == []
