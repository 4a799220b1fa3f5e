"""Random trees in a real engine: the output stays greedy decoding, token for token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import runs

Run = Callable[..., dict[str, Any]]

PROMPTS = runs.prompts((5, 20, 33, 47, 64, 90, 31, 100))
PLAIN = {"engine": runs.engine(), "passes": [runs.greedy(PROMPTS, 160)]}


def with_oracle(nodes: int, *passes: dict[str, Any], **given: Any) -> runs.Case:
    """A case whose trees hide what the case `plain` generated."""
    config = given.pop("trees", {})
    settings = {**runs.oracle_drafter(nodes), **runs.trees(nodes, **config), **given}
    return {
        "engine": runs.engine(**settings),
        "passes": list(passes) or [runs.greedy(PROMPTS, 160)],
        "oracle": runs.oracle("plain", nodes),
        "counters": True,
    }


def test_output_is_greedy_and_branches_are_accepted(run: Run) -> None:
    """Blocks of 32 are crossed, prompts come in chunks, later passes read what trees wrote."""
    passes = [
        runs.greedy(PROMPTS, 160),
        runs.continued("plain", len(PROMPTS), 100, 60),
        runs.continued("plain", len(PROMPTS), 130, 30),
    ]
    sizes = (12, 32, 63)
    # With 63 nodes a step holds fewer rows than the requests want: trees are cut, requests wait.
    cases = {str(n): with_oracle(n, *passes, max_num_batched_tokens=300) for n in sizes}
    results = run({"plain": PLAIN, **cases})
    truth = runs.tokens(results["plain"]["passes"][0])
    lengths = []
    for size in sizes:
        result = results[str(size)]
        first, second, third = (runs.tokens(one) for one in result["passes"])
        assert first == truth
        assert second == [tokens[100:] for tokens in truth]
        assert third == [tokens[130:] for tokens in truth]
        assert result["metrics"]["vllm:prefix_cache_hits"] > 1000
        counters = result["counters"]
        assert counters["branches"] > 250
        assert counters["fallbacks"] == {}
        # A prompt that is cached but for its last token gets rows that vLLM pads and counts.
        padded = sum((len(one) + kept) % 32 == 1 for one in PROMPTS for kept in (100, 130))
        metrics = result["metrics"]
        assert counters["requests"] == metrics["vllm:spec_decode_num_drafts"] - padded > 0
        assert counters["accepted"] == metrics["vllm:spec_decode_num_accepted_tokens"]
        assert counters["acceptance_length"] > counters["acceptance_length_chain"] + 0.5
        lengths.append(counters["acceptance_length"])
    assert lengths == sorted(lengths)


def test_without_a_part_the_output_is_wrong(run: Run) -> None:
    """The mask, the depth positions and the commit are each needed, so equality proves them."""
    parts = ("mask", "positions", "commit")
    cases = {part: with_oracle(12, trees={"without": [part]}) for part in parts}
    results = run({"plain": PLAIN, **cases})
    truth = runs.tokens(results["plain"]["passes"][0])
    for part in parts:
        found = runs.tokens(results[part]["passes"][0])
        equal = sum(mine == theirs for mine, theirs in zip(found, truth, strict=True))
        assert equal <= 1, f"without {part}: {equal} of {len(truth)} requests are still greedy"


def test_a_chain_is_the_stock_chain(run: Run) -> None:
    """Trees of width 1 accept what vLLM's own verification of the same drafts accepts."""
    oracle = runs.oracle("plain", 8, shape="chain")
    passes = [runs.greedy(PROMPTS, 160, logprobs=2)]
    stock = {"engine": runs.engine(**runs.oracle_drafter(8)), "passes": passes, "oracle": oracle}
    tree = with_oracle(8, *passes)
    tree["oracle"] = oracle
    results = run({"plain": PLAIN, "stock": stock, "tree": tree})
    assert results["tree"]["passes"] == results["stock"]["passes"]
    assert results["tree"]["metrics"] == results["stock"]["metrics"]
    assert runs.acceptance(results["tree"]) > 2
    assert results["tree"]["counters"]["branches"] == 0


def test_few_blocks_stop_tokens_and_the_longest_sequence(run: Run) -> None:
    """Requests are preempted, end at stop tokens inside a path, and reach `max_model_len`."""
    long = runs.greedy(PROMPTS, 400)
    plain = {"engine": runs.engine(max_model_len=256), "passes": [long]}
    stops = runs.greedy(PROMPTS, 160, stop_token_ids=list(range(0, 512, 20)))
    few = {"num_gpu_blocks_override": 20, "max_model_len": 256}
    results = run(
        {
            "plain": plain,
            "few": with_oracle(20, long, **few),
            "longest": with_oracle(20, long, max_model_len=256),
            "stop plain": {"engine": runs.engine(), "passes": [stops]},
            "stop": with_oracle(20, stops),
        }
    )
    truth = results["plain"]["passes"][0]
    assert {request["finish"] for request in truth} == {"length"}
    assert results["few"]["metrics"]["vllm:num_preemptions"] > 0
    assert results["few"]["passes"][0] == truth
    assert results["longest"]["passes"][0] == truth
    stopped = results["stop plain"]["passes"][0]
    assert results["stop"]["passes"][0] == stopped
    assert sum(request["stop"] is not None for request in stopped) > len(stopped) // 2
    for name, fewest in (("few", 100), ("longest", 100), ("stop", 10)):
        assert results[name]["counters"]["branches"] > fewest


def test_logprobs_are_those_of_the_accepted_path(run: Run) -> None:
    """Tokens, ranks and log-probabilities equal those of decoding without drafts."""
    asked = [runs.greedy(PROMPTS, 80, logprobs=3)]
    plain = {"engine": runs.engine(), "passes": asked}
    results = run({"plain": plain, "tree": with_oracle(24, *asked)})
    assert results["tree"]["counters"]["branches"] > 100
    pairs = zip(results["plain"]["passes"][0], results["tree"]["passes"][0], strict=True)
    for plainly, by_tree in pairs:
        assert by_tree["tokens"] == plainly["tokens"]
        for want, have in zip(plainly["logprobs"], by_tree["logprobs"], strict=True):
            assert [entry[:2] for entry in have] == [entry[:2] for entry in want]
            assert [entry[2] for entry in have] == pytest.approx(
                [entry[2] for entry in want], abs=1e-4
            )


def test_a_process_of_its_own(run: Run, python: Path, tmp_path: Path) -> None:
    """The engine core and its worker run in processes of their own; counters are asked of them.

    The log says once that there are trees.
    """
    few = PROMPTS[:3]
    plain = {"engine": runs.engine(), "passes": [runs.greedy(few, 60)]}
    tree = with_oracle(12, runs.greedy(few, 60))
    del run
    results = runs.run(
        python,
        tmp_path,
        {"plain": plain, "tree": tree},
        VLLM_ENABLE_V1_MULTIPROCESSING="1",
        VLLM_ALLOW_INSECURE_SERIALIZATION="1",
    )
    assert results["tree"]["passes"] == results["plain"]["passes"]
    assert results["tree"]["counters"]["branches"] > 10
    said = [line for line in (tmp_path / "log").read_text().splitlines() if "ddtree:" in line]
    drafter = "drafter custom_class of depth 12, V1 runner"
    assert [line.partition("ddtree: ")[2] for line in said] == [
        f"trees are on: budget 12, shape auto, {drafter}"
    ]
