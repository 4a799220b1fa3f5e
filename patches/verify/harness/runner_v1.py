"""Look into the V1 model runner (vllm/v1/worker/gpu_model_runner.py)."""

from __future__ import annotations

from functools import partial
from typing import Any

from .watch import Text, Watch


def install(runner: Any, watch: Watch) -> None:
    """Let the watch see every step that the runner samples."""
    sample = runner._sample

    def watched(logits: Any, metadata: Any) -> Any:
        if logits is None:
            return sample(logits, metadata)
        count = runner.input_batch.num_reqs
        drafts = [0] * count if metadata is None else list(metadata.num_draft_tokens)
        watch.before(runner, drafts, partial(_texts, runner), lambda: logits)
        output = sample(logits, metadata)
        watch.after(drafts, lambda: (output.sampled_token_ids >= 0).sum(1))
        return output

    runner._sample = watched


def place(runner: Any, oracle: object) -> None:
    """The runner's drafter is an oracle already; see `plan`."""


def tell(runner: Any, known: list[list[int]], nodes: int, seed: int) -> None:
    """Tell the oracle what is known."""
    runner.drafter.tell(known, nodes, seed)


def _texts(runner: Any) -> list[Text]:
    """Each request's tokens that are known before the step samples."""
    batch = runner.input_batch
    return [
        tuple(batch.token_ids_cpu[line, : batch.num_tokens_no_spec[line]].tolist())
        for line in range(batch.num_reqs)
    ]
