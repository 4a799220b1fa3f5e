"""A function is cut out where Python counts its lines, whatever else looks like a line's end."""

from __future__ import annotations

from ddtree.analyzers.shapes.view import view_of_source


def test_form_feeds_and_separators_end_no_line() -> None:
    source = '"""one\x0ctwo\x1cthree\u2028four"""\nX = 1\n\ndef f(a):\n    b = a[0]\n    return b\n'
    view = view_of_source(source)

    bind = view.facts.binds[0]

    assert view.tree.name.value == "f"
    assert view.span(bind.node)[0] == 5
