"""Values that a module assigns as literals, read without running it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator


def assigned(source: str, *names: str) -> Iterator[ast.expr]:
    """The values that top-level statements assign to `names`; nothing if the source is broken."""
    try:
        with warnings.catch_warnings():
            # Odd escapes in somebody else's strings are not the user's concern.
            warnings.simplefilter("ignore")
            body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for statement in body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(target, ast.Name) and target.id in names for target in targets):
                yield statement.value
