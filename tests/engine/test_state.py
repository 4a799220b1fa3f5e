"""What the runtime keeps between steps: pending trees, counters, candidates, hooks."""

from __future__ import annotations

import dataclasses
import re
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ddtree.patches.runtime.accept import accept
from ddtree.patches.runtime.active import ACTIVE
from ddtree.patches.runtime.batch import Batch
from ddtree.patches.runtime.capture import Capture
from ddtree.patches.runtime.config import Settings
from ddtree.patches.runtime.counters import LOG_EVERY_SECONDS, Counters
from ddtree.patches.runtime.eligibility import REASONS, why_not
from ddtree.patches.runtime.engine import Engine, is_warm_up
from ddtree.patches.runtime.hooks import HANDLERS, hook
from ddtree.patches.runtime.pending import Drafted, Pending
from ddtree.patches.runtime.prepare import begin
from ddtree.patches.runtime.transfer import Arriving
from ddtree.patches.runtime.v1.drafting import _first_branch, _given
from ddtree.patches.runtime.v1.ngram import merged
from ddtree.patches.runtime.v1.occurrences import Occurrences
from ddtree.patches.runtime.v2.drafting import drafts_of
from tests.patches import releases


def drafted(first: int, requests: int = 2) -> Drafted:
    """Trees whose tokens tell them apart."""
    tokens = torch.arange(first, first + requests * 3, dtype=torch.int32).view(requests, 3)
    return Drafted(tokens, tokens * 0, torch.full((requests,), 3, dtype=torch.int32))


def test_pending_trees_are_taken_once_and_in_the_batch_s_order() -> None:
    """Trees of several rounds are joined; a request that was not scheduled keeps its own."""
    pending = Pending()
    pending.record(drafted(0), ["a", "b"])
    pending.record(drafted(100), ["c", None])
    assert pending.take(["x"]) == ([], None)
    positions, trees = pending.take(["c", "x", "b"])
    assert positions == [0, 2]
    assert trees is not None
    assert trees.tokens.tolist() == [[100, 101, 102], [3, 4, 5]]
    assert pending.take(["c", "b"]) == ([], None)
    positions, trees = pending.take(["b", "a"])
    assert positions == [1]
    assert trees is not None
    assert trees.tokens.tolist() == [[0, 1, 2]]


def test_counters_of_one_step() -> None:
    """A path that leaves the first branch counts as chain up to there."""
    counters = Counters(torch.device("cpu"))
    # Rows 1 and 2 are children of the root, row 3 is row 2's, row 4 row 3's.
    parents = torch.tensor([[0, 0, 2, 3], [0, 1, 2, 3], [0, 0, 0, 0]], dtype=torch.int32)
    count = torch.tensor([4, 4, 0], dtype=torch.int32)
    perm = torch.tensor([[0, 2, 3, 4, 1], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]], dtype=torch.int32)
    accepted = torch.tensor([3, 2, 0], dtype=torch.int32)
    walked = torch.tensor([True, True, True])
    counters.add(parents, count, perm, accepted, walked)
    counters.add(parents, count, perm, accepted, torch.tensor([False, True, True]))
    found = counters.read()
    assert found["steps"] == 2
    assert found["requests"] == 3
    assert found["rows"] == 12
    assert found["accepted"] == 7
    assert found["accepted_chain"] == 4
    assert found["branches"] == 1
    assert found["acceptance_length"] == pytest.approx(1 + 7 / 3)


