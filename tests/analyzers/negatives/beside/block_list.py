# mypy: ignore-errors
"""A linked list of KV blocks, followed block by block to free a request."""


class FreeList:
    def __init__(self, next_block):
        self.next_block = next_block
        self.head = 0

    def collect(self, block, limit):
        found = []
        while block != -1 and len(found) < limit:
            found.append(block)
            block = self.next_block[block]
        return found


def hook(runner, scheduler_output):
    return FreeList(scheduler_output.next_block).collect(scheduler_output.first_block, 16)
