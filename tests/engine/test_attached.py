"""What is found under a hooked function's name: whether it may call the hooked one."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ddtree.patches.runtime import attached, guards
from ddtree.patches.runtime.active import ACTIVE
from ddtree.patches.runtime.attached import check_attached
from ddtree.patches.runtime.config import Settings
from ddtree.patches.runtime.counters import Counters
from ddtree.patches.runtime.engine import Engine
from ddtree.patches.runtime.guards import Unhooked
from ddtree.patches.runtime.hooks import hook
from ddtree.patches.runtime.refusals import Refused

SOURCE = """
class Runner:
    @hook("v1.sample")
    def _sample(self, logits, metadata):
        return logits

    @property
    @hook("config.num_speculative_tokens")
    def width(self):
        return 3

@hook("v1.rejection_sample")
def rejection_sample(drafts, counts):
    return drafts
"""


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module with three hooked functions, and no other is known to be hooked."""
    made = ModuleType("some_vllm")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setattr(attached, "PLACES", {})
    made.__dict__["hook"] = hook
    exec(SOURCE, made.__dict__)
    yield made
    ACTIVE.clear()


def wrapped(original: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def replacement(*args: Any) -> Any:
        return original(*args)

    return replacement


def kept_in_a_dictionary(original: Any) -> Callable[..., Any]:
    kept = {"sample": original}

    def replacement(*args: Any) -> Any:
        return kept["sample"](*args)

    return replacement


class Callable_:
    """An object in the place of a function."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def __call__(self, *args: Any) -> Any:
        return self.original(*args)


def unrelated(original: Any) -> Callable[..., Any]:
    del original
    return lambda *args: args[1]


def looks_like_it(original: Any) -> Callable[..., Any]:
    """It has the hooked one's face, marks and all, and nothing else of it."""
    made = functools.wraps(original)(unrelated(original))
    del made.__wrapped__
    return made


MAY = [lambda original: original, wrapped, kept_in_a_dictionary, Callable_, functools.partial]
MAY_NOT = [unrelated, looks_like_it, lambda _: None, lambda _: functools.partial(print)]


@pytest.mark.parametrize("replace", MAY)
def test_what_may_call_the_hooked_one_is_left_alone(vllm: Any, replace: Any) -> None:
    """Whether it does is seen in the step."""
    vllm.Runner._sample = replace(vllm.Runner._sample)
    vllm.rejection_sample = replace(vllm.rejection_sample)
    check_attached(["v1.sample", "v1.rejection_sample"], vllm.Runner())


@pytest.mark.parametrize("replace", MAY_NOT)
@pytest.mark.parametrize("name", ["Runner._sample", "Runner.width", "rejection_sample"])
def test_what_cannot_is_refused(vllm: Any, name: str, replace: Any) -> None:
    """By the attribute; the file is what it was."""
    check_attached()
    owner, _, last = name.rpartition(".")
    place = getattr(vllm, owner) if owner else vllm
    setattr(place, last, replace(vars(place)[last]))
    with pytest.raises(Refused, match=f"some_vllm.{name} was replaced by .*leave out"):
        check_attached()


def test_classes_and_objects_that_override(vllm: Any) -> None:
    """With `super()` or a base class in them they may call it; without, they cannot."""

    class Calls(vllm.Runner):  # type: ignore[misc]
        def _sample(self, *args: Any) -> Any:
            return super()._sample(*args)

    class Names(vllm.Runner):  # type: ignore[misc]
        def _sample(self, *args: Any) -> Any:
            return vllm.Runner._sample(self, *args)

    class Replaces(vllm.Runner):  # type: ignore[misc]
        def _sample(self, *args: Any) -> Any:
            return args[0]

    check_attached((), Calls(), Names(), None)
    with pytest.raises(Refused, match=r"Replaces\._sample"):
        check_attached((), Replaces())
    one = vllm.Runner()
    one._sample = unrelated(None)
    with pytest.raises(Refused, match="was replaced"):
        check_attached((), one)


def test_a_hook_that_is_nowhere(vllm: Any) -> None:
    """A module that is not the patched one."""
    with pytest.raises(Refused, match=r"nothing is hooked in as v1\.propose; .*--status"):
        check_attached(["v1.propose"])


def engine() -> Engine:
    return Engine(Settings(8), 4, Counters(torch_cpu()), lambda _: None)


def torch_cpu() -> Any:
    import torch

    return torch.device("cpu")


def test_no_output_leaves_a_step_that_was_not_walked(vllm: Any) -> None:
    """Whatever is put into the runner's class afterwards."""
    made, runner = engine(), vllm.Runner()
    vllm.Runner.sample_tokens = lambda self, grammar: grammar
    guards.guard(made, runner)
    assert runner.sample_tokens(3) == 3
    vllm.Runner.sample_tokens = lambda self, grammar: -grammar
    made.step = SimpleNamespace(trees=[], perm=None)  # type: ignore[assignment]
    assert runner.sample_tokens(grammar=3) == -3
    made.step.trees = [0]  # type: ignore[union-attr]
    with pytest.raises(Unhooked, match=r"without their walk.*VLLM_PLUGINS"):
        runner.sample_tokens(3)
    ACTIVE.unwalked = made.step
    with pytest.raises(Unhooked, match="own decision"):
        vllm.rejection_sample(3, [1])


def configured(given: dict[str, Any]) -> SimpleNamespace:
    """A runner with this `additional_config`."""
    return SimpleNamespace(vllm_config=SimpleNamespace(additional_config=given))


def test_a_runner_that_was_made_without_trees() -> None:
    """Configured, and whatever made the runner did not come by the hook."""
    guards.refuse_unless_off(configured({"other": 1}))
    with pytest.raises(Refused, match="the model runner was made without them"):
        guards.refuse_unless_off(configured({"ddtree": {"budget": 8}}))
