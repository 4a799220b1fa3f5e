# mypy: ignore-errors
"""A heap of partial paths behind numpy; nodes are kept in arrays that were made before."""

import heapq

import numpy as np


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        return self.grow(self.model.compute_logits(self.model(last_tokens, hidden_states)))

    def grow(self, logits):
        costs, ids = (-logits).sort(dim=-1)
        costs, ids = costs.numpy(), ids.numpy()
        token_of = np.empty(self.width, dtype=np.int64)
        parent_of = np.empty(self.width, dtype=np.int64)
        heap, count = [(costs[0, 0], 0, 1, 0)], 0
        while heap and count < self.width:
            cost, above, depth, rank = heapq.heappop(heap)
            token_of[count] = ids[depth - 1, rank]
            parent_of[count] = above
            count += 1
            heapq.heappush(heap, (cost + costs[depth - 1, rank + 1], above, depth, rank + 1))
            heapq.heappush(heap, (cost + costs[depth, 0], count, depth + 1, 0))
        return token_of, parent_of
