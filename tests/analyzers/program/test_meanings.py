"""Names with several meanings, and instances that are kept in unusual places."""

from __future__ import annotations

import pytest

from .programs import Loaded, symbols

RUN = """
class A:
    def run(self): g()
    def __enter__(self): return self
    @classmethod
    def make(cls): return cls()
def g(): ...
"""


@pytest.mark.parametrize(
    "source",
    [
        "class O:\n    def __init__(self, x): self.a: 'A' = x\ndef f(o: O):\n    o.a.run()",
        "@dataclass\nclass D:\n    a: A\ndef f(d: D):\n    d.a.run()",
        "class D:\n    a = A()\n    def go(self): self.a.run()\ndef f(d: D):\n    d.go()",
        "INSTANCE = A()\ndef f():\n    INSTANCE.run()",
        "def f():\n    if (a := A()):\n        a.run()",
        "def f():\n    with A() as a:\n        a.run()",
        "def f():\n    a = A.make()\n    a.run()",
        "def f(kind: type[A]):\n    kind().run()",
        "def f():\n    for x in [A()]: x.run()",
        "def f(xs: dict[str, A]):\n    xs['a'].run()",
        "T = {'x': A}\ndef f():\n    T['x']().run()",
        "T = {'x': g}\ndef f():\n    T['x']()",
        "h = functools.partial(g, 1)\ndef f(): h()",
        "h = lambda: g()\ndef f(): h()",
        "a, b = g, None\ndef f(): a()",
    ],
)
def test_what_is_kept_elsewhere_is_reached(source: str) -> None:
    assert "g" in symbols(Loaded({"m.py": RUN + source}).reach("m:f"))


def test_all_names_of_a_module_are_imported_by_a_star() -> None:
    files = {"a.py": "from b import *\ndef f(): g()", "b.py": "def g(): ..."}

    assert "g" in symbols(Loaded(files).reach("a:f"))


def test_both_branches_of_a_conditional_import_are_followed() -> None:
    head = "if cuda:\n    from a import g\nelse:\n    from b import g\ndef f(): g()"
    files = {
        "m.py": head,
        "a.py": "def g(): x()\ndef x(): ...",
        "b.py": "def g(): y()\ndef y(): ...",
    }

    assert {"x", "y"} <= set(symbols(Loaded(files).reach("m:f")))


def test_both_definitions_of_a_name_are_followed() -> None:
    source = """
if cuda:
    def g(): x()
else:
    def g(): y()
def x(): ...
def y(): ...
def f(): g()
"""

    assert {"x", "y"} <= set(symbols(Loaded({"m.py": source}).reach("m:f")))


def test_methods_are_found_in_the_order_of_python() -> None:
    source = """
class A:
    def f(s): ...
class B(A): ...
class C(A):
    def f(s): ...
class D(B, C): ...
"""

    assert Loaded({"m.py": source}).function("m:D.f").symbol == "C.f"
