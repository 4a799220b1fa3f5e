"""Names are resolved across files as Python would resolve them, and bad files are reported."""

from __future__ import annotations

import ast

import pytest

from ddtree.analyzers.program.program import (
    MAX_HOPS,
    ClassRef,
    FunctionRef,
    ModuleRef,
    Program,
    Resolved,
)

from .programs import UNREADABLE, Loaded, program


def named(found: Resolved | None) -> str | None:
    """A resolved name as `module:symbol`."""
    if isinstance(found, ModuleRef):
        return found.name
    if isinstance(found, ClassRef):
        return f"{found.module.name}:{found.node.name}"
    return f"{found.module.name}:{found.symbol}" if isinstance(found, FunctionRef) else None


def meaning(files: dict[str, str], module: str, expression: str) -> str | None:
    """What an expression means at the top level of a module."""
    code = program(files)
    loaded = code.module(module)
    assert loaded is not None, code.failures
    return named(code.resolve_expression(loaded, ast.parse(expression, mode="eval").body))


def test_a_module_is_a_file_or_a_package() -> None:
    code = program({"app/__init__.py": "", "app/part.py": "", "app/sub/__init__.py": ""})

    assert code.path_of("app") == "app/__init__.py"
    assert code.path_of("app.part") == "app/part.py"
    assert code.path_of("app.sub") == "app/sub/__init__.py"
    assert code.path_of("app.none") is None


