"""Near the longest sequence: whoever is there drafts less, and the others keep their trees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ddtree.patches.runtime.config import Settings
from ddtree.patches.runtime.counters import Counters
from ddtree.patches.runtime.engine import Engine
from ddtree.patches.runtime.v1 import limits

from . import drafters, interpreter, runs, test_v2
from .test_drafters import DRAFT_MODEL, NGRAM

Run = Callable[..., dict[str, Any]]

LONGEST, BUDGET, TOKENS = 256, 60, 40
# Of the last one and a tree, there is no room from the first step on.
PROMPTS = runs.prompts((5, 20, 33, 47, 64, 31, 90), seed=3) + runs.prompts((190,), seed=4)
ENDED = "at the end of the context"


def given(**drafter: Any) -> runs.Case:
    """A case in which the last request goes on until its text is as long as it may be."""
    sampling = [{"temperature": 0.0, "ignore_eos": True, "max_tokens": TOKENS}] * len(PROMPTS)
    sampling[-1] = {**sampling[-1], "max_tokens": LONGEST}
    one = {"prompts": PROMPTS, "sampling": sampling}
    without = {"prompts": PROMPTS[:-1], "sampling": sampling[:-1]}
    engine = runs.engine(max_model_len=LONGEST, max_num_batched_tokens=2048, **drafter)
    trees = "additional_config" in drafter
    return {"engine": engine, "passes": [one], "alone": [without], "counters": trees}


def alone(case: runs.Case) -> runs.Case:
    """The same without the request that is near."""
    return {**case, "passes": case["alone"]}


def check(results: dict[str, Any], *, ends: bool) -> None:
    """Greedy throughout, and the others accept what they accept by themselves."""
    truth = results["plain"]["passes"][0]
    assert [len(request["tokens"]) for request in truth] == [TOKENS] * 7 + [LONGEST - 190]
    beside, by_itself = results["beside"], results["alone"]
    assert beside["passes"][0] == truth
    assert by_itself["passes"][0] == truth[:-1]
    counters = beside["counters"]
    assert counters["acceptance_length"] > by_itself["counters"]["acceptance_length"] - 0.15
    assert counters["branches"] >= by_itself["counters"]["branches"] * 0.8
    # Of the longest text, only the last tokens have no room for what the drafter drafts.
    found = counters["fallbacks"]
    assert set(found) == ({ENDED} if ends else set())
    assert sum(found.values()) <= 9


@pytest.mark.parametrize("method", ["dflash", "ngram"])
def test_a_neighbour_at_the_end(run: Run, method: str) -> None:
    """A drafter with a model, and one without: each keeps to the longest sequence by itself."""
    drafter = {"dflash": runs.dflash(), "ngram": {"speculative_config": NGRAM}}[method]
    trees = given(**drafter, **runs.trees(BUDGET))
    # Once its n-gram code is compiled, vLLM starts no second engine in the same process.
    results = {**run({"plain": given(), "alone": alone(trees)}), **run({"beside": trees})}
    check(results, ends=method == "dflash")


@pytest.mark.extended
def test_other_drafters_beside_a_neighbour_at_the_end(
    run: Run, python: Path, tmp_path: Path
) -> None:
    """A draft model and heads, whose later tokens come one by one."""
    noisy = drafters.perturbed(python, tmp_path / "noisy")
    draft_model = {"speculative_config": {**DRAFT_MODEL, "model": noisy}}
    trees = given(**draft_model, **runs.trees(BUDGET))
    check(run({"plain": given(), "alone": alone(trees), "beside": trees}), ends=True)
    target, heads = drafters.heads(python, tmp_path / "heads")
    plain = given(model=target)
    for config in heads.values():
        trees = given(model=target, speculative_config=config, **runs.trees(BUDGET))
        check(run({"plain": plain, "alone": alone(trees), "beside": trees}), ends=True)


@pytest.mark.extended
def test_a_drafter_that_knows_shorter_texts_only(run: Run) -> None:
    """Whoever is past its end drafts nothing, however long; its rows stay within its reach."""
    drafter = runs.dflash()
    drafter["speculative_config"] |= {"max_model_len": 128}
    trees = given(**drafter, **runs.trees(BUDGET))
    results = run({"plain": given(), "alone": alone(trees), "beside": trees})
    for name in ("alone", "beside"):
        truth = results["plain"]["passes"][0]
        assert results[name]["passes"][0] == truth[: len(results[name]["passes"][0])]
        assert results[name]["counters"]["branches"] > 20
    assert results["beside"]["counters"]["fallbacks"][ENDED] >= LONGEST - 190


@pytest.mark.extended
def test_a_neighbour_at_the_end_on_the_v2_runner(
    run: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """There every speculator keeps to the longest sequence by itself."""
    standin = interpreter.write(tmp_path_factory.mktemp("interpreter") / "standin")
    longest = 128
    prompts = [*test_v2.PROMPTS[:3], runs.prompts((90,), seed=4)[0]]
    sampling = [{"temperature": 0.0, "ignore_eos": True, "max_tokens": 16}] * 3
    sampling.append({"temperature": 0.0, "ignore_eos": True, "max_tokens": longest})
    one = {"prompts": prompts, "sampling": sampling}
    plain = {"engine": runs.engine(max_model_len=longest), "passes": [one]}
    truth = run({"plain": plain})["plain"]["passes"][0]
    trees = test_v2.case(one, max_model_len=longest, **runs.dflash(), **runs.trees(40))
    variables = {"PYTHONPATH": f"{runs.HERE}:{standin}", **interpreter.ENVIRONMENT}
    (result,) = run({"tree": trees}, **variables).values()
    assert runs.tokens(result["passes"][0]) == runs.tokens(truth)
    assert result["counters"]["fallbacks"] == {}
    assert result["counters"]["branches"] > 5


DEPTH, HELD = 7, 100


def step(computed: list[int], rows: list[int], drafts: list[int]) -> tuple[Any, ...]:
    """A runner and a step of requests with so many tokens, rows and drafts."""
    names = [str(number) for number in range(len(computed))]
    batch = SimpleNamespace(
        req_ids=names, num_reqs=len(names), num_computed_tokens_cpu=torch.tensor(computed).numpy()
    )
    positions = [torch.arange(at, at + n) for at, n in zip(computed, rows, strict=True)]
    runner = SimpleNamespace(
        input_batch=batch,
        max_model_len=HELD,
        effective_drafter_max_model_len=HELD,
        speculative_config=SimpleNamespace(method="dflash"),
        positions=torch.cat([*positions, torch.zeros(4, dtype=torch.int64)]),
    )
    scheduled = SimpleNamespace(
        num_scheduled_tokens=dict(zip(names, rows, strict=True)),
        scheduled_spec_decode_tokens={
            name: [0] * n for name, n in zip(names, drafts, strict=True) if n
        },
    )
    common = SimpleNamespace(block_table_tensor=torch.ones(len(names), 4, dtype=torch.int32))
    made = Engine(Settings(32), DEPTH, Counters(torch.device("cpu")), lambda _: None)
    limits.lift(made, runner)
    return made, runner, scheduled, common


def test_far_from_the_end_nothing_is_touched() -> None:
    """Not even the tokens that the device has sampled are waited for."""
    made, runner, scheduled, common = step([10, 50], [33, 33], [32, 32])
    table = common.block_table_tensor
    assert limits.near(made, runner, scheduled, None, common) == []
    assert common.block_table_tensor is table
    assert runner.effective_drafter_max_model_len > 10**9
    # A second allocation of caches, after a first one that only measured, changes nothing.
    limits.lift(made, runner)
    assert made.longest == HELD


def test_only_accepted_rows_count() -> None:
    """A tree's rows reach past the end, its accepted path does not, or just so."""
    # The tokens after the step, of which drafting one more step makes at most 100: 92, 93, 20.
    made, runner, scheduled, common = step([85, 85, 19], [12, 12, 1], [11, 11, 0])
    sampled = torch.full((3, 33), -1)
    sampled[0, :7], sampled[1, :8], sampled[2, :1] = 1, 1, 1
    before = runner.positions.clone()
    assert limits.near(made, runner, scheduled, sampled, common) == [1]
    most = HELD - DEPTH - 1
    assert runner.positions[:12].tolist() == before[:12].tolist()
    assert runner.positions[12:24].tolist() == [min(at, most - 1) for at in range(85, 97)]
    assert runner.positions[24:].tolist() == before[24:].tolist()
    # Whatever is read past the last block is the null block.
    assert common.block_table_tensor.shape == (3, 4 + DEPTH + 2)
    assert not common.block_table_tensor[:, 4:].any()
    lists = [[1] * 7, [1] * 8, [1]]
    made, runner, scheduled, common = step([85, 85, 19], [12, 12, 1], [11, 11, 0])
    assert limits.near(made, runner, scheduled, lists, common) == [1]


def test_a_drafter_that_reaches_less_far_than_its_target() -> None:
    """A prompt's chunk past its end, and rejected rows past it."""
    made, runner, scheduled, common = step([60, 45], [30, 12], [0, 11])
    runner.effective_drafter_max_model_len = 56
    limits.lift(made, runner)
    assert made.longest == 56
    assert limits.near(made, runner, scheduled, [[1], [1]], common) == [0]
    assert runner.positions[:30].max() == 56 - DEPTH - 2
    assert runner.positions[30:42].tolist() == [min(at, 55) for at in range(45, 57)]
