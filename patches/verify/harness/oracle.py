"""A drafter that knows the greedy continuation and hides it among the branches of random trees."""

from __future__ import annotations

import random
from typing import Any


class Oracle:
    """Drafts nothing until it is told what is known; on the V1 runner a `custom_class` proposer.

    `draft_parents` gives the runtime the trees of the tokens that `propose` returns.
    """

    def __init__(self, config: Any) -> None:
        """Know nothing; `config` is vLLM's and only says how many tokens there are."""
        self.vocabulary: int = config.model_config.get_vocab_size()
        self.known: list[list[int]] = []
        self.nodes = 0
        self.random = random.Random(0)
        self.draft_parents: list[list[int] | None] | None = None

    def load_model(self, *args: Any, **named: Any) -> None:
        """There is no model."""

    def tell(self, known: list[list[int]], nodes: int, seed: int) -> None:
        """Know whole sequences of prompt and continuation; draft trees of up to `nodes` nodes."""
        self.known = known
        self.nodes = nodes
        self.random = random.Random(seed)

    def propose(
        self, sampled: list[list[int]], lengths: Any, tokens: Any, *args: Any, **named: Any
    ) -> list[list[int]]:
        """A tree for every request that has just sampled."""
        del args, named
        drafts: list[list[int]] = []
        parents: list[list[int] | None] = []
        for line, new in enumerate(sampled):
            text = tokens[line, : lengths[line]].tolist()
            nodes, above = self.grown(text) if new else ([], [])
            drafts.append(nodes)
            parents.append(above)
        self.draft_parents = parents
        return drafts

    def grown(self, text: list[int]) -> tuple[list[int], list[int]]:
        """Tokens and parents of a tree after a text; nothing as long as nothing is known."""
        return self._tree(self._following(text)) if self.nodes else ([], [])

    def _following(self, text: list[int]) -> list[int]:
        """What is known to follow; nothing where the text is no known one."""
        found = (known for known in self.known if known[: len(text)] == text)
        return next(found, [])[len(text) :]

    def _tree(self, truth: list[int]) -> tuple[list[int], list[int]]:
        """Tokens and parents of a tree that holds a beginning of the truth, rarely at the front."""
        tokens: list[int] = []
        parents: list[int] = []
        children: list[set[int]] = [set()]
        # How far along the truth a row is; None where it left it.
        along: list[int | None] = [0]
        for _ in range(self.nodes):
            row = self.random.randrange(len(along))
            step = along[row]
            right = truth[step] if step is not None and step < len(truth) else None
            follows = right is not None and self.random.random() < 0.5
            token = right if follows and right is not None else self._any()
            if token in children[row]:
                continue
            children[row].add(token)
            tokens.append(token)
            parents.append(row)
            children.append(set())
            along.append(step + 1 if step is not None and token == right else None)
        return tokens, parents

    def _any(self) -> int:
        return self.random.randrange(self.vocabulary)
