"""A chain drafter beside one that no rule knows does not make drafting `linear`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree.analyzers.result import EnginePath, Stage, StageVerdict
from tests.analyzers import inputs, mini, overlay, reports

_STOCK = inputs.LINEAR["product_along_positions"]
_RUNNERS = ("vllm/v1/worker/gpu_model_runner.py", "vllm/v1/worker/gpu/model_runner.py")
_DRAFTER = """
import outside
import torch


class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        if self.other:
            OTHER
        tokens = [last_tokens]
        for _ in range(self.width):
            hidden_states = self.model(tokens[-1], hidden_states)
            tokens.append(self.model.compute_logits(hidden_states).argmax(dim=-1))
        return tokens

    def spread(self, logits):
        tokens, above = torch.zeros(self.width), torch.zeros(self.width)
        for place in range(self.width):
            tokens[place] = logits[place // 2].argsort()[place % 2]
            above[place] = (place - 1) // 2
        return tokens, above

    def best(self, logits):
        return logits.argmax(dim=-1), logits.softmax(dim=-1)

    def listed(self, rows):
        drafts = []
        for row in rows:
            drafts.append(row[-self.width :])
        return drafts
"""
_OTHERS = {
    "a call from elsewhere": ("return outside.grow(hidden_states)", StageVerdict.UNKNOWN),
    "a call from elsewhere by name": (
        "drafts = outside.grow(hidden_states)\n            return drafts.view(2, -1)",
        StageVerdict.UNKNOWN,
    ),
    "tokens with their links": (
        "return self.spread(self.model.compute_logits(hidden_states))",
        StageVerdict.UNKNOWN,
    ),
    "one token per position": (
        "return self.best(self.model.compute_logits(hidden_states))",
        StageVerdict.LINEAR,
    ),
    "one list per request": ("return self.listed(last_tokens)", StageVerdict.LINEAR),
    "the model's own": ("return self.model(last_tokens).view(2, -1)", StageVerdict.LINEAR),
}


@pytest.mark.parametrize("case", _OTHERS)
def test_another_way_to_draft_in_the_drafter(case: str, tmp_path: Path) -> None:
    other, verdict = _OTHERS[case]
    files = {mini.DRAFTER: _DRAFTER.replace("OTHER", other)}

    report = reports.inspect(mini.install(tmp_path, _STOCK, files))

    for path in (EnginePath.V1, EnginePath.V2):
        found = reports.by_path(report)[path].stages[Stage.DRAFTING]
        assert found.verdict is verdict, path
        assert (mini.DRAFTER in found.reason) == (verdict is StageVerdict.UNKNOWN)
    # Drafting decides nothing about what is accepted.
    assert report.verdict.value == StageVerdict.LINEAR.value


@pytest.mark.parametrize("other", ["outside.grow(hidden_states)", "self.chosen.propose(output)"])
def test_another_drafter_in_the_runner(other: str, tmp_path: Path) -> None:
    files = mini.files(_STOCK)
    drafts = "        drafts = self.drafter.propose(hidden_states, output)\n"
    chosen = f"        if self.other:\n            return output, {other}\n"
    runner = "import outside\n" + files[_RUNNERS[0]].replace(drafts, chosen + drafts)
    runner = runner.replace(
        "        self.state = None\n",
        "        self.state = None\n        self.chosen = _Spreading()\n",
        1,
    )
    runner += _SPREADING

    report = reports.inspect(
        overlay.mini_install(tmp_path, files | dict.fromkeys(_RUNNERS, runner))
    )

    for path in (EnginePath.V1, EnginePath.V2):
        found = reports.by_path(report)[path].stages[Stage.DRAFTING]
        assert found.verdict is StageVerdict.UNKNOWN, path


_SPREADING = """

class _Spreading:
    def propose(self, tokens):
        kept, above = [], []
        for place, token in enumerate(tokens):
            kept.append(token)
            above.append(place // 2)
        return kept, above
"""
