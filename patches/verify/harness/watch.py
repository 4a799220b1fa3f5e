"""Look into a model runner while it samples; every function here runs in vLLM's worker.

The functions take the worker first, as vLLM's `collective_rpc` calls them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

ATTRIBUTE = "_ddtree_watch"


class Watch:
    """What was seen in one runner.

    Attributes:
        verifications: drafts of one request that were verified.
        accepted: tokens of these that were accepted.
        mixed: steps in which trees were verified beside pieces of prompts.
        gaps: top-1 logit, the gap to the second, and the second token, by the text before;
            None while nobody asks.
        rows: the logits after a text, by the text; None while nobody asks.
        trees: verified trees with the logits of their rows; None while nobody asks.
        every: of so many steps with trees, one is kept.
        most: no more trees are kept.
    """

    def __init__(self) -> None:
        """See nothing yet."""
        self.verifications: Any = 0
        self.accepted: Any = 0
        self.mixed = 0
        self.gaps: dict[tuple[int, ...], tuple[float, float, int]] | None = None
        self.rows: dict[tuple[int, ...], Any] | None = None
        self.trees: list[dict[str, Any]] | None = None
        self.every = 1
        self.most = 0
        self._steps = 0

    def before(self, runner: Any, logits: Any, metadata: Any) -> None:
        """Look at the logits before a step is sampled."""
        engine = getattr(runner, "_ddtree", None)
        step = engine.step if engine is not None else None
        if step is not None and step.trees:
            rows = step.first_rows[-1] + step.drafts[-1] + 1
            self.mixed += rows > sum(drafted + 1 for drafted in step.drafts)
            self._steps += 1
            if self.trees is not None and self._steps % self.every == 0:
                self._keep_trees(runner, step, logits)
        self._keep_rows(runner, logits, metadata)

    def after(self, output: Any, metadata: Any) -> None:
        """Count what a step accepted."""
        if metadata is None:
            return
        lines = [line for line, drafted in enumerate(metadata.num_draft_tokens) if drafted]
        if lines:
            tokens = output.sampled_token_ids[lines]
            self.verifications += len(lines)
            self.accepted = self.accepted + (tokens >= 0).sum() - len(lines)

    def _keep_rows(self, runner: Any, logits: Any, metadata: Any) -> None:
        """Keep what follows each text; drafts come after it, and it does not see them."""
        if self.gaps is None and self.rows is None:
            return
        texts = _texts(runner)
        drafts = [0] * len(texts) if metadata is None else metadata.num_draft_tokens
        row = 0
        for text, drafted in zip(texts, drafts, strict=True):
            if self.rows is not None:
                self.rows[text] = logits[row].float().cpu()
            if self.gaps is not None:
                (first, second), (_, token) = (part.tolist() for part in logits[row].topk(2))
                self.gaps[text] = (first, first - second, int(token))
            row += drafted + 1

    def _keep_trees(self, runner: Any, step: Any, logits: Any) -> None:
        assert self.trees is not None
        texts = _texts(runner)
        for line in step.trees:
            count, first = int(step.count[line]), int(step.logits_start[line])
            if count and len(self.trees) < self.most:
                root = int(runner.input_ids.gpu[int(step.token_start[line])])
                if root != texts[line][-1]:
                    raise RuntimeError(
                        f"the root is token {root}, the text ends in {texts[line][-1]}"
                    )
                self.trees.append(
                    {
                        "text": texts[line],
                        "tokens": step.tokens[line, :count].tolist(),
                        "parents": step.parents[line, :count].tolist(),
                        "logits": logits[first : first + count + 1].float().cpu(),
                    }
                )


def _texts(runner: Any) -> list[tuple[int, ...]]:
    """Each request's tokens that are known before the step samples."""
    batch = runner.input_batch
    return [
        tuple(batch.token_ids_cpu[line, : batch.num_tokens_no_spec[line]].tolist())
        for line in range(batch.num_reqs)
    ]


def install(worker: Any) -> None:
    """Begin to watch the worker's runner."""
    runner = worker.model_runner
    watch, sample = Watch(), runner._sample

    def watched(logits: Any, metadata: Any) -> Any:
        if logits is None:
            return sample(logits, metadata)
        watch.before(runner, logits, metadata)
        output = sample(logits, metadata)
        watch.after(output, metadata)
        return output

    setattr(runner, ATTRIBUTE, watch)
    runner._sample = watched


def ask(worker: Any, **wanted: Any) -> None:
    """Set what the watch keeps."""
    watch = getattr(worker.model_runner, ATTRIBUTE)
    for name, value in wanted.items():
        setattr(watch, name, value)


def seen(worker: Any, name: str) -> Any:
    """One attribute of the watch; numbers that are on a device are read."""
    value = getattr(getattr(worker.model_runner, ATTRIBUTE), name)
    return int(value) if name in ("verifications", "accepted") else value


def counters(worker: Any) -> dict[str, Any] | None:
    """The counters of the runtime in this runner."""
    engine = getattr(worker.model_runner, "_ddtree", None)
    found: dict[str, Any] | None = None if engine is None else engine.counters.read()
    return found


def leave_out(worker: Any, parts: list[str]) -> None:
    """Switch off parts of the runtime."""
    engine = worker.model_runner._ddtree
    engine.settings = dataclasses.replace(engine.settings, without=tuple(parts))


def tell(worker: Any, known: list[list[int]], nodes: int, seed: int) -> None:
    """Tell the oracle what is known."""
    worker.model_runner.drafter.tell(known, nodes, seed)
