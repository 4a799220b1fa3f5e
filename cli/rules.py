"""`ddtree inspect rules`."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import TextFormat, TextFormatOption, complete_rule
from .output import emit

RuleArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="RULE",
        help="One rule, with its help text and examples; nothing: the list of all.",
        autocompletion=complete_rule,
        show_default=False,
    ),
]


def rules(rule: RuleArgument = None, format_: TextFormatOption = TextFormat.TERMINAL) -> None:
    """List the rules, or explain one of them."""
    from . import rulebook
    from .render.rules import render_list, render_one

    book = rulebook.rulebook()
    if rule is None:
        emit(render_list(book, format_))
    else:
        emit(render_one(rulebook.find(rule, book), format_))
