"""What an engine path can reach, and by which calls."""

from __future__ import annotations

import pytest

from .programs import Loaded, symbols


def reached(source: str, *entries: str) -> list[str]:
    """What the functions of one module reach."""
    return symbols(Loaded({"m.py": source}).reach(*[f"m:{entry}" for entry in entries]))


def test_calls_and_references() -> None:
    source = """
def f():
    g()
    table = {"h": h}
    run(k)
def g(): ...
def h(): ...
def k(): ...
def run(what): ...
def never(): ...
"""
    assert reached(source, "f") == ["f", "g", "h", "run", "k"]


def test_recursion_ends() -> None:
    assert reached("def f(): g()\ndef g(): f()\n", "f") == ["f", "g"]


def test_across_files_and_re_exports() -> None:
    files = {
        "app/__init__.py": "from .ops import accept",
        "app/ops/__init__.py": "from .chain import accept",
        "app/ops/chain.py": "from . import helper\ndef accept(): helper.step()",
        "app/ops/helper.py": "def step(): ...",
        "user.py": "import app\ndef f(): app.accept()",
    }
    assert symbols(Loaded(files).reach("user:f")) == ["f", "accept", "step"]


def test_kernels_are_launched_by_subscript() -> None:
    source = """
import triton
@triton.jit
def kernel(x): helper(x)
@triton.jit
def helper(x): ...
def launch(x):
    grid = (1,)
    kernel[grid](x)
"""
    assert reached(source, "launch") == ["launch", "kernel", "helper"]


def test_decorators_are_part_of_what_they_wrap() -> None:
    source = """
def registered(kernel):
    def decorate(function): return function
    return decorate
def kernel(x): ...
@registered(kernel)
def f(x): ...
"""
    assert reached(source, "f") == ["f", "registered", "kernel"]


HIERARCHY = """
class Base:
    def run(self): self.step()
    def step(self): base()
class Left(Base):
    def step(self):
        super().step()
        left()
class Right(Base):
    def step(self): right()
def base(): ...
def left(): ...
def right(): ...
def use(what: Base):
    what.run()
def make_left():
    use(Left())
def name_left():
    use(choose(Left))
def choose(kind): return kind()
"""


def test_a_virtual_call_reaches_only_classes_that_exist() -> None:
    found = reached(HIERARCHY, "make_left")

    assert {"Left.step", "left"} <= set(found)
    assert "Base.step on Left" in found
    assert "right" not in found


def test_a_class_that_is_named_may_be_instantiated_by_somebody_else() -> None:
    assert "left" in reached(HIERARCHY, "name_left")


def test_super_goes_past_the_class_that_asks() -> None:
    source = """
class A:
    def f(self): a()
class B(A):
    def f(self):
        super().f()
        b()
class C(B): ...
def a(): ...
def b(): ...
def start(): C().f()
"""
    found = reached(source, "start")

    assert found.index("B.f on C") < found.index("A.f on C")
    assert {"a", "b"} <= set(found)


def test_a_subclass_found_later_gets_the_calls_made_before() -> None:
    source = """
class Base:
    def run(self): ...
class Late(Base):
    def run(self): late()
def late(): ...
def start(what: Base):
    what.run()
    deeper()
def deeper(): Late()
"""
    assert "late" in reached(source, "start")


def test_instances_are_made_and_called() -> None:
    source = """
class Sampler:
    def __init__(self): setup()
    def forward(self, x): accept(x)
class Callable:
    def __call__(self, x): call(x)
class Runner:
    def __init__(self):
        self.sampler = Sampler()
        self.callable = Callable()
    def step(self, x):
        self.sampler(x)
        return self.callable(x)
def setup(): ...
def accept(x): ...
def call(x): ...
"""
    found = set(reached(source, "Runner.step", "Runner.__init__"))

    assert {"Sampler.forward", "accept", "Callable.__call__", "call", "setup"} <= found


def test_methods_taken_as_values() -> None:
    source = """
class Runner:
    def step(self):
        handler = self.accept
        return handler
    def accept(self): accept()
def accept(): ...
"""
    assert reached(source, "Runner.step") == ["Runner.step", "Runner.accept", "accept"]


def test_what_a_function_imports_itself_is_followed() -> None:
    files = {"a.py": "def f():\n    from b import g\n    g()\n", "b.py": "def g(): ..."}

    assert symbols(Loaded(files).reach("a:f")) == ["f", "g"]


def test_a_local_name_hides_a_global_one() -> None:
    assert reached("def g(): ...\ndef f(g): g()\n", "f") == ["f"]


def test_a_broken_module_is_passed_by() -> None:
    files = {
        "a.py": "import b\nfrom b import g\ndef f():\n    g()\n    b.h()\n    k()\ndef k(): ...",
        "b.py": "(",
    }
    code = Loaded(files)

    assert symbols(code.reach("a:f")) == ["f", "k"]
    assert list(code.program.failures) == ["b.py"]


CHAIN = "".join(f"def f{place}(): f{place + 1}()\n" for place in range(20)) + "def f20(): ...\n"


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_depth_is_limited(depth: int) -> None:
    reach = Loaded({"m.py": CHAIN}).reach("m:f0", max_depth=depth)

    assert symbols(reach) == [f"f{place}" for place in range(depth + 1)]
    assert [one.depth for one in reach.functions] == list(range(depth + 1))


def test_a_walk_may_be_kept_within_a_package() -> None:
    files = {
        "app/near/a.py": "from . import b\nfrom app.nearby import far\ndef f(): b.g(far())\n",
        "app/near/b.py": "def g(): ...",
        "app/nearby.py": "def far(): ...",
    }
    reach = Loaded(files).reach("app.near.a:f", within="app.near")

    assert symbols(reach) == ["f", "g"]


def test_parts_that_never_decide_are_left_out() -> None:
    files = {
        "app/user.py": "from app import distributed as d\ndef g():\n    d.f()\n    d.f()\n",
        "app/distributed.py": "def f(): ...",
    }
    assert symbols(Loaded(files).reach("app.user:g")) == ["g"]


def test_the_call_path_says_where_each_call_is_made() -> None:
    files = {
        "a.py": "import b\ndef f():\n    x = 1\n    b.g()\n",
        "b.py": "def g():\n    h()\ndef h(): ...\n",
    }
    last = Loaded(files).reach("a:f").functions[-1]

    assert [(call.file, call.line, call.symbol) for call in last.calls()] == [
        ("a.py", 2, "f"),
        ("a.py", 4, "g"),
        ("b.py", 2, "h"),
    ]
    assert last.entry.function.symbol == "f"


def test_the_shortest_way_is_kept() -> None:
    source = "def f():\n    g()\n    h()\ndef g(): h()\ndef h(): ...\n"
    last = Loaded({"m.py": source}).reach("m:f").functions[-1]

    assert [call.symbol for call in last.calls()] == ["f", "h"]


def test_classes_and_their_methods_are_listed() -> None:
    source = """
class A:
    def f(self): self.g()
    def g(self): ...
class B: ...
class C: ...
def start():
    A().f()
    hand_out(B)
    isinstance(1, C)
"""
    code = Loaded({"m.py": source})
    reach = code.reach("m:start")

    # What something is only asked to be is no class of which there is an instance.
    assert {cls.node.name for cls in reach.classes} == {"A", "B"}
    methods = reach.of_receiver(code.cls("m:A"))
    assert [one.function.symbol for one in methods] == ["A.f", "A.g"]
