"""Which requests are chains because a custom logits processor takes them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from ddtree.patches.runtime.config import Settings
from ddtree.patches.runtime.counters import Counters
from ddtree.patches.runtime.engine import ATTRIBUTE, Engine
from ddtree.patches.runtime.v2 import processors
from ddtree.patches.runtime.v2 import runner as hooks


class Custom:
    """A processor of a user's: it takes the requests that ask for it."""

    def add_request(self, slot: int, sampling: Any) -> bool:
        return bool(sampling.asks)


class Own(Custom):
    """One of vLLM's own."""


Own.__module__ = "vllm.v1.worker.gpu.sample.penalties"


def engine() -> Engine:
    return Engine(Settings(8), 4, Counters(torch.device("cpu")), lambda _: None)


def request(name: str, *, asks: bool = False, fewest: int = 0) -> SimpleNamespace:
    sampling = SimpleNamespace(
        presence_penalty=0, frequency_penalty=0, repetition_penalty=1.0, bad_words=None,
        bad_words_token_ids=None, allowed_token_ids=None, min_tokens=fewest,
        structured_outputs=None, asks=asks,
    )  # fmt: skip
    return SimpleNamespace(req_id=name, sampling_params=sampling)


def reasons(made: Engine, chain: list[Any], *requests: SimpleNamespace) -> list[str | None]:
    """Let requests arrive at a sampler with these processors."""
    processors.watch(SimpleNamespace(logits_processors=chain), made.changed_slots)
    slots = {one.req_id: slot for slot, one in enumerate(requests)}

    def stock(_: Any, scheduled: Any) -> None:
        for one in scheduled.scheduled_new_reqs:
            for processor in chain:
                processor.add_request(slots[one.req_id], one.sampling_params)

    states = SimpleNamespace(req_id_to_index=slots)
    runner = SimpleNamespace(**{ATTRIBUTE: made}, req_states=states)
    output = SimpleNamespace(
        scheduled_new_reqs=requests, finished_req_ids=set(), preempted_req_ids=None
    )
    hooks.add_requests(stock, runner, output)
    return [made.reason(one.req_id) for one in requests]


def test_only_the_requests_that_a_custom_processor_takes_are_chains() -> None:
    """vLLM's own processors are known by their settings, and a first reason stays."""
    asked, other = request("a", asks=True), request("b")
    long = request("c", asks=True, fewest=9)
    found = reasons(engine(), [Own(), Custom(), Custom()], asked, other, long)
    assert found == ["logits processor", None, "min_tokens"]
    assert reasons(engine(), [Own()], asked, other) == [None, None]


def test_a_slot_and_a_name_come_again() -> None:
    """What was noted of the request before does not hold for the next one."""
    made = engine()
    chain = [Custom()]
    assert reasons(made, chain, request("a", asks=True)) == ["logits processor"]
    assert reasons(made, chain, request("a")) == [None]


def test_a_sampler_without_processors_is_none_of_its_business() -> None:
    """Releases before 0.31.0 have no list of them."""
    processors.watch(SimpleNamespace(), set())
