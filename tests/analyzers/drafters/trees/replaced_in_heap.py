# mypy: ignore-errors
"""`heapreplace` takes the best and puts its sibling in one go; names come from `heapq` bare."""

from heapq import heappush, heapreplace


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        logits = self.model.compute_logits(self.model(last_tokens, hidden_states))
        costs, ids = (-logits).sort(dim=-1)
        heap = [(costs[0, 0], 0, 0, 0)]
        token_of, parent_of = [], []
        count = 0
        while count < self.width:
            cost, parent, depth, rank = heap[0]
            following = (cost + costs[depth, rank + 1], parent, depth, rank + 1)
            cost, parent, depth, rank = heapreplace(heap, following)
            token_of.append(ids[depth, rank])
            parent_of.append(parent)
            count += 1
            heappush(heap, (cost + costs[depth + 1, 0], count, depth + 1, 0))
        return token_of, parent_of
