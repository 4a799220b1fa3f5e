# mypy: ignore-errors
"""The best experts of a layer, by the machine that has them and the place there."""


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        chosen = (hidden_states @ self.gate).topk(self.width).indices
        machines = chosen // self.per_machine
        places = chosen % self.per_machine
        return self.model.run(machines, places)
