"""Look into the V2 model runner (vllm/v1/worker/gpu/model_runner.py), and draft in its place.

What the host knows may lag behind, so every text is read from the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from .oracle import Oracle
from .watch import Text, Watch

# The oracle of each runtime's state; the state is kept, so that its identity stays its own.
PLACED: dict[int, tuple[Any, Any, Oracle]] = {}


def install(runner: Any, watch: Watch) -> None:
    """Let the watch see every step that the runner samples."""
    sample = runner.sample

    def watched(hidden_states: Any, input_batch: Any, grammar_output: Any) -> Any:
        starts = input_batch.cu_num_logits_np
        drafts = (starts[1:] - starts[:-1] - 1).tolist()
        requests = input_batch.req_ids

        def logits() -> Any:
            # The runner computes them inside; the same rows give the same numbers.
            return runner.model.compute_logits(hidden_states[input_batch.logits_indices])

        watch.before(runner, drafts, partial(_texts, runner, requests), logits)
        output = sample(hidden_states, input_batch, grammar_output)
        watch.after(drafts, lambda: output[1])
        return output

    runner.sample = watched


def place(runner: Any, oracle: Oracle) -> None:
    """Let an oracle draft in the place of the runner's drafter.

    The V2 runner takes no proposer of somebody else. The drafter runs as always; only what the
    runtime would make of its logits is replaced.
    """
    from ddtree_runtime.v2 import runner as hooks

    if not PLACED:
        hooks.drafts_of = partial(_drafts_of, hooks.drafts_of)
    engine = runner._ddtree
    PLACED[id(engine)] = (engine, runner, oracle)


def tell(runner: Any, known: list[list[int]], nodes: int, seed: int) -> None:
    """Tell the oracle what is known."""
    _, _, oracle = PLACED[id(runner._ddtree)]
    oracle.tell(known, nodes, seed)


def _drafts_of(stock: Any, engine: Any, chain: Any, capture: Any, requests: Sequence[str]) -> Any:
    """The oracle's drafts in the place of the runtime's: [R, budget]."""
    if id(engine) not in PLACED:
        return stock(engine, chain, capture, requests)
    import torch
    from ddtree_runtime.drafting import takes_tree
    from ddtree_runtime.pending import Drafted

    _, runner, oracle = PLACED[id(engine)]
    takes = takes_tree(engine, requests)
    trees = [oracle.grown(list(text)) for text in _texts(runner, requests)]
    width = engine.settings.budget

    def rows(lines: list[list[int]]) -> Any:
        # What pads a tree is never walked, but it has to be a token of the vocabulary.
        full = [line + [0] * (width - len(line)) for line in lines]
        return torch.tensor(full, dtype=torch.int32, device=chain.device)

    tokens = rows([nodes for nodes, _ in trees])
    counts = [len(nodes) for nodes, _ in trees]
    drafted = Drafted(
        tokens,
        rows([parents for _, parents in trees]),
        torch.tensor(counts, dtype=torch.int32, device=chain.device),
    )
    lines = zip(requests, takes, counts, strict=True)
    engine.pending.record(
        drafted, [name if take and count else None for name, take, count in lines]
    )
    return tokens.to(chain.dtype)


def _texts(runner: Any, requests: Sequence[str]) -> list[Text]:
    """Each request's tokens so far."""
    states = runner.req_states
    lines = [states.req_id_to_index[request] for request in requests]
    return [
        tuple(states.all_token_ids.gpu[line, : int(states.total_len.gpu[line])].tolist())
        for line in lines
    ]
