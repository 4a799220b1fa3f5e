"""Runs engines of the target environment and writes what they produced; see `runs.py`.

It is started by path in an environment that knows nothing of this project's tests. The `changes`
of a case are modules beside it that change something of vLLM while the case runs.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

METRICS = (
    "vllm:num_preemptions",
    "vllm:spec_decode_num_drafts",
    "vllm:spec_decode_num_accepted_tokens",
    "vllm:prefix_cache_hits",
)


def main() -> None:
    """Run every case of the JSON file that is the first argument; write the second."""
    cases = json.loads(Path(sys.argv[1]).read_text())
    results: dict[str, Any] = {}
    for name, case in cases.items():
        results[name] = run(with_known(case, cases, results))
    Path(sys.argv[2]).write_text(json.dumps(results))


def with_known(
    case: dict[str, Any], cases: dict[str, Any], results: dict[str, Any]
) -> dict[str, Any]:
    """The case with what it takes from the first pass of an earlier one.

    An oracle `{"of": NAME}` knows that pass; a pass `{"of": NAME, "after": K}` continues its
    requests after K generated tokens. An oracle with `known` has been told already.
    """

    def sequences(name: str, kept: int | None) -> list[list[int]]:
        asked, got = cases[name]["passes"][0]["prompts"], results[name]["passes"][0]
        pairs = zip(asked, got, strict=True)
        return [prompt + request["tokens"][:kept] for prompt, request in pairs]

    made = dict(case)
    if "of" in case.get("oracle", {}):
        made["oracle"] = {**case["oracle"], "known": sequences(case["oracle"]["of"], None)}
    made["passes"] = [
        {**one, "prompts": sequences(one["of"], one["after"])} if "of" in one else one
        for one in case["passes"]
    ]
    return made


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Start one engine and let it generate, pass by pass."""
    from vllm import LLM

    write_oracle(case.get("oracle"))
    changes = [importlib.import_module(name) for name in case.get("changes", [])]
    for change in changes:
        change.make()
    engine = LLM(**case["engine"])
    passes = []
    before = time.perf_counter()
    for one in case["passes"]:
        passes.append(generate(engine, one))
    seconds = time.perf_counter() - before
    metrics = {metric.name: getattr(metric, "value", None) for metric in engine.get_metrics()}
    result = {
        "passes": passes,
        "seconds": seconds,
        "metrics": {name: metrics.get(name) for name in METRICS},
        "counters": counters_of(engine) if case.get("counters") else None,
    }
    shut_down(engine)
    for change in changes:
        change.undo()
    return result


def generate(engine: Any, one: dict[str, Any]) -> list[dict[str, Any]]:
    """One pass: a prompt and sampling parameters per request."""
    from vllm import SamplingParams

    prompts = [{"prompt_token_ids": tokens} for tokens in one["prompts"]]
    sampling = [SamplingParams(detokenize=False, **grammar(given)) for given in one["sampling"]]
    outputs = engine.generate(prompts, sampling, use_tqdm=False)
    return [described(output.outputs[0]) for output in outputs]


def grammar(given: dict[str, Any]) -> dict[str, Any]:
    """Sampling parameters whose `regex`, if any, is what vLLM takes for it."""
    from vllm.sampling_params import StructuredOutputsParams

    if "regex" not in given:
        return given
    rest = {name: value for name, value in given.items() if name != "regex"}
    return {**rest, "structured_outputs": StructuredOutputsParams(regex=given["regex"])}


def described(completion: Any) -> dict[str, Any]:
    """A completion as JSON: tokens, why it ended, and log-probabilities by token and rank."""
    logprobs = None
    if completion.logprobs is not None:
        logprobs = [
            sorted([token, entry.rank, entry.logprob] for token, entry in position.items())
            for position in completion.logprobs
        ]
    return {
        "tokens": list(completion.token_ids),
        "finish": completion.finish_reason,
        "stop": completion.stop_reason,
        "logprobs": logprobs,
    }


def counters_of(engine: Any) -> Any:
    """The runtime's counters, asked of the worker wherever it runs."""
    from ddtree_runtime.counters import read

    return engine.collective_rpc(read)[0][-1]


def write_oracle(oracle: dict[str, Any] | None) -> None:
    """Tell the oracle proposer of this process what it knows."""
    if oracle is not None:
        Path("oracle.json").write_text(json.dumps(oracle))


def shut_down(engine: Any) -> None:
    """End one engine, so that the next can start in this process."""
    from vllm.distributed import cleanup_dist_env_and_memory

    engine.llm_engine.engine_core.shutdown()
    del engine
    gc.collect()
    cleanup_dist_env_and_memory()


if __name__ == "__main__":
    main()
