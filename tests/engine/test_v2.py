"""Trees on the V2 model runner, which runs here under Triton's interpreter.

The interpreter takes a tenth of a second and more per step, so that runs are short; the truth and
the text to go on from come from the V1 runner, which is fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from . import interpreter, runs

Run = Callable[..., dict[str, Any]]

PROMPTS = runs.prompts((5, 20, 33, 64, 90, 31), seed=3)
BEFORE, TOKENS = 120, 60
SMALL = {"max_num_seqs": 6, "max_num_batched_tokens": 256}


@pytest.fixture(scope="module")
def run_v2(run: Run) -> Run:
    """Runs cases on the V2 model runner."""

    def start(cases: dict[str, runs.Case], **variables: str) -> dict[str, Any]:
        path = f"{runs.HERE}:{interpreter.PATH}"
        return run(cases, PYTHONPATH=path, **interpreter.ENVIRONMENT, **variables)

    return start


@pytest.fixture(scope="module")
def known(run: Run) -> list[list[int]]:
    """Each prompt and what the V1 runner decodes after it."""
    one = runs.greedy(PROMPTS, BEFORE + TOKENS + 40)
    (result,) = run({"plain": {"engine": runs.engine(), "passes": [one]}})["plain"]["passes"]
    return [prompt + more for prompt, more in zip(PROMPTS, runs.tokens(result), strict=True)]


def begun(known: list[list[int]], after: int = BEFORE) -> list[list[int]]:
    """The prompts with the first tokens that were decoded after them, which a drafter has seen."""
    pairs = zip(PROMPTS, known, strict=True)
    return [text[: len(prompt) + after] for prompt, text in pairs]


def decoded(known: list[list[int]], after: int = BEFORE, tokens: int = TOKENS) -> list[list[int]]:
    """What greedy decoding gives after `begun`."""
    pairs = zip(PROMPTS, known, strict=True)
    return [text[len(prompt) + after :][:tokens] for prompt, text in pairs]


def case(*passes: dict[str, Any], changes: tuple[str, ...] = (), **given: Any) -> runs.Case:
    """A case of the tiny target on the V2 runner."""
    engine = runs.engine(**{**SMALL, **given})
    return {
        "engine": engine,
        "passes": list(passes),
        "changes": list(changes),
        "counters": "additional_config" in given,
    }


def with_oracle(
    known: list[list[int]], nodes: int, *passes: dict[str, Any], **given: Any
) -> runs.Case:
    """A case whose trees hide what is known; the block drafter's own drafts are not used."""
    changes = ("oracle_v2", *given.pop("changes", ()))
    config = runs.trees(nodes, **given.pop("trees", {}))
    made = case(*passes, changes=changes, **runs.dflash(), **config, **given)
    oracle = {"known": known, "nodes": nodes, "seed": 7, "vocabulary": runs.VOCABULARY}
    return {**made, "oracle": oracle}


@pytest.mark.parametrize("changes", [(), ("asynchronous",)])
def test_oracle_trees(run_v2: Run, known: list[list[int]], changes: tuple[str, ...]) -> None:
    """Blocks are crossed, prompts come in chunks, later passes read what trees wrote."""
    passes = [runs.greedy(begun(known, after), TOKENS) for after in (0, 30, 50)]
    sizes = (12, 40)
    # With 40 nodes a step holds fewer rows than the requests want: trees are cut, requests wait.
    cases = {str(n): with_oracle(known, n, *passes, changes=changes) for n in sizes}
    results = run_v2({"plain": case(passes[0]), **cases})
    assert runs.tokens(results["plain"]["passes"][0]) == decoded(known, 0)
    for size in sizes:
        result = results[str(size)]
        for after, one in zip((0, 30, 50), result["passes"], strict=True):
            assert runs.tokens(one) == decoded(known, after), (size, after)
        assert result["metrics"]["vllm:prefix_cache_hits"] > 500
        counters = result["counters"]
        assert counters["branches"] > 100
        assert counters["fallbacks"] == {}
        assert counters["acceptance_length"] > counters["acceptance_length_chain"] + 0.5


def test_without_a_part_the_output_is_wrong(run_v2: Run, known: list[list[int]]) -> None:
    """The mask, the depth positions and the commit are each needed, so equality proves them."""
    parts = ("mask", "positions", "commit")
    one = runs.greedy(begun(known, 0), TOKENS)
    results = run_v2(
        {part: with_oracle(known, 12, one, trees={"without": [part]}) for part in parts}
    )
    for part in parts:
        found = runs.tokens(results[part]["passes"][0])
        pairs = zip(found, decoded(known, 0), strict=True)
        equal = sum(mine == theirs for mine, theirs in pairs)
        assert equal <= 1, f"without {part}: {equal} of {len(found)} requests are still greedy"


