"""A proposer that hides the known greedy continuation among random siblings of a random tree."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

# First tokens of a prompt that tell the requests of a test apart.
MARK = 4


class Oracle:
    """A `custom_class` proposer of vLLM.

    `oracle.json` in the working directory gives `known`, whole sequences of prompt and greedy
    continuation; `nodes`, the most nodes of a tree; `seed`; `vocabulary`; and `shape`: "tree",
    or "chain" for the continuation with a wrong token here and there.
    """

    def __init__(self, config: Any) -> None:
        """Read what is known; `config` is vLLM's and not used."""
        del config
        given = json.loads(Path("oracle.json").read_text())
        self.known = {tuple(tokens[:MARK]): tokens for tokens in given["known"]}
        self.nodes: int = given["nodes"]
        self.vocabulary: int = given["vocabulary"]
        self.shape: str = given.get("shape", "tree")
        self.random = random.Random(given["seed"])
        self.draft_parents: list[list[int] | None] | None = None

    def load_model(self, *args: Any, **named: Any) -> None:
        """There is no model."""

    def propose(
        self, sampled: list[list[int]], lengths: Any, tokens: Any, **named: Any
    ) -> list[list[int]]:
        """A tree per request that has just sampled; parents go to `draft_parents`."""
        del named
        drafts: list[list[int]] = []
        parents: list[list[int] | None] = []
        for line, new in enumerate(sampled):
            text = tokens[line, : lengths[line]].tolist()
            nodes, above = self.tree(self.continuation(text)) if new else ([], [])
            drafts.append(nodes)
            parents.append(above)
        self.draft_parents = parents
        return drafts

    def continuation(self, text: list[int]) -> list[int]:
        """What is known to follow; nothing where the text is not the known one."""
        known = self.known.get(tuple(text[:MARK]), [])
        return known[len(text) :] if known[: len(text)] == text else []

    def tree(self, truth: list[int]) -> tuple[list[int], list[int]]:
        """Tokens and parents of a random tree that holds a beginning of the truth somewhere."""
        if self.shape == "chain":
            chain = [token if self.random.random() < 0.7 else self.any() for token in truth]
            chain = chain[: self.nodes]
            return chain, list(range(len(chain)))
        tokens: list[int] = []
        parents: list[int] = []
        # Row by row: the children's tokens, and how far along the truth the row is, or None.
        children: list[set[int]] = [set()]
        along: list[int | None] = [0]
        for _ in range(self.nodes):
            row = self.random.randrange(len(along))
            step = along[row]
            right = truth[step] if step is not None and step < len(truth) else None
            token = right if right is not None and self.random.random() < 0.5 else self.any()
            if token in children[row]:
                continue
            children[row].add(token)
            tokens.append(token)
            parents.append(row)
            children.append(set())
            along.append(step + 1 if step is not None and token == right else None)
        return tokens, parents

    def any(self) -> int:
        """Any token."""
        return self.random.randrange(self.vocabulary)
