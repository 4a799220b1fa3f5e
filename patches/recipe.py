"""What to change in which releases, and which recipes fit an installed version."""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from packaging.version import InvalidVersion, Version

from ..analyzers.errors import ConflictError
from .errors import AnchorError


@dataclass(frozen=True, slots=True)
class Anchor:
    """One function to hook into, found by its name and never by its line.

    Args:
        file: the module's path relative to the site, such as `vllm/config/vllm.py`.
        name: `function` or `Class.function`.
        hook: the name under which the runtime knows the place.
        parameters: the names that the function's parameters have to start with.
    """

    file: str
    name: str
    hook: str
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """The anchors of one model runner for `lower` <= version < `upper`; both are stated."""

    name: str
    runner: str
    lower: str
    upper: str
    anchors: tuple[Anchor, ...]

    def fits(self, version: Version) -> bool:
        """Whether a release is in the range; a pre-release counts as its release."""
        return Version(self.lower).release <= version.release < Version(self.upper).release

    @property
    def range(self) -> str:
        """The range in words."""
        return f"{self.lower} <= version < {self.upper}"

    @property
    def digest(self) -> str:
        """Changes when anything in the recipe does."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def by_file(self) -> dict[str, tuple[Anchor, ...]]:
        """The anchors of every file, files sorted."""
        files = sorted({anchor.file for anchor in self.anchors})
        return {
            file: tuple(anchor for anchor in self.anchors if anchor.file == file) for file in files
        }


def all_recipes() -> tuple[Recipe, ...]:
    """The `RECIPE` of every module in `recipes`, by name; a new file is found by being there."""
    from . import recipes

    return tuple(
        importlib.import_module(f"{recipes.__name__}.{name}").RECIPE for name in recipe_names()
    )


def recipe_names() -> list[str]:
    """The names of the modules in `recipes`."""
    from . import recipes

    return sorted(module.name for module in pkgutil.iter_modules(recipes.__path__))


def choose(version: str | None, recipes: Sequence[Recipe]) -> tuple[Recipe, str]:
    """The recipe for a version, and why it is that one.

    Every model runner has recipes of its own, and an install may have several runners, of which
    vLLM selects one when it starts: what fits is applied together.

    Raises:
        ConflictError: none fits, or more than one of the same runner does; the message says how
            many.
    """
    try:
        parsed = Version(version or "")
    except InvalidVersion:
        raise _refusal(f"the version of this vLLM is {version or 'unknown'}", recipes) from None
    fitting = [recipe for recipe in recipes if recipe.fits(parsed)]
    if not fitting or len({recipe.runner for recipe in fitting}) != len(fitting):
        found = f"vLLM {version} is in the range of {len(fitting)} of {len(recipes)} recipes"
        raise _refusal(found, fitting or recipes)
    recipe = combined(fitting)
    if len(fitting) == 1:
        return recipe, f"{version} is in its range ({recipe.range}), and in no other recipe's"
    ranges = "; ".join(f"{one.name}: {one.range}" for one in fitting)
    return recipe, f"{version} is in the range of one recipe for each model runner ({ranges})"


def combined(recipes: Sequence[Recipe]) -> Recipe:
    """One recipe with the anchors of all, each once; the range is what they have in common."""
    if len(recipes) == 1:
        return recipes[0]
    anchors = dict.fromkeys(anchor for recipe in recipes for anchor in recipe.anchors)
    return Recipe(
        name="+".join(recipe.name for recipe in recipes),
        runner="+".join(recipe.runner for recipe in recipes),
        lower=max((recipe.lower for recipe in recipes), key=Version),
        upper=min((recipe.upper for recipe in recipes), key=Version),
        anchors=tuple(anchors),
    )


def hooked_files(recipes: Iterable[Recipe]) -> tuple[str, ...]:
    """Every file that any recipe edits, sorted."""
    return tuple(sorted({anchor.file for recipe in recipes for anchor in recipe.anchors}))


def missing(anchor: Anchor, count: int) -> AnchorError:
    """The refusal for an anchor that is not there exactly once."""
    return AnchorError(
        f"{anchor.file}: {anchor.name} is defined {count} times",
        expected=f"exactly 1 definition to hook {anchor.hook} into",
        hint="ddtree inspect host",
    )


def _refusal(found: str, recipes: Sequence[Recipe]) -> ConflictError:
    ranges = "; ".join(f"{recipe.name}: {recipe.range}" for recipe in recipes)
    known = ranges or "there are none"
    return ConflictError(
        found,
        expected=f"a version for which a model runner has one recipe ({known})",
        hint="ddtree inspect host",
    )
