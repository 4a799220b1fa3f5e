"""Where no trees are configured, what is hooked is exactly what it was, however it is called."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ddtree.patches.recipe import all_recipes
from ddtree.patches.runtime import attached, hooks
from ddtree.patches.runtime.active import ACTIVE
from ddtree.patches.runtime.hooks import HANDLERS, hook
from ddtree.patches.runtime.refusals import Refused

OWNERS = {
    "bare": object(),
    "unconfigured": SimpleNamespace(vllm_config=SimpleNamespace(additional_config={})),
    "of another kind": SimpleNamespace(vllm_config=SimpleNamespace(additional_config=[3])),
    "without": SimpleNamespace(vllm_config=None),
    "other settings": SimpleNamespace(vllm_config=SimpleNamespace(additional_config={"x": 1})),
}
# The names that a recipe is sure of, and one that a later release may add.
PARAMETERS = {
    anchor.hook: anchor.parameters for recipe in all_recipes() for anchor in recipe.anchors
}
# A property's getter takes nothing else, and what makes an object gives nothing back.
GETTER = "config.num_speculative_tokens"
MAKERS = ("init", "scheduler_init")


def recorded(name: str) -> tuple[Any, list[Any], object]:
    """A hooked function, the calls that came through, and what it returns."""
    calls: list[Any] = []
    result = object()

    def function(*args: Any, **named: Any) -> object:
        calls.append((args, named))
        return result

    return hook(name)(function), calls, result


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("name", [name for name in HANDLERS if name != GETTER])
def test_everything_is_handed_on_and_back(name: str, owner: str) -> None:
    ACTIVE.clear()
    hooked, calls, result = recorded(name)
    first = (OWNERS[owner],) if PARAMETERS[name][0] == "self" else ()
    words = [word for word in PARAMETERS[name] if word != "self"]
    values = [object() for _ in words]
    ways: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((*first, *values), {}),
        (first, dict(zip(words, values, strict=True))),
        ((*first, *values[:1]), dict(zip(words[1:], values[1:], strict=True))),
        ((*first, *values), {"of_a_later_release": 3}),
        ((*first, *values, 4, 5), {}),
    ]
    for args, named in ways:
        given = hooked(*args, **named)
        assert given is (None if name.partition(".")[2] in MAKERS else result)
        assert calls.pop() == (args, named)
    assert calls == []


@pytest.mark.parametrize("name", [name for name in HANDLERS if name != GETTER])
def test_a_subclass_may_do_more(name: str) -> None:
    """Its own form takes more and gives back more, and calls the hooked one by keywords."""
    ACTIVE.clear()
    hooked, calls, result = recorded(name)
    words = [word for word in PARAMETERS[name] if word != "self"]

    class Base:
        run = hooked

    class Sub(Base):
        def run(self, *args: Any, mine: int = 0, **named: Any) -> tuple[object, int]:
            return super().run(*args, **named), mine

    one = Sub()
    given, mine = one.run(mine=7, **dict.fromkeys(words, 1))
    assert mine == 7
    assert given is (None if name.partition(".")[2] in MAKERS else result)
    assert calls == [((one,), dict.fromkeys(words, 1))]


def test_the_width_is_the_depth() -> None:
    hooked, calls, result = recorded(GETTER)
    config = SimpleNamespace(additional_config={})
    assert hooked(config) is result
    assert calls == [((config,), {})]


@pytest.mark.parametrize("name", ["v9.sample", "config.later"])
def test_a_hook_that_the_runtime_does_not_know(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edits of another release: without trees it does nothing; with trees, no engine starts."""
    unknown: list[str] = []
    monkeypatch.setattr(attached, "UNKNOWN", unknown)
    monkeypatch.setattr(hooks, "UNKNOWN", unknown)
    hooked, calls, result = recorded(name)
    assert hooked(1, two=2) is result
    assert calls == [((1,), {"two": 2})]
    with pytest.raises(Refused, match=rf"hooks that its runtime does not know: {name}; to start"):
        attached.check_attached()
