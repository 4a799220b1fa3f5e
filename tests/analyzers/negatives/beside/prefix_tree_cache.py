# mypy: ignore-errors
"""A prefix cache kept as a tree of blocks and walked token block by token block."""


class PrefixNode:
    def __init__(self):
        self.children = {}
        self.block = -1


def longest_prefix(root, blocks):
    node, hits = root, []
    for key in blocks:
        child = node.children.get(key)
        if child is None:
            break
        hits.append(child.block)
        node = child
    return hits


def hook(runner, scheduler_output):
    return longest_prefix(PrefixNode(), scheduler_output.block_hashes)
