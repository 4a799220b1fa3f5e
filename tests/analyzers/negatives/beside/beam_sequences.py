# mypy: ignore-errors
"""Beam search: hypotheses know their parents, and the best one is read back through them."""


def backtrack(parent_ids, token_ids, beam):
    tokens = []
    for step in range(len(parent_ids) - 1, -1, -1):
        tokens.append(token_ids[step][beam])
        beam = parent_ids[step][beam]
    return tokens[::-1]


def hook(runner, scheduler_output):
    return backtrack(scheduler_output.parent_ids, scheduler_output.token_ids, 0)