def test_counts_are_logged_now_and_then(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only with news, only after a while, and not before the numbers have arrived."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    counters = Counters(torch.device("cpu"))
    with caplog.at_level("INFO", logger="vllm.ddtree_runtime"):
        now[0] = 20.0
        counters.log_now_and_then()
        assert not caplog.messages
        counters.steps = 3
        monkeypatch.setattr(Arriving, "there", False)
        counters.log_now_and_then()
        assert not caplog.messages
        monkeypatch.setattr(Arriving, "there", True)
        counters.log_now_and_then()
        assert [message.partition(",")[0] for message in caplog.messages] == ["ddtree: 3 steps"]
        counters.steps = 4
        counters.log_now_and_then()
        assert len(caplog.messages) == 1


def test_the_log_says_what_to_compare(caplog: pytest.LogCaptureFixture) -> None:
    """vLLM's own rate of acceptance is one of nodes, which is no chain's."""
    counters = Counters(torch.device("cpu"))
    counters.steps, counters._logged_at = 1, -LOG_EVERY_SECONDS
    with caplog.at_level("INFO", logger="vllm.ddtree_runtime"):
        counters.log_now_and_then()
    (line,) = caplog.messages
    assert "vLLM's mean acceptance length; vLLM's draft acceptance rate takes every node" in line


def test_the_start_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """By one of several workers, although caches are allocated twice."""
    config = SimpleNamespace(
        parallel_config=SimpleNamespace(rank=0), speculative_config=SimpleNamespace(method="mtp")
    )
    with caplog.at_level("INFO", logger="vllm.ddtree_runtime"):
        for rank in (0, 1):
            made = engine()
            config.parallel_config.rank = rank
            made.announce(config, "V2")
            made.announce(config, "V2")
    assert caplog.messages == [
        "ddtree: trees are on: budget 8, shape auto, drafter mtp of depth 3, V2 runner"
    ]


def engine() -> Engine:
    """An engine of budget 8 and depth 3 that knows no request."""
    return Engine(Settings(8), 3, Counters(torch.device("cpu")), lambda _: None)


def batch(names: list[str], drafts: list[int]) -> Batch:
    """A step in which every request has its root and so many drafts."""
    rows = [drafted + 1 for drafted in drafts]
    numbers = torch.arange(sum(rows), dtype=torch.int32)
    return Batch(names, drafts, rows, numbers, numbers.long())


def test_rows_that_nobody_drafted_are_not_counted() -> None:
    """A runner's padding, and what vLLM warms up with; both are verified like others."""
    made = engine()
    made.layers = []
    names = ["a", "b", "_warmup_0_"]
    for name in names:
        made._reasons[name] = (None, None)
    tokens = torch.tensor([[1, 2], [7, 8]], dtype=torch.int32)
    parents = torch.tensor([[0, 0], [0, 0]], dtype=torch.int32)
    both = Drafted(tokens, parents, torch.tensor([2, 2], dtype=torch.int32))
    made.pending.record(both, ["a", "_warmup_0_"])
    step = begin(made, batch(names, [2, 2, 2]))
    assert step is not None
    # Of "b", nothing was recorded.
    assert (step.walked, step.counted) == ([0, 1, 2], [0])
    rows = torch.nn.functional.one_hot(torch.tensor([2, 0, 0, 4, 5, 0, 7, 0, 0]), 9).float()
    accept(made, step, rows, rows.argmax(-1), lambda _: torch.arange(9))
    found = made.counters.read()
    assert (found["requests"], found["rows"], found["accepted"]) == (1, 2, 1)
    made.count("a reason", names)
    assert made.counters.fallbacks == {"a reason": 2}
    made.count("another", ["_warmup_0_"])
    assert set(made.counters.fallbacks) == {"a reason"}
    ACTIVE.clear()


@pytest.mark.parametrize("version", releases.VERSIONS)
def test_requests_that_vllm_warms_up_with_are_known(version: str) -> None:
    """By the names that the release gives them, wherever it makes some."""
    source = (releases.tree(version) / "vllm/v1/worker/gpu/warmup.py").read_text()
    names = re.findall(r'f"(_[a-z]*_?\{[a-z_]+\}_[a-z]*_?)"|req_id_prefix: str = "(_\w+)"', source)
    found = ["".join(pair).replace("{i}", "0") for pair in names]
    prefixes = [name for name in found if "{" not in name]
    assert prefixes
    assert all(is_warm_up(f"{name}_decode_") for name in prefixes)


@pytest.mark.parametrize("name", ["0", "chatcmpl-_warmup_0_", "cmpl-warmup", "_mine", "warmup_"])
def test_requests_of_others_are_none_of_these(name: str) -> None:
    """Whatever a client calls its own."""
    assert not is_warm_up(name)


def test_a_v2_chain_without_candidates_is_as_long_as_it_was_drafted() -> None:
    """What pads it to the budget's width is not walked."""
    made = engine()
    made._reasons = {"a": (None, None), "b": (None, "min_tokens")}
    chain = torch.tensor([[5, 6, 7], [1, 2, 3]])
    drafts = drafts_of(made, chain, Capture(4, 1.0), ["a", "b"])
    assert drafts.tolist() == [[5, 6, 7, 0, 0, 0, 0, 0], [1, 2, 3, 0, 0, 0, 0, 0]]
    ids = torch.tensor([0, *drafts[0].tolist(), 0, *drafts[1].tolist()], dtype=torch.int32)
    step = begin(made, dataclasses.replace(batch(["a", "b"], [8, 8]), input_ids=ids))
    assert step is not None
    assert (step.count.tolist(), step.counted, step.trees) == ([3, 8], [0], [])


def test_candidates_of_one_call_and_of_several_are_alike() -> None:
    """A block drafter samples all positions at once, an autoregressive one position by position."""
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 11)
    block, steps = Capture(4, 1.0), Capture(4, 1.0)
    block.take(logits.flatten(0, 1))
    for position in range(3):
        steps.take(logits[:, position])
    at_once, one_by_one = block.per_position(2, 3), steps.per_position(2, 3)
    assert at_once is not None
    assert one_by_one is not None
    assert torch.equal(at_once.ids, one_by_one.ids)
    assert torch.equal(at_once.logp, one_by_one.logp)
    assert torch.equal(at_once.ids[:, :, 0].long(), logits.argmax(-1))
    assert steps.per_position(3, 3) is None
    assert Capture(4, 1.0).per_position(2, 3) is None


