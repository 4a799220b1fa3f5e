"""Trees on the V2 model runner, which runs here under Triton's interpreter.

The interpreter takes a tenth of a second and more per step, so that runs are short; the truth and
the text to go on from come from the V1 runner, which is fast.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import drafters, grammar, interpreter, runs

# The interpreter makes these the slowest tests of all.
pytestmark = pytest.mark.extended

Run = Callable[..., dict[str, Any]]

# Prompts after which the tiny drafter is right often enough to tell a tree from a chain.
PROMPTS = [
    runs.prompts((5, 20, 33, 64, 90, 31, 12, 40, 8, 50, 25), seed=3)[number]
    for number in (5, 7, 9, 10)
]
TOKENS = 48
SMALL = {"max_num_seqs": 4, "max_num_batched_tokens": 112}


@pytest.fixture(scope="module")
def run_v2(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs cases on the V2 model runner."""
    standin = interpreter.write(tmp_path_factory.mktemp("interpreter") / "standin")

    def start(cases: dict[str, runs.Case], **variables: str) -> dict[str, Any]:
        path = f"{runs.HERE}:{standin}"
        return run(cases, PYTHONPATH=path, **interpreter.ENVIRONMENT, **variables)

    return start


@pytest.fixture(scope="module")
def known(run: Run) -> list[list[int]]:
    """Each prompt and what the V1 runner decodes after it."""
    one = runs.greedy(PROMPTS, TOKENS + 40)
    (result,) = run({"plain": {"engine": runs.engine(), "passes": [one]}})["plain"]["passes"]
    return [prompt + more for prompt, more in zip(PROMPTS, runs.tokens(result), strict=True)]


def begun(known: list[list[int]], after: int = 0) -> list[list[int]]:
    """The prompts with the first tokens that were decoded after them, which a drafter has seen."""
    pairs = zip(PROMPTS, known, strict=True)
    return [text[: len(prompt) + after] for prompt, text in pairs]


def decoded(known: list[list[int]], after: int = 0, tokens: int = TOKENS) -> list[list[int]]:
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


@pytest.mark.parametrize(("nodes", "changes"), [(12, ()), (40, ("asynchronous",))])
def test_oracle_trees(
    run_v2: Run, known: list[list[int]], nodes: int, changes: tuple[str, ...]
) -> None:
    """Blocks are crossed, prompts come in chunks, later passes read what trees wrote."""
    passes = [runs.greedy(begun(known, after), TOKENS) for after in (0, 24, 40)]
    # With 40 nodes a step holds fewer rows than the requests want: trees are cut, requests wait.
    results = run_v2({"tree": with_oracle(known, nodes, *passes, changes=changes)})
    result = results["tree"]
    for after, one in zip((0, 24, 40), result["passes"], strict=True):
        assert runs.tokens(one) == decoded(known, after), after
    assert result["metrics"]["vllm:prefix_cache_hits"] > 100
    counters = result["counters"]
    assert counters["branches"] > 60
    assert counters["fallbacks"] == {}
    assert counters["acceptance_length"] > counters["acceptance_length_chain"] + 0.5


def test_without_a_part_the_output_is_wrong(run_v2: Run, known: list[list[int]]) -> None:
    """The mask, the depth positions and the commit are each needed, so equality proves them."""
    parts = ("mask", "positions", "commit")
    one = runs.greedy(PROMPTS, TOKENS)
    results = run_v2(
        {part: with_oracle(known, 12, one, trees={"without": [part]}) for part in parts}
    )
    for part in parts:
        found = runs.tokens(results[part]["passes"][0])
        pairs = zip(found, decoded(known), strict=True)
        equal = sum(mine == theirs for mine, theirs in pairs)
        assert equal <= 1, f"without {part}: {equal} of {len(found)} requests are still greedy"


