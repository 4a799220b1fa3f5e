"""Keeps one engine and runs passes on it whenever the other side of a pipe asks for one.

Started by path in the engine environment: `worker.py DESCRIPTOR`. The first message is the
arguments of `LLM`, every other the prompts and parameters of a pass; the answer to each is a
dictionary.
"""

from __future__ import annotations

import sys
import time
from multiprocessing.connection import Connection
from typing import Any


def main() -> None:
    """Answer until the other side closes."""
    from vllm import LLM

    with Connection(int(sys.argv[1])) as pipe:
        engine = LLM(**pipe.recv()).llm_engine
        pipe.send({})
        serve(engine, pipe)


def serve(engine: Any, pipe: Connection) -> None:
    """One pass per message."""
    number = 0
    while True:
        try:
            asked = pipe.recv()
        except EOFError:
            return
        pipe.send(one_pass(engine, f"pass{number}", **asked))
        number += 1


def one_pass(
    engine: Any, name: str, prompts: list[list[int]], sampling: dict[str, Any]
) -> dict[str, Any]:
    """Decode a batch step by step.

    Returns:
        `tokens` of every request and, where `sampling` asks for log-probabilities, `scores`: per
        token a list of (token, score), best first; of the steps in which all requests decode,
        `seconds`, `processor` seconds and `emitted` tokens of each.
    """
    from vllm import SamplingParams

    names = [f"{name}-{number}" for number in range(len(prompts))]
    for request, prompt in zip(names, prompts, strict=True):
        given = SamplingParams(detokenize=False, **sampling)
        engine.add_request(request, {"prompt_token_ids": prompt}, given)
    tokens: dict[str, list[int]] = {request: [] for request in names}
    scores: dict[str, Any] = dict.fromkeys(names)
    finished: set[str] = set()
    seconds, processor, emitted = [], [], []
    while engine.has_unfinished_requests():
        decoding = not finished and all(tokens.values())
        before = sum(map(len, tokens.values()))
        start, busy = time.perf_counter(), time.process_time()
        outputs = engine.step()
        spent, worked = time.perf_counter() - start, time.process_time() - busy
        for output in outputs:
            tokens[output.request_id] = list(output.outputs[0].token_ids)
            if output.finished:
                scores[output.request_id] = scores_of(output.outputs[0].logprobs)
                finished.add(output.request_id)
        if decoding:
            seconds.append(spent)
            processor.append(worked)
            emitted.append(sum(map(len, tokens.values())) - before)
    return {
        "tokens": [tokens[request] for request in names],
        "scores": [scores[request] for request in names],
        "seconds": seconds,
        "processor": processor,
        "emitted": emitted,
    }


def scores_of(given: Any) -> list[list[tuple[int, float]]] | None:
    """vLLM's log-probabilities of one request by rank, or None where there are none."""
    if given is None:
        return None
    return [
        [(token, entry.logprob) for token, entry in sorted(place.items(), key=by_rank)]
        for place in given
    ]


def by_rank(item: tuple[int, Any]) -> tuple[int, int]:
    """Rank, then token."""
    return item[1].rank, item[0]


if __name__ == "__main__":
    main()
