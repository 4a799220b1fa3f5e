"""No step of the V2 runner waits for the device: its hooks run on tensors that cannot be read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from ddtree.patches.runtime import attention
from ddtree.patches.runtime.config import Settings
from ddtree.patches.runtime.counters import Counters
from ddtree.patches.runtime.drafting import NO_LOGITS
from ddtree.patches.runtime.engine import ATTRIBUTE, Engine
from ddtree.patches.runtime.v2 import runner as hooks

from ..kernels.no_sync import HostSyncError
from . import far

VOCABULARY, DEPTH, BUDGET, REQUESTS = 50, 3, 6, 3
BLOCK, BLOCKS, HEADS, DIM = 16, 12, 2, 8
Place = Callable[[torch.Tensor], torch.Tensor]


def near(value: torch.Tensor) -> torch.Tensor:
    """The values of a tensor, wherever it claims to be."""
    return value.near if isinstance(value, far.Far) else value


def random(seed: int, *shape: int) -> torch.Tensor:
    """The same numbers for the same seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Sampler:
    """vLLM's sampler of a batch; where nobody samples, it must not be asked."""

    def __init__(self, temperature: float) -> None:
        self.sampling_states = SimpleNamespace(
            temperature=SimpleNamespace(np=np.full(REQUESTS, temperature))
        )

    def sample(
        self, logits: torch.Tensor, pos: torch.Tensor, expanded_idx_mapping: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Draws that depend on the position, as vLLM's noise does."""
        assert self.sampling_states.temperature.np.any()
        assert len(pos) == len(expanded_idx_mapping) == len(logits)
        noise = (torch.arange(VOCABULARY, device=pos.device) * pos[:, None]) % 7
        return (logits + noise).argmax(-1), logits


class Steps:
    """Three requests on a stand-in for the V2 runner: drafts, then their verification.

    `place` puts tensors where the runner has them; a block drafter takes all tokens in one call.
    """

    def __init__(self, place: Place, *, block: bool = True, temperature: float = 0.0) -> None:
        self.place = place
        self.block = block
        device = place(torch.zeros(1)).device
        self.engine = Engine(Settings(BUDGET), DEPTH, Counters(device), lambda _: None)
        self.runner = SimpleNamespace(**{ATTRIBUTE: self.engine})
        self.requests = [f"request {number}" for number in range(REQUESTS)]
        for request in self.requests:
            sampling = SimpleNamespace(
                presence_penalty=0, frequency_penalty=0, repetition_penalty=1.0, bad_words=None,
                bad_words_token_ids=None, allowed_token_ids=None, logit_bias=None, min_p=0,
                min_tokens=0, structured_outputs=None,
            )  # fmt: skip
            self.engine.judge(request, sampling)
        # The last one is verified as a chain.
        self.engine.judge(self.requests[-1], None)
        cache = place(random(0, BLOCKS, 2, BLOCK, HEADS, DIM))
        backend = SimpleNamespace(get_name=lambda: "TRITON_ATTN")
        impl = SimpleNamespace(scale=DIM**-0.5)
        self.layer = SimpleNamespace(kv_cache=cache, attn_backend=backend, impl=impl)
        self.engine.layers = [{"layer": self.layer}]
        self.sampler = SimpleNamespace(**{ATTRIBUTE: self.engine}, sampler=Sampler(temperature))

    def draft(self) -> torch.Tensor:
        """A drafting round, over the rows of a step."""
        logits = self.place(random(1, REQUESTS * DEPTH, VOCABULARY))
        calls = list(logits.chunk(1 if self.block else DEPTH))
        speculator = SimpleNamespace(model=SimpleNamespace(compute_logits=lambda _: calls.pop(0)))

        def stock(*given: Any, **named: Any) -> torch.Tensor:
            taken = [
                hooks.sample_draft(self.never, speculator, given[3], None) for _ in list(calls)
            ]
            if self.block:
                return torch.as_tensor(taken[0]).view(REQUESTS, DEPTH)
            return torch.stack(taken, 1)

        hidden = self.place(random(2, REQUESTS * (BUDGET + 1) + 2, 4))
        batch = SimpleNamespace(req_ids=self.requests)
        return hooks.propose(self.engine, stock, batch, None, None, hidden, [hidden + 1])

    def verify(self, drafts: torch.Tensor) -> dict[str, torch.Tensor]:
        """One verification of the drafts; what it leaves, by name."""
        rows, width = REQUESTS * (BUDGET + 1), BUDGET + 1
        ids = torch.cat([drafts.new_zeros(REQUESTS, 1), drafts], 1).flatten().to(torch.int32)
        starts = self.place(torch.arange(0, rows, width, dtype=torch.int32))
        lens = self.place(torch.tensor([20, 30, 40], dtype=torch.int32))
        offset = self.place(torch.arange(width))
        positions = ((lens - width).long()[:, None] + offset).flatten()
        table = self.place(torch.arange(BLOCKS, dtype=torch.int32).view(REQUESTS, -1))
        slots = table.long().repeat_interleave(width, 0).gather(1, (positions // BLOCK)[:, None])
        slots = (slots[:, 0] * BLOCK + positions % BLOCK)[None]
        batch = SimpleNamespace(
            req_ids=self.requests, cu_num_logits_np=np.arange(0, rows + 1, width),
            num_scheduled_tokens=np.full(REQUESTS, width), input_ids=ids, positions=positions,
            idx_mapping_np=np.arange(REQUESTS), idx_mapping=starts,
            logits_indices=self.place(torch.arange(rows)),
            expanded_idx_mapping=offset.repeat(REQUESTS),
            expanded_local_pos=offset.repeat(REQUESTS),
        )  # fmt: skip
        hooks.prepare_attn(lambda *_: ((table,), slots), self.runner, batch)
        depths = positions.clone()
        metadata = SimpleNamespace(seq_lens=lens, block_table=table, max_seq_len=40)
        query = self.place(random(3, rows, HEADS, DIM))
        output = self.place(torch.zeros(rows, HEADS, DIM))
        attention.forward(self.stock_attention(metadata), query, query, query, output, "layer")
        logits = self.place(random(4, rows, VOCABULARY))
        # The target wants the first node of one tree and the second child of another.
        logits = self.wish(logits, drafts, starts)
        sampled, count = hooks.sample(self.stock_sampler(), self.sampler, logits, batch)
        return {
            "depths": depths, "attended": output, "sampled": sampled, "count": count, "ids": ids,
            "positions": positions, "cache": self.layer.kv_cache, "next": self.draft(),
        }  # fmt: skip

    def wish(
        self, logits: torch.Tensor, drafts: torch.Tensor, starts: torch.Tensor
    ) -> torch.Tensor:
        """Logits whose argmax at every root is a child of it that is not the first node."""
        child = drafts[:, 1 if self.block else DEPTH]
        wanted = torch.nn.functional.one_hot(child.long(), VOCABULARY) * 100.0
        return logits.index_add(0, starts.long(), wanted.to(logits.dtype))

    def stock_attention(self, metadata: SimpleNamespace) -> Callable[..., None]:
        """A function whose module has what vLLM's attention module has."""
        names: dict[str, Any] = {
            "_resolve_layer_name": lambda name: name,
            "get_attention_context": lambda name: (metadata, self.layer, None, None),
        }
        code = "def stock(query, key, value, output, name):\n    output.copy_(query)\n"
        # What a function sees as its module is where it was defined.
        exec(code, names)
        stock: Callable[..., None] = names["stock"]
        return stock

    def stock_sampler(self) -> Callable[..., Any]:
        """A sampler that hands its requests over in two parts."""

        def part(requests: int) -> tuple[torch.Tensor, torch.Tensor]:
            sampled = self.place(torch.zeros(requests, BUDGET + 1, dtype=torch.int64))
            return sampled, self.place(torch.ones(requests, dtype=torch.int32))

        def stock(sampler: object, logits: torch.Tensor, batch: object) -> Any:
            parts = [hooks.rejection_sample(functools.partial(part, many)) for many in (2, 1)]
            return tuple(torch.cat(both) for both in zip(*parts, strict=True))

        return stock

    def never(self, *given: object) -> None:
        """What must not be called."""
        raise AssertionError("expected the candidates to be taken")


@pytest.mark.parametrize(
    "kind", [{}, {"block": False}, {"temperature": 0.8}], ids=["block", "one by one", "sampled"]
)
def test_a_step_waits_for_nothing(kind: dict[str, Any]) -> None:
    """Draft, verify, draft: on unreadable tensors the same as on readable ones."""
    here = Steps(lambda value: value, **kind)
    expected = here.verify(here.verify(here.draft())["next"])
    # What is made once for an engine is made in its first step.
    with far.device(once=True):
        there = Steps(far.Far, **kind)
        drafts = there.verify(there.draft())["next"]
    with far.device():
        found = there.verify(drafts)
    assert found.keys() == expected.keys()
    for name, value in found.items():
        assert isinstance(value, far.Far), name
        torch.testing.assert_close(near(value), expected[name], msg=name)
    counts = expected["count"].tolist()
    assert counts[-1] == 1
    assert max(counts) > 1
    assert not torch.equal(expected["depths"], expected["positions"])
    assert not torch.equal(expected["cache"], random(0, BLOCKS, 2, BLOCK, HEADS, DIM))


def test_a_dummy_run_is_left_to_vllm() -> None:
    """Before a GPU serves, every argument comes by its name, and nothing becomes a tree."""
    steps = Steps(lambda value: value)
    drafts = torch.zeros(REQUESTS, DEPTH)
    seen: list[tuple[Any, ...]] = []

    def stock(*given: Any, **named: Any) -> torch.Tensor:
        seen.append((given, named))
        return drafts

    given = hooks.propose(
        steps.engine, stock, input_batch="batch", attn_metadata="attention", slot_mappings="slots",
        last_hidden_states=drafts, aux_hidden_states=None, num_sampled="ones", dummy_run=True,
    )  # fmt: skip
    assert given is drafts
    ((first, named),) = seen
    assert first[:3] == ("batch", "attention", "slots")
    assert named == {"num_sampled": "ones", "dummy_run": True}
    assert steps.engine.pending.rounds == {}


@pytest.mark.parametrize(("asked", "told"), [(0, 0), (BUDGET, DEPTH)], ids=["no drafts", "drafts"])
def test_a_step_that_needs_no_drafts_gets_none(asked: int, told: int) -> None:
    """The width becomes the drafter's depth, and 0 stays 0: the drafter only reads on."""
    steps = Steps(lambda value: value)
    seen: list[int] = []

    def stock(*_: Any, num_speculative_tokens: int) -> torch.Tensor:
        seen.append(num_speculative_tokens)
        if num_speculative_tokens:
            logits = random(1, REQUESTS * DEPTH, VOCABULARY)
            model = SimpleNamespace(compute_logits=lambda _: logits)
            hooks.sample_draft(steps.never, SimpleNamespace(model=model), logits, None)
        return torch.full((REQUESTS, DEPTH), -1)

    given = hooks.propose(
        steps.engine, stock, SimpleNamespace(req_ids=steps.requests), None, None,
        random(2, REQUESTS, 4), None, num_speculative_tokens=asked,
    )  # fmt: skip
    assert seen == [told]
    assert given.shape == (REQUESTS, BUDGET)
    assert bool(steps.engine.pending.rounds) is bool(asked)
    assert NO_LOGITS not in steps.engine.counters.fallbacks


@pytest.mark.parametrize(
    "wait",
    [
        lambda value: value.tolist(),
        lambda value: value.sum().item(),
        lambda value: bool(value.any()),
        lambda value: value.cpu(),
        lambda value: value.nonzero(),
        lambda value: value[value > 0],
        lambda value: torch.tensor([1.0]).to(value.device),
        lambda value: torch.tensor([1.0], device=value.device),
        lambda value: value + torch.ones(3),
    ],
)
def test_waiting_would_be_noticed(wait: Callable[[torch.Tensor], object]) -> None:
    """Each of these makes a host wait for a GPU."""
    with far.device(), pytest.raises(HostSyncError):
        wait(far.Far(torch.ones(3)))
