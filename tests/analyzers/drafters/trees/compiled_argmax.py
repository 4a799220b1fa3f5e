# mypy: ignore-errors
"""Compiled with numba: all children of a node enter the frontier at once."""

import numba
import numpy as np


@numba.njit(cache=False)
def _grow(gain, ids, tokens, parents, fan):
    total = np.full(tokens.shape[0] * fan + 1, -np.inf)
    owner = np.zeros(total.shape[0], dtype=np.int64)
    depth = np.zeros(total.shape[0], dtype=np.int64)
    rank = np.zeros(total.shape[0], dtype=np.int64)
    total[0] = gain[0, 0]
    end = 1
    count = 0
    while count < tokens.shape[0]:
        at = np.argmax(total)
        level = depth[at]
        tokens[count] = ids[level, rank[at]]
        parents[count] = owner[at]
        count += 1
        for k in range(fan):
            total[end] = total[at] + gain[level + 1, k]
            owner[end] = count
            depth[end] = level + 1
            rank[end] = k
            end += 1
        total[at] = -np.inf


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        logits = self.model.compute_logits(self.model(last_tokens, hidden_states))
        gain, ids = logits.log_softmax(-1).cpu().topk(8)
        tokens = np.zeros(self.width, dtype=np.int64)
        parents = np.zeros(self.width, dtype=np.int64)
        _grow(gain.numpy(), ids.numpy(), tokens, parents, 8)
        return tokens, parents
