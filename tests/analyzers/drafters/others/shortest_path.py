# mypy: ignore-errors
"""Dijkstra over the machines of a cluster."""

import heapq


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        heap, came_from, order = [(0, 0, -1)], {}, []
        while heap:
            cost, node, before = heapq.heappop(heap)
            if node in came_from:
                continue
            came_from[node] = before
            order.append(self.names[node])
            for other, weight in self.links[node]:
                heapq.heappush(heap, (cost + weight, other, node))
        return order
