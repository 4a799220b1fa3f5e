# mypy: ignore-errors
"""Entries are objects; the least is searched for, taken out, and replaced by its children."""

from dataclasses import dataclass


@dataclass
class Entry:
    cost: float
    token: int
    depth: int
    parent: int


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        logits = self.model.compute_logits(self.model(last_tokens, hidden_states))
        costs, ids = (-logits).topk(4, largest=False)
        frontier = [Entry(costs[0, k], ids[0, k], 0, 0) for k in range(4)]
        nodes = []
        while frontier and len(nodes) < self.width:
            best = min(frontier, key=lambda entry: entry.cost)
            frontier.remove(best)
            nodes.append((best.token, best.parent))
            below = best.depth + 1
            for k in range(4):
                cost = best.cost + costs[below, k]
                frontier.append(
                    Entry(cost=cost, token=ids[below, k], depth=below, parent=len(nodes))
                )
        return nodes