def sampling(**given: Any) -> SimpleNamespace:
    """Sampling parameters that take a tree, changed."""
    none = dict.fromkeys(
        (
            "bad_words",
            "bad_words_token_ids",
            "allowed_token_ids",
            "structured_outputs",
        )
    )
    numbers = dict.fromkeys(("presence_penalty", "frequency_penalty", "min_tokens"), 0)
    return SimpleNamespace(**{**none, **numbers, "repetition_penalty": 1.0, **given})


def test_reasons_for_a_chain() -> None:
    """Each parameter alone is enough, and without any the request takes a tree."""
    assert why_not(sampling()) is None
    given: dict[str, dict[str, Any]] = {
        "presence penalty": {"presence_penalty": -0.1},
        "frequency penalty": {"frequency_penalty": 0.1},
        "repetition penalty": {"repetition_penalty": 0.9},
        "bad words": {"bad_words_token_ids": [[3]]},
        "allowed token ids": {"allowed_token_ids": [3]},
        "min_tokens": {"min_tokens": 3},
        "structured output": {"structured_outputs": object()},
        "thinking budget": {"thinking_token_budget": 10},
    }
    assert set(given) == set(REASONS)
    for reason, change in given.items():
        assert why_not(sampling(**change)) == reason
    assert why_not(None) == "no sampling parameters"
    # vLLM refuses these beside speculation, so that nobody ever sees them as a reason.
    assert why_not(sampling(min_p=0.1, logit_bias={3: 1.0})) is None


def test_reasons_of_finished_requests_are_forgotten() -> None:
    """Also where nobody tells of the end; a name that comes again is judged again."""
    requests = {"a": sampling(min_tokens=3), "b": sampling()}
    made = dataclasses.replace(engine(), sampling_of=requests.__getitem__)
    assert [made.reason(request) for request in "ab"] == ["min_tokens", None]
    requests["a"], requests["b"] = requests["b"], requests["a"]
    assert [made.reason(request) for request in "ab"] == [None, "min_tokens"]
    made.pending.record(drafted(0), ["a", "b"])
    made.texts = {"a": Occurrences(1, 3), "b": Occurrences(1, 3)}
    made.keep_only({"b"})
    for known in (made._reasons, made.pending.rounds, made.texts):
        assert list(known) == ["b"]
    made.forget(["b", "c"])
    assert (made._reasons, made.pending.rounds, made.texts) == ({}, {}, {})


def test_merged_continuations() -> None:
    """The first continuation is the first branch; requests without one get no node."""
    nodes, parents = merged([[[5, 6, 7], [5, 8], [9]], [[]]], 4)
    assert nodes == [[5, 6, 7, 8], []]
    assert parents == [[0, 1, 2, 1], []]


def test_first_branch() -> None:
    """The chain of first children, wherever they are in the order."""
    assert _first_branch([5, 9, 6, 8, 7], [0, 0, 1, 2, 3]) == [5, 6, 7]
    assert _first_branch([], []) == []


def test_parents_of_a_proposer_are_checked() -> None:
    """A list per request, a parent per token, parents before children; None is a chain."""
    chains = [[5, 6], [7]]
    assert _given(SimpleNamespace(), chains) == (chains, [None, None])
    given = SimpleNamespace(draft_parents=[[0, 0], None])
    assert _given(given, chains) == (chains, [[0, 0], None])
    for wrong, words in (
        ([[0, 0]], "expected 2 lists"),
        ([[0], [0]], "expected 2 parents"),
        ([[0, 2], [0]], "parents before"),
        ([[0, -1], [0]], "parents before"),
    ):
        with pytest.raises(ValueError, match=words):
            _given(SimpleNamespace(draft_parents=wrong), chains)


def test_hooks_keep_the_function_s_face() -> None:
    """A decorated function has its name and signature."""

    @hook("v1.sample")
    def sample(runner: object, logits: int, metadata: int) -> int:
        """Sum."""
        return logits + metadata

    assert sample.__name__ == "sample"
    assert sample.__doc__ == "Sum."
    # Nothing is configured on this runner.
    assert sample(object(), 3, 4) == 7
    assert all(name.count(".") == 1 for name in HANDLERS)
