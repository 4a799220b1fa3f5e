# mypy: ignore-errors
"""Walks over nested values, as jsontree, pytree and ElementTree do."""


def tree_map(function, value):
    if isinstance(value, dict):
        return {key: tree_map(function, child) for key, child in value.items()}
    if isinstance(value, list):
        return [tree_map(function, child) for child in value]
    return function(value)


def tree_get(value, path):
    for key in path:
        value = value.get(key)
    return value


def hook(runner, scheduler_output):
    leaves = tree_map(str, scheduler_output.options)
    return tree_get(leaves, ["speculative", "tree"])