def test_block_drafter(run_v2: Run, known: list[list[int]]) -> None:
    """DFlash with best-first trees, synchronously and not, accepts more than its chain does."""
    one = runs.greedy(PROMPTS, TOKENS, logprobs=2)
    results = run_v2(
        {
            "plain": case(one),
            "chain": case(one, **runs.dflash()),
            "16": case(one, changes=("asynchronous",), **runs.dflash(), **runs.trees(16)),
            "40": case(one, **runs.dflash(), **runs.trees(40), max_num_batched_tokens=256),
        }
    )
    for name, result in results.items():
        assert runs.tokens(result["passes"][0]) == decoded(known), name
        close(result["passes"][0], results["plain"]["passes"][0])
    lengths = [runs.acceptance(results[name]) for name in ("chain", "16", "40")]
    assert lengths == sorted(lengths), lengths
    assert lengths[2] > lengths[0] + 0.2, lengths
    for name in ("16", "40"):
        assert results[name]["counters"]["branches"] > 10
        assert results[name]["counters"]["fallbacks"] == {}


def test_draft_model(run_v2: Run, known: list[list[int]], python: Path, tmp_path: Path) -> None:
    """The chain of a noisy copy of the target, with the other candidates as leaves."""
    one = runs.greedy(PROMPTS, TOKENS)
    noisy = drafters.perturbed(python, tmp_path / "noisy")
    config = {"method": "draft_model", "model": noisy, "num_speculative_tokens": 3}
    given = {"speculative_config": config, **runs.trees(12)}
    cases = {"tree": case(one, **given), "ahead": case(one, changes=("asynchronous",), **given)}
    for name, result in run_v2(cases).items():
        assert runs.tokens(result["passes"][0]) == decoded(known), name
        counters = result["counters"]
        assert counters["fallbacks"] == {}, name
        assert counters["branches"] > 10, name
        assert counters["acceptance_length"] > counters["acceptance_length_chain"] + 0.1, name


def test_heads(run: Run, run_v2: Run, python: Path, tmp_path: Path) -> None:
    """An EAGLE head, and one that the target brings, from the accepted path's hidden states."""
    target, heads = drafters.heads(python, tmp_path / "heads")
    one = runs.greedy(PROMPTS, TOKENS)
    engine = runs.engine(model=target)
    (truth,) = run({"plain": {"engine": engine, "passes": [one]}})["plain"]["passes"]
    cases = {}
    for name, config in heads.items():
        given: dict[str, Any] = {"model": target, "speculative_config": config}
        cases[f"{name} chain"] = case(one, **given)
        cases[name] = case(one, **given, **runs.trees(12))
        cases[f"{name} ahead"] = case(one, changes=("asynchronous",), **given, **runs.trees(12))
    results = run_v2(cases)
    for name, result in results.items():
        assert runs.tokens(result["passes"][0]) == runs.tokens(truth), name
    for name, shortest, gain in (("eagle", 2.5, 0.03), ("mtp", 1.5, 0.2)):
        chain = runs.acceptance(results[f"{name} chain"])
        assert chain > shortest, name
        for timing in (name, f"{name} ahead"):
            counters = results[timing]["counters"]
            assert counters["acceptance_length_chain"] == pytest.approx(chain, abs=0.15), timing
            assert counters["acceptance_length"] > chain + gain, timing
            assert counters["branches"] > 0, timing
            assert counters["fallbacks"] == {}, timing


