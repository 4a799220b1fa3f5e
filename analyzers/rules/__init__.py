"""One question about the code per file; every module here that defines a `Rule` is found."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from .rule import Example, Finding, Rule, Scope

__all__ = ["Example", "Finding", "Rule", "Scope", "all_rules"]


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by name."""
    for found in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{found.name}")
    return tuple(rule() for rule in sorted(Rule.registry, key=lambda rule: rule.name))
