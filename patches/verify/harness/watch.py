"""What is seen of a model runner while it samples, whichever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Text = tuple[int, ...]


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
        self.gaps: dict[Text, tuple[float, float, int]] | None = None
        self.rows: dict[Text, Any] | None = None
        self.trees: list[dict[str, Any]] | None = None
        self.every = 1
        self.most = 0
        self._steps = 0

    def before(
        self,
        runner: Any,
        drafts: list[int],
        texts: Callable[[], list[Text]],
        logits: Callable[[], Any],
    ) -> None:
        """Look at the logits before a step is sampled.

        Args:
            runner: vLLM's `GPUModelRunner`.
            drafts: drafted rows of each request.
            texts: gives each request's tokens that are known before the step samples.
            logits: gives [rows, V], root and nodes of each request; it may compute them.
        """
        engine = getattr(runner, "_ddtree", None)
        step = engine.step if engine is not None else None
        if step is not None and step.trees:
            rows = step.first_rows[-1] + step.drafts[-1] + 1
            self.mixed += rows > sum(drafted + 1 for drafted in step.drafts)
            self._steps += 1
            if self.trees is not None and self._steps % self.every == 0:
                self._keep_trees(step, texts(), logits())
        if self.gaps is not None or self.rows is not None:
            self._keep_rows(drafts, texts(), logits())

    def after(self, drafts: list[int], sampled: Callable[[], Any]) -> None:
        """Count what a step accepted; `sampled` gives the tokens of each request, [R]."""
        lines = [line for line, drafted in enumerate(drafts) if drafted]
        if lines:
            self.verifications += len(lines)
            self.accepted = self.accepted + sampled()[lines].sum() - len(lines)

    def _keep_rows(self, drafts: list[int], texts: list[Text], logits: Any) -> None:
        """Keep what follows each text; drafts come after it, and it does not see them."""
        row = 0
        for text, drafted in zip(texts, drafts, strict=True):
            if self.rows is not None:
                self.rows[text] = logits[row].float().cpu()
            if self.gaps is not None:
                (first, second), (_, token) = (part.tolist() for part in logits[row].topk(2))
                self.gaps[text] = (first, first - second, int(token))
            row += drafted + 1

    def _keep_trees(self, step: Any, texts: list[Text], logits: Any) -> None:
        assert self.trees is not None
        for line in step.trees:
            count, first = int(step.count[line]), int(step.logits_start[line])
            if count and len(self.trees) < self.most:
                root = int(step.batch.input_ids[int(step.token_start[line])])
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
