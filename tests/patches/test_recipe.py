"""Which recipe fits which version, and whether the recipes and the runtime belong together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from packaging.version import Version

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import recipe
from ddtree.patches.recipe import Anchor, Recipe
from ddtree.patches.runtime.hooks import HANDLERS


def one(name: str, lower: str, upper: str) -> Recipe:
    return Recipe(name, "v1-runner", lower, upper, ())


def test_every_recipe_states_both_ends() -> None:
    for found in recipe.all_recipes():
        assert Version(found.lower) < Version(found.upper)
        assert found.anchors


def test_no_hook_and_no_function_is_named_twice() -> None:
    for found in recipe.all_recipes():
        hooks = [anchor.hook for anchor in found.anchors]
        places = [(anchor.file, anchor.name) for anchor in found.anchors]
        assert len(set(hooks)) == len(hooks)
        assert len(set(places)) == len(places)


def test_the_runtime_knows_every_hook_and_has_none_too_many() -> None:
    hooks = {anchor.hook for found in recipe.all_recipes() for anchor in found.anchors}

    assert hooks == set(HANDLERS)


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ("0.23.9", False), ("0.24.0", True), ("0.24.0rc1", True), ("0.32.0+cpu", True),
        ("0.33.7.post1", True), ("0.34.0", False), ("0.34.0rc1", False), ("0.34.0.dev3", False),
        ("1.0", False),
    ],
)  # fmt: skip
def test_the_range_is_closed_below_and_open_above(version: str, fits: bool) -> None:
    assert one("x", "0.24.0", "0.34.0").fits(Version(version)) == fits


@pytest.mark.parametrize("version", [None, "", "main", "0.20.1"])
def test_no_recipe_is_a_refusal(version: str | None) -> None:
    with pytest.raises(ConflictError) as caught:
        recipe.choose(version, [one("x", "0.24", "0.34")])
    assert "0.24 <= version < 0.34" in caught.value.expected


def test_recipes_of_several_runners_are_applied_together() -> None:
    first = Anchor("a.py", "f", "a.f")
    shared = Anchor("b.py", "g", "b.g")
    single = Recipe("x", "v1-runner", "0.24.0", "0.34.0", (first, shared))
    two = Recipe("y", "v2-runner", "0.30.0", "0.33.0", (shared, Anchor("c.py", "h", "c.h")))

    both, why = recipe.choose("0.31.0", [single, two])
    assert (both.name, both.lower, both.upper) == ("x+y", "0.30.0", "0.33.0")
    assert [anchor.hook for anchor in both.anchors] == ["a.f", "b.g", "c.h"]
    assert "x: 0.24.0 <= version < 0.34.0; y: 0.30.0 <= version < 0.33.0" in why
    assert recipe.choose("0.33.0", [single, two])[0] is single
    assert len({single.digest, two.digest, both.digest}) == 3


def test_two_recipes_of_a_runner_are_a_refusal_with_the_count() -> None:
    both = [one("x", "0.24", "0.34"), one("y", "0.30", "0.40")]

    with pytest.raises(ConflictError, match="in the range of 2 of 2 recipes"):
        recipe.choose("0.31.0", both)
    assert recipe.choose("0.35.0", both)[0].name == "y"


def test_the_digest_follows_every_anchor() -> None:
    found, _ = recipe.choose("0.32.0", recipe.all_recipes())
    first = found.anchors[0]
    changed = replace(found, anchors=(replace(first, hook="other"), *found.anchors[1:]))

    assert changed.digest != found.digest