def test_modules_are_loaded_when_they_are_asked_for_and_once() -> None:
    reads: list[str] = []

    def read(path: str) -> bytes:
        reads.append(path)
        return b""

    code = Program(["a.py", "b.py"], read)

    assert code.module("a") is code.module("a")
    assert [module.name for module in code.loaded] == ["a"]
    assert reads == ["a.py"]
    assert code.module("c") is None
    assert code.failures == {}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def f(:\n", "syntax error at line 1"),
        (b"x = 1\0\n", "null bytes"),
        (b"name = '\xe9'\n", "utf-8"),
        (UNREADABLE, "Permission denied"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported(source: str | bytes, reason: str) -> None:
    code = program({"good.py": "from bad import f", "bad.py": source})
    good = code.module("good")
    assert good is not None

    assert code.resolve(good, "f") is None
    assert list(code.failures) == ["bad.py"]
    assert reason in code.failures["bad.py"]
    # NUL bytes are refused as a whole, not at a line.
    assert "line None" not in code.failures["bad.py"]


@pytest.mark.parametrize(
    ("source", "name", "target"),
    [
        ("def f(): ...", "f", "m:f"),
        ("class A: ...", "A", "m:A"),
        ("def f(): ...\ng = f", "g", "m:f"),
        ("def f(): ...\ng: object = f", "g", "m:f"),
        ("import triton\ndef body(): ...\nkernel = triton.jit(body)", "kernel", "m:body"),
        ("class A:\n    def f(self): ...\ng = A.f", "g", "m:A.f"),
        ("x = 1", "x", None),
        ("x = x", "x", None),
        ("x = y\ny = x", "x", None),
        ("", "missing", None),
    ],
)
def test_names_of_one_module(source: str, name: str, target: str | None) -> None:
    assert meaning({"m.py": source}, "m", name) == target


def test_names_pass_through_packages_that_re_export_them() -> None:
    files = {
        "app/__init__.py": "from .ops import walk",
        "app/ops/__init__.py": "from app.ops.triton import walk_tree as walk",
        "app/ops/triton.py": "def walk_tree(): ...",
        "user.py": "import app\nfrom app import walk\nimport app.ops as ops",
    }

    assert meaning(files, "user", "walk") == "app.ops.triton:walk_tree"
    assert meaning(files, "user", "app.walk") == "app.ops.triton:walk_tree"
    assert meaning(files, "user", "ops.walk") == "app.ops.triton:walk_tree"
    assert meaning(files, "user", "app.ops.triton.walk_tree") == "app.ops.triton:walk_tree"
    assert meaning(files, "user", "app.ops") == "app.ops"
    assert meaning(files, "user", "app.ops.none") is None


def test_re_exports_are_followed_for_a_while_only() -> None:
    length = MAX_HOPS + 3
    files = {f"m{place}.py": f"from m{place + 1} import f" for place in range(length)}
    files |= {f"m{length}.py": "def f(): ..."}

    assert meaning(files, "m0", "f") is None
    assert meaning(files, f"m{length - 2}", "f") == f"m{length}:f"


def test_modules_that_import_each_other_end() -> None:
    files = {
        "a.py": "from b import f, g\ndef h(): ...",
        "b.py": "from a import g, h\ndef f(): ...",
    }

    assert meaning(files, "a", "f") == "b:f"
    assert meaning(files, "b", "h") == "a:h"
    assert meaning(files, "a", "g") is None


def test_a_definition_comes_before_an_import_of_the_same_name() -> None:
    files = {"a.py": "from b import f\ndef f(): ...", "b.py": "def f(): ..."}

    assert meaning(files, "a", "f") == "a:f"


@pytest.mark.parametrize("outside", ["app/distributed.py", "app/model_executor/models/llama.py"])
def test_some_parts_are_not_followed(outside: str) -> None:
    base = outside.removesuffix(".py").replace("/", ".")
    files = {outside: "def f(): ...", "user.py": f"from {base} import f"}

    assert meaning(files, "user", "f") is None


def test_a_dotted_setting_names_a_class() -> None:
    code = program({"plug/worker.py": "class Worker: ..."})

    assert named(code.dotted("plug.worker.Worker")) == "plug.worker:Worker"
    assert named(code.dotted("plug.worker:Worker")) == "plug.worker:Worker"
    assert code.dotted("plug.worker.Missing") is None
    assert code.dotted("Worker") is None


HIERARCHY = {
    "base.py": """
class Base:
    def run(self): ...
    def stop(self): ...
""",
    "mixin.py": """
class Mixin:
    def run(self): ...
""",
    "leaf.py": """
import base
from mixin import Mixin
class Middle(base.Base):
    def stop(self): ...
class Leaf(Mixin, Middle, Generic[T]):
    def start(self): ...
""",
}


def test_the_hierarchy_of_a_class() -> None:
    code = Loaded(HIERARCHY)
    leaf = code.cls("leaf:Leaf")

    line = [cls.node.name for cls in code.program.ancestry(leaf)]
    assert line == ["Leaf", "Mixin", "Middle", "Base"]


@pytest.mark.parametrize(
    ("name", "after", "found"),
    [
        ("start", None, "leaf:Leaf.start"),
        ("run", None, "mixin:Mixin.run"),
        ("stop", None, "leaf:Middle.stop"),
        ("run", "mixin:Mixin", "base:Base.run"),
        ("stop", "leaf:Middle", "base:Base.stop"),
        ("start", "leaf:Leaf", None),
        ("missing", None, None),
    ],
)
def test_methods_are_found_along_the_hierarchy(
    name: str, after: str | None, found: str | None
) -> None:
    code = Loaded(HIERARCHY)
    past = code.cls(after) if after else None

    assert named(code.program.method(code.cls("leaf:Leaf"), name, after=past)) == found


def test_bases_with_parameters_count() -> None:
    code = Loaded({"m.py": "class A: ...\nclass B(A[int]): ..."})

    assert [cls.node.name for cls in code.program.ancestry(code.cls("m:B"))] == ["B", "A"]


def test_classes_that_derive_from_each_other_end() -> None:
    code = Loaded(
        {"a.py": "from b import B\nclass A(B): ...", "b.py": "from a import A\nclass B(A): ..."}
    )

    assert {cls.node.name for cls in code.program.ancestry(code.cls("a:A"))} == {"A", "B"}


def test_the_modules_beside_each_other() -> None:
    files = {
        "app/part/__init__.py": "",
        "app/part/a.py": "",
        "app/part/sub/b.py": "",
        "app/part/broken.py": "def",
        "app/part/note.txt": "",
    }
    code = program(files)

    assert [module.name for module in code.siblings("app.part")] == ["app.part", "app.part.a"]
    assert len(list(code.sources("app.part"))) == 3
    assert list(code.failures) == ["app/part/broken.py"]