def test_block_drafter(run_v2: Run, known: list[list[int]]) -> None:
    """DFlash with best-first trees, synchronously and not, accepts more than its chain does."""
    one = runs.greedy(begun(known), TOKENS, logprobs=2)
    results = run_v2(
        {
            "plain": case(one),
            "chain": case(one, **runs.dflash()),
            "16": case(one, **runs.dflash(), **runs.trees(16)),
            "40": case(one, changes=("asynchronous",), **runs.dflash(), **runs.trees(40)),
        }
    )
    for name, result in results.items():
        assert runs.tokens(result["passes"][0]) == decoded(known), name
        close(result["passes"][0], results["plain"]["passes"][0])
    lengths = [runs.acceptance(results[name]) for name in ("chain", "16", "40")]
    assert lengths == sorted(lengths), lengths
    assert lengths[2] > lengths[0] + 0.2, lengths
    for name in ("16", "40"):
        assert results[name]["counters"]["branches"] > 20
        assert results[name]["counters"]["fallbacks"] == {}


def close(mine: runs.Pass, theirs: runs.Pass) -> None:
    """Compare log-probabilities of the same tokens; the order of equal ones may differ."""
    for one, other in zip(mine, theirs, strict=True):
        for found, expected in zip(one["logprobs"], other["logprobs"], strict=True):
            assert [entry[:2] for entry in found] == [entry[:2] for entry in expected]
            values = [entry[2] for entry in found]
            assert values == pytest.approx([entry[2] for entry in expected], abs=1e-4)


def test_sampled_requests_draw_what_they_draw_without_speculation(
    run_v2: Run, known: list[list[int]]
) -> None:
    """The runner's noise belongs to seed and position, so that not a token may differ."""
    kinds: list[dict[str, Any]] = [
        {"temperature": 0.0},
        {"temperature": 0.8, "top_k": 20, "top_p": 0.95},
        {"temperature": 0.5},
        {"temperature": 0.0},
        {"temperature": 1.0, "top_k": 4},
        {"temperature": 0.3, "top_p": 0.9},
    ]
    common = {"max_tokens": TOKENS, "ignore_eos": True}
    sampling = [{**common, **kind, "seed": line} for line, kind in enumerate(kinds)]
    one = {"prompts": begun(known), "sampling": sampling}
    drafter = {**runs.dflash(), **runs.trees(24)}
    results = run_v2(
        {
            "plain": case(one),
            "tree": case(one, **drafter),
            "ahead": case(one, changes=("asynchronous",), **drafter),
        }
    )
    truth = runs.tokens(results["plain"]["passes"][0])
    greedy = [mine == theirs for mine, theirs in zip(truth, decoded(known), strict=True)]
    assert greedy == [kind["temperature"] == 0.0 for kind in kinds]
    for name in ("tree", "ahead"):
        assert runs.tokens(results[name]["passes"][0]) == truth, name
        assert results[name]["counters"]["branches"] > 20
        assert results[name]["counters"]["fallbacks"] == {}


def test_requests_that_cannot_take_a_tree_are_chains(run_v2: Run, known: list[list[int]]) -> None:
    """What reads the preceding rows as the prefix is verified as a chain, alone, and counted."""
    kinds: dict[str, dict[str, Any]] = {
        "repetition penalty": {"repetition_penalty": 1.3},
        "frequency penalty": {"frequency_penalty": 0.5},
        "min_tokens": {"min_tokens": 30, "stop_token_ids": list(range(0, 512, 3))},
        "allowed token ids": {"allowed_token_ids": list(range(0, 512, 2))},
    }
    common = {"max_tokens": TOKENS, "temperature": 0.0, "ignore_eos": True}
    sampling = [{**common, **given} for given in kinds.values()]
    sampling += [common] * (len(PROMPTS) - len(sampling))
    one = {"prompts": begun(known), "sampling": sampling}
    results = run_v2({"plain": case(one), "tree": case(one, **runs.dflash(), **runs.trees(24))})
    assert results["tree"]["passes"] == results["plain"]["passes"]
    counters = results["tree"]["counters"]
    assert set(counters["fallbacks"]) == set(kinds)
    assert counters["branches"] > 5


def test_few_blocks_and_the_longest_text(run_v2: Run, known: list[list[int]]) -> None:
    """Requests are preempted and come again; others run into the longest text that is allowed."""
    one = runs.greedy(begun(known, 0), TOKENS)
    longest = max(len(prompt) for prompt in PROMPTS) + TOKENS - 7
    results = run_v2(
        {
            "few": with_oracle(known, 12, one, num_gpu_blocks_override=12),
            "plain": case(one, max_model_len=longest),
            "long": with_oracle(known, 12, one, max_model_len=longest),
        }
    )
    assert runs.tokens(results["few"]["passes"][0]) == decoded(known, 0)
    assert results["few"]["metrics"]["vllm:num_preemptions"] > 0
    assert results["few"]["counters"]["branches"] > 20
    assert results["long"]["passes"] == results["plain"]["passes"]
    assert min(map(len, runs.tokens(results["plain"]["passes"][0]))) < TOKENS


def test_patched_and_not_configured_is_stock(run_v2: Run, known: list[list[int]]) -> None:
    """Without settings, drafts are the drafter's own, and nothing of the runtime is at work."""
    one = runs.greedy(begun(known), 20)
    results = run_v2({"chain": {**case(one, **runs.dflash()), "counters": False}})
    assert runs.tokens(results["chain"]["passes"][0]) == decoded(known, tokens=20)
    assert results["chain"]["metrics"]["vllm:spec_decode_num_drafts"] > 20
