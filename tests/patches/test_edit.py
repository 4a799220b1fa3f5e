"""What an edit of a module may and may not do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import edit, marks
from ddtree.patches.errors import AnchorError
from ddtree.patches.plan import FileEdit
from ddtree.patches.recipe import Anchor

ANCHOR = Anchor("vllm/x.py", "A.f", "v1.f", ("self", "x"))
MODULE = "class A:\n    def f(self, x):\n        return x\n"
GUARD = """
try:
    from ddtree_runtime.hooks import hook as _ddtree_hook
except Exception:

    def _ddtree_hook(name):
        return lambda function: function
"""


def edited(source: str, *anchors: Anchor) -> str:
    return edit.edited("vllm/x.py", source.encode(), anchors or (ANCHOR,)).decode()


@pytest.mark.parametrize(
    ("head", "guard_before"),
    [
        ("", "class A"),
        ('"""Doc."""\n', "class A"),
        ("# A comment\n", "class A"),
        ('"""Doc."""\n\nfrom __future__ import annotations\n', "class A"),
        ("import a\nfrom b import (\n    c,\n)\n\nX = 1\nimport d\n\n", "\nX = 1"),
        ("import a\n\nif True:\n    import b\n\n", "\nif True"),
        ("import a; import b\n", "class A"),
    ],
)
def test_the_import_comes_after_the_first_run_of_imports(head: str, guard_before: str) -> None:
    new = edited(head + MODULE)

    assert new.count(GUARD) == 1
    before, _, after = new.partition(GUARD)
    assert after.startswith(guard_before)
    assert head.startswith(before)
    compile(new, "x.py", "exec")


def test_the_decorator_is_the_innermost() -> None:
    source = "class A:\n    @one\n    # why\n    @two(3)\n    def f(self, x): return x\n"

    assert '    @two(3)\n    @_ddtree_hook("v1.f")\n    def f(' in edited(source)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", ["    ", "  ", "\t"])
@pytest.mark.parametrize("head", ["", "import a\n\n\n", '"""Doc."""\nimport a\n# end\n'])
def test_every_other_byte_stays(newline: str, indent: str, head: str) -> None:
    source = (head + MODULE).replace("    ", indent).replace("\n", newline)
    new = edited(source)

    assert marks.unedited(new.encode()) == source.encode()
    assert len(new.split(newline)) == len(source.split(newline)) + 8


@given(st.text(alphabet="abc \t#\"'\\é\f", max_size=20))
def test_odd_comments_survive_or_the_file_is_refused(comment: str) -> None:
    source = f"import a  # {comment}\n# {comment}\n{MODULE}    # {comment}\n"
    try:
        new = edited(source)
    except ConflictError:
        return
    assert marks.unedited(new.encode()) == source.encode()


def test_an_encoding_is_kept() -> None:
    source = "# -*- coding: latin-1 -*-\n# \xe9\n" + MODULE
    data = source.encode("latin-1")

    assert marks.unedited(edit.edited("x.py", data, (ANCHOR,))) == data


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("", 0),
        ("class B:\n    def f(self, x): ...\n", 0),
        ("def f(self, x): ...\n", 0),
        ("class A:\n    def g(self):\n        def f(self, x): ...\n", 0),
        (MODULE + MODULE, 2),
        ("class A:\n    def f(self, x): ...\n    def f(self, x): ...\n", 2),
        (f"if True:\n{'    '}pass\nelse:\n    class A:\n        def f(self, x): ...\n{MODULE}", 2),
        ("class A:\n    if True:\n        def f(self, x): ...\n    else:\n"
         "        def f(self, x): ...\n", 2),
    ],
)  # fmt: skip
def test_an_anchor_is_there_exactly_once(source: str, count: int) -> None:
    with pytest.raises(AnchorError, match=rf"vllm/x\.py: A\.f is defined {count} times"):
        edited(source)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("try:\n    class A:\n        def f(self, x): ...\nexcept E: pass\n", "conditional"),
        ("class A:\n    if True:\n        def f(self, x): ...\n", "conditional"),
        ("class A:\n    def f(self, y): ...\n", r"takes \(self, y\)"),
        ("class A:\n    def f(self): ...\n", r"takes \(self\)"),
    ],
)
def test_another_function_of_the_name_is_refused(source: str, why: str) -> None:
    with pytest.raises(AnchorError, match=f"1 time, but .*{why}"):
        edited(source)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("class A(:\n", "cannot be parsed"),
        (GUARD + MODULE, "already holds hooks"),
        (MODULE.replace("\n", "\r"), "byte for byte"),
    ],
)
def test_a_file_that_is_not_understood_is_refused(source: str, reason: str) -> None:
    with pytest.raises(ConflictError, match=reason):
        edited(source)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda new: new + b"# more\n",
        lambda new: new.replace(b"return x\n", b"return -x\n"),
        lambda new: new.replace(b'    @_ddtree_hook("v1.f")\n', b""),
        lambda new: new.replace(GUARD.encode(), b""),
        lambda new: new.replace(GUARD.encode(), GUARD.encode() * 2),
    ],
)
def test_more_than_the_declared_nodes_is_noticed(tamper) -> None:  # type: ignore[no-untyped-def]  # lambdas
    new = edit.edited("x.py", MODULE.encode(), (ANCHOR,))
    marks.confine("x.py", MODULE.encode(), new, ["v1.f"])

    with pytest.raises(ConflictError, match="more than 1 decorators"):
        marks.confine("x.py", MODULE.encode(), tamper(new), ["v1.f"])


def test_hooks_do_nothing_without_the_runtime() -> None:
    scope: dict[str, type] = {}
    exec(compile(edited(MODULE), "x.py", "exec"), scope)

    assert scope["A"]().f(3) == 3


@pytest.mark.parametrize(
    "source",
    [
        '"""Doc."""; from __future__ import annotations\nimport a\n' + MODULE,
        "from __future__ import annotations; X = 1\n" + MODULE,
        '"""Doc."""\nfrom __future__ import annotations; X = 1\nimport a\n' + MODULE,
    ],
)
def test_future_imports_stay_first(source: str) -> None:
    new = edited(source)

    compile(new, "x.py", "exec")
    assert marks.unedited(new.encode()) == source.encode()


@pytest.mark.parametrize(
    ("after", "count"),
    [
        ("    f = other\n", 1),
        ("    f: object = other\n    del f\n", 2),
        ("    if X:\n        f = other\n", 1),
        ("    from b import g as f\n", 1),
        ("    for f in ():\n        pass\n", 1),
        ("A = wrapped(A)\n", 1),
        ("from b import A\nimport A.b\n", 2),
    ],
)
def test_a_function_that_is_replaced_is_ambiguous(after: str, count: int) -> None:
    with pytest.raises(AnchorError, match=rf"A\.f .* is given another value {count} times"):
        edited(MODULE + after)


@pytest.mark.parametrize(
    "after",
    [
        "f = 1\n",
        "    g = f\n    A = 1\n",
        "    def g(self):\n        f = A = 1\n        return [f for f in self]\n",
        "A.g = 1\nB = A\nfrom A import b\n",
        "class B:\n    f = 1\n",
    ],
)
def test_the_same_name_elsewhere_is_another(after: str) -> None:
    assert marks.unedited(edited(MODULE + after).encode()) == (MODULE + after).encode()


@pytest.mark.parametrize(
    "source",
    [
        MODULE,
        MODULE.rstrip("\n"),
        MODULE.replace("\n", "\r\n"),
        f"import a\n\f\n{MODULE}\f\n# end",
        f"import a\nX = 'a\u2028b\x1cc\x0b'\n{MODULE}",
        f"# -*- coding: latin-1 -*-\nX = '\xe9'\n{MODULE}",
    ],
)
def test_the_diff_is_one_that_git_applies(source: str, tmp_path: Path) -> None:
    data = source.encode("latin-1" if "latin" in source else "utf-8")
    item = FileEdit("vllm/x.py", ("v1.f",), data, edit.edited("vllm/x.py", data, (ANCHOR,)))
    path = tmp_path / "vllm" / "x.py"
    path.parent.mkdir()
    path.write_bytes(data)
    diff = item.diff.encode("utf-8", "surrogateescape")
    git = ("git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-")

    subprocess.run(git, input=diff, check=True, cwd=tmp_path, capture_output=True)
    assert path.read_bytes() == item.new
