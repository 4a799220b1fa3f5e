# mypy: ignore-errors
"""No heap: the frontier is a few arrays, and the cheapest place is looked up each time."""

import numpy as np


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        logits = self.model.compute_logits(self.model(last_tokens, hidden_states))
        cost, ids = (-logits).cpu().sort(dim=-1)
        return select(cost.numpy(), ids.numpy(), self.width)


def select(cost, ids, width):
    price = np.full(2 * width, np.inf)
    owner = np.zeros(2 * width, dtype=np.int32)
    level = np.zeros(2 * width, dtype=np.int32)
    place = np.zeros(2 * width, dtype=np.int32)
    tokens = np.zeros(width, dtype=np.int64)
    links = np.zeros(width, dtype=np.int32)
    price[0] = cost[0, 0]
    size = 1
    for made in range(width):
        best = int(np.argmin(price[:size]))
        here, rank = level[best], place[best]
        tokens[made] = ids[here, rank]
        links[made] = owner[best]
        below = price[best] + cost[here + 1, 0]
        price[best] += cost[here, rank + 1] - cost[here, rank]
        place[best] = rank + 1
        price[size] = below
        owner[size] = made + 1
        level[size] = here + 1
        size += 1
    return tokens, links
