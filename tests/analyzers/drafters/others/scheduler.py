# mypy: ignore-errors
"""Requests are drafted for in the order of their priority, with a number that breaks ties."""

import heapq


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        queue = [(0.0, row, row) for row in range(last_tokens.shape[0])]
        done, number = [], len(queue)
        while queue and len(done) < self.width:
            due, order, row = heapq.heappop(queue)
            done.append((order, self.periods[row]))
            number += 1
            heapq.heappush(queue, (due + self.periods[row], number, row))
        return done
