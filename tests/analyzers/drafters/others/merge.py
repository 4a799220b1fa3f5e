# mypy: ignore-errors
"""Pairs are merged, the cheapest first: what is made of two goes back among the others."""

import heapq


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        heap = [(weight, place) for place, weight in enumerate(self.weights)]
        nodes = []
        while len(heap) > 1:
            one, left = heapq.heappop(heap)
            other, right = heapq.heappop(heap)
            nodes.append((self.names[left], left, right))
            heapq.heappush(heap, (one + other, len(nodes)))
        return nodes
