"""What one file imports and defines at its top level."""

from __future__ import annotations

import ast

import pytest

from ddtree.analyzers.program.module import Import, Module, parse_module


def parsed(source: str, name: str = "app.part.file", path: str = "app/part/file.py") -> Module:
    return parse_module(name, path, source.encode())


@pytest.mark.parametrize(
    ("source", "name", "bound"),
    [
        ("import torch", "torch", Import("torch")),
        ("import a.b.c", "a", Import("a")),
        ("import a.b.c as d", "d", Import("a.b.c")),
        ("from a.b import c", "c", Import("a.b", "c")),
        ("from a.b import c as d", "d", Import("a.b", "c")),
        ("from . import c", "c", Import("app.part", "c")),
        ("from .b import c", "c", Import("app.part.b", "c")),
        ("from .. import c", "c", Import("app", "c")),
        ("from ..b.d import c", "c", Import("app.b.d", "c")),
    ],
)
def test_imports(source: str, name: str, bound: Import) -> None:
    assert parsed(source).imports == {name: bound}


def test_relative_imports_of_a_package_start_from_itself() -> None:
    module = parsed("from .b import c", "app.part", "app/part/__init__.py")

    assert module.is_package
    assert module.package == "app.part"
    assert module.imports == {"c": Import("app.part.b", "c")}


def test_branches_of_the_top_level_count() -> None:
    source = """
if cuda:
    from .gpu import kernel
else:
    from .cpu import other
try:
    import fast
except ImportError:
    import slow
else:
    quick = 1
with guard():
    def inner(): ...
"""
    module = parsed(source)

    assert set(module.imports) == {"kernel", "other", "fast", "slow"}
    assert set(module.definitions) == {"quick", "inner"}


def test_the_first_definition_of_a_name_stands() -> None:
    module = parsed("def f(): return 1\ndef f(): return 2\n")
    definition = module.definitions["f"]

    assert isinstance(definition, ast.FunctionDef)
    assert definition.lineno == 1


def test_definitions_of_every_kind() -> None:
    source = "class A: ...\ndef f(): ...\nasync def g(): ...\nx = y = 1\nz: int = 2\na.b = 3\n"

    assert set(parsed(source).definitions) == {"A", "f", "g", "x", "y", "z"}


def test_what_functions_define_is_not_of_the_module() -> None:
    module = parsed("def f():\n    import torch\n    def g(): ...\n")

    assert set(module.definitions) == {"f"}
    assert module.imports == {}


@pytest.mark.parametrize(
    "source", [b"def f(:\n", b"x = 1\0\n", b"name = 'caf\xe9'\n", b"\xff\xfe\x00"]
)
def test_bytes_that_are_no_python(source: bytes) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        parse_module("bad", "bad.py", source)


def test_an_encoding_that_is_declared_is_followed() -> None:
    module = parse_module("m", "m.py", "# coding: latin-1\nname = 'café'\n".encode("latin-1"))

    assert set(module.definitions) == {"name"}


def test_nesting_without_end_is_no_crash() -> None:
    with pytest.raises((SyntaxError, ValueError)):
        parsed("x = " + "-" * 200_000 + "1\n")


def test_warnings_of_strangers_are_kept_quiet() -> None:
    # An invalid escape sequence: a warning when it is compiled, and an error in these tests.
    assert set(parsed(r"pattern = '\d'").definitions) == {"pattern"}
