# mypy: ignore-errors
"""A suffix trie looked up to draft: it proposes one list, and the verifier is a chain."""


class SuffixTrie:
    def __init__(self):
        self.root = {}

    def add(self, tokens):
        for start in range(len(tokens)):
            node = self.root
            for token in tokens[start:]:
                node = node.setdefault(token, {})

    def propose(self, context, width):
        node = self.root
        for token in context:
            node = node.get(token)
            if node is None:
                return []
        drafts = []
        while node and len(drafts) < width:
            token, node = next(iter(node.items()))
            drafts.append(token)
        return drafts


def hook(runner, scheduler_output):
    trie = SuffixTrie()
    trie.add(scheduler_output.prompt)
    return trie.propose(scheduler_output.context, 4)