def test_triton_attention(run_v2: Run, known: list[list[int]]) -> None:
    """A GPU's attention backend and the project's own kernels, small enough for the interpreter.

    The second prompt does not fit beside the first, so that most of it comes beside trees; a second
    pass reads blocks that trees wrote. The change fails where one of the kernels was not called, a
    layer of the target has another backend, or no prompt came beside trees.
    """
    passes = [runs.greedy(begun(known)[1::2], 28), runs.greedy(begun(known, 40)[1::2], 4)]
    # The last block that is found is read again for the drafter, so that blocks are small.
    given = {"changes": ("triton_attention",), "max_num_batched_tokens": 48, "block_size": 16}
    results = run_v2({"tree": with_oracle(known, 8, *passes, **given)})
    first, second = (runs.tokens(one) for one in results["tree"]["passes"])
    assert first == decoded(known, tokens=28)[1::2]
    assert second == decoded(known, 40, 4)[1::2]
    # The shorter prompt ends in its second block, which trees went on to fill.
    assert results["tree"]["metrics"]["vllm:prefix_cache_hits"] >= 2 * 32
    counters = results["tree"]["counters"]
    assert counters["branches"] > 3
    assert counters["fallbacks"] == {}


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
        {"temperature": 1.0, "top_k": 4},
    ]
    common = {"max_tokens": TOKENS, "ignore_eos": True}
    sampling = [{**common, **kind, "seed": line} for line, kind in enumerate(kinds)]
    one = {"prompts": PROMPTS, "sampling": sampling}
    drafter = {**runs.dflash(), **runs.trees(24)}
    results = run_v2(
        {
            "plain": case(one, changes=("torch_top_k",)),
            "tree": case(one, changes=("torch_top_k",), **drafter),
            "ahead": case(one, changes=("torch_top_k", "asynchronous"), **drafter),
        }
    )
    truth = runs.tokens(results["plain"]["passes"][0])
    greedy = [mine == theirs for mine, theirs in zip(truth, decoded(known), strict=True)]
    assert greedy == [kind["temperature"] == 0.0 for kind in kinds]
    for name in ("tree", "ahead"):
        assert runs.tokens(results[name]["passes"][0]) == truth, name
        assert results[name]["counters"]["branches"] > 10
        assert results[name]["counters"]["fallbacks"] == {}


def test_requests_that_cannot_take_a_tree_are_chains(run_v2: Run, known: list[list[int]]) -> None:
    """What reads the preceding rows as the prefix is verified as a chain, alone, and counted."""
    kinds: dict[str, dict[str, Any]] = {
        "repetition penalty": {"repetition_penalty": 1.3},
        "frequency penalty": {"frequency_penalty": 0.5},
        "allowed token ids": {"allowed_token_ids": list(range(0, 512, 2))},
    }
    common = {"max_tokens": TOKENS, "temperature": 0.0, "ignore_eos": True}
    sampling = [{**common, **given} for given in kinds.values()]
    sampling += [common] * (len(PROMPTS) - len(sampling))
    one = {"prompts": PROMPTS, "sampling": sampling}
    results = run_v2({"plain": case(one), "tree": case(one, **runs.dflash(), **runs.trees(24))})
    assert results["tree"]["passes"] == results["plain"]["passes"]
    counters = results["tree"]["counters"]
    assert set(counters["fallbacks"]) == set(kinds)
    assert counters["branches"] > 5


def test_what_a_custom_logits_processor_changes_is_a_chain(
    run_v2: Run, known: list[list[int]]
) -> None:
    """The request that it takes gets vLLM's own decision; the others keep their trees."""
    common = {"max_tokens": TOKENS, "temperature": 0.0, "ignore_eos": True}
    taken = {**common, "extra_args": {"second best": True}}
    one = {"prompts": PROMPTS, "sampling": [taken, *[common] * (len(PROMPTS) - 1)]}
    given: dict[str, Any] = {"logits_processors": ["processor:SecondBest"]}
    plain = case(one, **given)
    results = run_v2(
        {"plain": plain, "tree": case(one, **given, **runs.dflash(), **runs.trees(24))}
    )
    truth = [runs.tokens(results[name]["passes"][0]) for name in ("plain", "tree")]
    assert truth[1] == truth[0]
    assert truth[0][0] != decoded(known)[0]
    assert truth[0][1:] == decoded(known)[1:]
    counters = results["tree"]["counters"]
    assert set(counters["fallbacks"]) == {"logits processor"}
    assert counters["branches"] > 5


