# mypy: ignore-errors
"""A list that is kept in order by `insort`, popped from its cheap end."""

import bisect


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        logits = self.model.compute_logits(self.model(last_tokens, hidden_states))
        costs, ids = (-logits).sort(dim=-1)
        return self.best(costs.tolist(), ids.tolist())

    def best(self, costs, ids):
        frontier = [(costs[0][0], 0, 0, 0)]
        tokens, above = [], []
        while frontier and len(tokens) < self.width:
            cost, depth, rank, parent = frontier.pop(0)
            tokens.append(ids[depth][rank])
            above.append(parent)
            following = (cost + costs[depth][rank + 1], depth, rank + 1, parent)
            bisect.insort(frontier, following)
            bisect.insort(frontier, (cost + costs[depth + 1][0], depth + 1, 0, len(tokens)))
        return tokens, above
