# mypy: ignore-errors
"""The streams of several prompts are merged by their next token."""

import heapq


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        streams = [iter(row) for row in self.prompts]
        heap = [(next(stream), place) for place, stream in enumerate(streams)]
        tokens, origin, count = [], [], 0
        while heap and count < self.width:
            token, place = heapq.heappop(heap)
            tokens.append(token)
            origin.append(place)
            count += 1
            heapq.heappush(heap, (next(streams[place]), place))
        return tokens, origin
