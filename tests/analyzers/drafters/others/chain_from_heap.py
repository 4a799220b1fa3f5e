# mypy: ignore-errors
"""A heap of one: each node is popped at once and pushes its one follower."""

import heapq


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        logits = self.model.compute_logits(self.model(last_tokens, hidden_states))
        costs, ids = (-logits).sort(dim=-1)
        heap, tokens, parents = [(0.0, 0, 0)], [], []
        while heap and len(tokens) < self.width:
            cost, depth, parent = heapq.heappop(heap)
            tokens.append(ids[depth, 0])
            parents.append(parent)
            heapq.heappush(heap, (cost + costs[depth + 1, 0], depth + 1, len(tokens)))
        return tokens, parents
