# mypy: ignore-errors
"""Slots are given to the rows that wait the longest; each slot notes which one had it before."""

import numpy as np


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        waited = np.array(self.waited)
        before = np.array(self.before)
        order, owner = np.zeros(self.width), np.zeros(self.width)
        for slot in range(self.width):
            row = int(np.argmax(waited))
            order[slot] = row
            owner[slot] = before[row]
            before[row] = slot
            waited[row] = 0.0
        return order, owner