def test_a_grammar_follows_no_padding(run_v2: Run, known: list[list[int]], tmp_path: Path) -> None:
    """One that allows every token would have to come back from more of them than it keeps."""
    common = {"max_tokens": 24, "temperature": 0.0, "ignore_eos": True}
    wide, narrow = ({**common, "regex": f"([a-{last}][a-z]){{200}}"} for last in "zh")
    one = {"prompts": PROMPTS, "sampling": [wide, narrow, common, common]}
    given: dict[str, Any] = {
        "skip_tokenizer_init": False,
        "tokenizer": grammar.tokenizer(tmp_path / "tokenizer"),
        "structured_outputs_config": {"backend": "outlines"},
    }
    drafter = {**runs.dflash(), **runs.trees(24)}
    results = run_v2(
        {
            "plain": case(one, changes=("torch_grammar",), **given),
            "tree": case(one, changes=("torch_grammar",), **given, **drafter),
            "ahead": case(one, changes=("torch_grammar", "asynchronous"), **given, **drafter),
        }
    )
    truth = runs.tokens(results["plain"]["passes"][0])
    assert truth[0] == decoded(known, tokens=24)[0]
    assert truth[1] != decoded(known, tokens=24)[1]
    for name in ("tree", "ahead"):
        assert runs.tokens(results[name]["passes"][0]) == truth, name
        counters = results[name]["counters"]
        assert set(counters["fallbacks"]) == {"structured output"}
        assert counters["branches"] > 3


def test_few_blocks_and_the_longest_text(run_v2: Run, known: list[list[int]]) -> None:
    """Requests are preempted and come again; others run into the longest text that is allowed."""
    one = runs.greedy(PROMPTS, TOKENS)
    longest = max(map(len, PROMPTS)) + TOKENS - 7
    results = run_v2(
        {
            "few": with_oracle(known, 12, one, num_gpu_blocks_override=9, max_model_len=128),
            "plain": case(one, max_model_len=longest),
            "long": with_oracle(known, 12, one, max_model_len=longest),
        }
    )
    assert runs.tokens(results["few"]["passes"][0]) == decoded(known)
    assert results["few"]["metrics"]["vllm:num_preemptions"] > 0
    assert results["few"]["counters"]["branches"] > 10
    assert results["long"]["passes"] == results["plain"]["passes"]
    assert min(map(len, runs.tokens(results["plain"]["passes"][0]))) < TOKENS


def test_what_vllm_warms_up_with_is_not_counted(run_v2: Run) -> None:
    """Neither the rows of its own requests, nor why these take no tree."""
    result = run_v2({"tree": case(**runs.dflash(), **runs.trees(16))})["tree"]
    counters = result["counters"]
    assert counters["fallbacks"] == {}
    assert {counters[name] for name in ("steps", "requests", "rows", "accepted")} == {0}


def test_ngram_is_refused(run_v2: Run) -> None:
    """It drafts without a model on this runner; the start says so, and which runner helps."""
    drafter = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3}
    one = case(runs.greedy(PROMPTS, 4), speculative_config=drafter, **runs.trees(16))
    with pytest.raises(RuntimeError, match=r"drafts without a model.*VLLM_USE_V2_MODEL_RUNNER=0"):
        run_v2({"ngram": one})


def test_patched_and_not_configured_is_stock(run_v2: Run, known: list[list[int]]) -> None:
    """Without settings, drafts are the drafter's own, and nothing of the runtime is at work."""
    one = runs.greedy(PROMPTS, 20)
    results = run_v2({"chain": {**case(one, **runs.dflash()), "counters": False}})
    assert runs.tokens(results["chain"]["passes"][0]) == decoded(known, tokens=20)
    assert results["chain"]["metrics"]["vllm:spec_decode_num_drafts"] > 20
