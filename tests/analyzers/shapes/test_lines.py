"""A function is cut out where Python counts its lines, whatever else looks like a line's end."""

from __future__ import annotations

import libcst.matchers as m
import pytest

from ddtree.analyzers.shapes.view import view_of_source


def test_form_feeds_and_separators_end_no_line() -> None:
    source = '"""one\x0ctwo\x1cthree\u2028four"""\nX = 1\n\ndef f(a):\n    b = a[0]\n    return b\n'
    view = view_of_source(source)

    bind = view.facts.binds[0]

    assert view.tree.name.value == "f"
    assert view.span(bind.node)[0] == 5


@pytest.mark.parametrize("decorator", ["@jit(cache=True)\n", "@jit(\n    a=f(1),\n)\n"])
def test_calls_in_decorators_are_not_those_of_the_body(decorator: str) -> None:
    source = f"{decorator}def f(x):\n    y = 1\n    return g(x)\n"
    view = view_of_source(source)
    (call,) = m.findall(view.tree, m.Call())

    assert view.span(call)[0] == source.splitlines().index("    return g(x)") + 1
