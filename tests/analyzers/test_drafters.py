"""Who drafts a tree, and who only ranks, merges or schedules."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree.analyzers.result import EnginePath, Report, Stage, StageVerdict
from tests.analyzers import fork, inputs, mini, overlay, reports
from tests.renamer import Renamer

_RUNNERS = ("vllm/v1/worker/gpu_model_runner.py", "vllm/v1/worker/gpu/model_runner.py")
_OTHER = "vllm/v1/spec_decode/other.py"
_WALK = inputs.POSITIVES["child_map"]
_TREE, _CHAIN = fork.DRAFTER, mini.files(_WALK)[mini.DRAFTER]
_CALL = "self.drafter.propose(hidden_states, output)"


def drafting(report: Report) -> set[StageVerdict]:
    found = reports.stages(report)
    return {found[path][Stage.DRAFTING] for path in (EnginePath.V1, EnginePath.V2)}


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("name", inputs.TREE_DRAFTERS)
def test_a_best_first_tree(name: str, renamed: bool, tmp_path: Path) -> None:
    files = mini.files(_WALK) | {mini.DRAFTER: inputs.TREE_DRAFTERS[name]}
    files = Renamer(3, strip=True).files(files) if renamed else files

    assert drafting(reports.inspect(overlay.mini_install(tmp_path, files))) == {StageVerdict.TREE}


@pytest.mark.parametrize("name", inputs.OTHER_DRAFTERS)
def test_what_ranks_and_keeps_numbers_is_no_tree(name: str, tmp_path: Path) -> None:
    files = mini.files(_WALK) | {mini.DRAFTER: inputs.OTHER_DRAFTERS[name]}

    found = drafting(reports.inspect(overlay.mini_install(tmp_path, files)))

    assert found == {StageVerdict.UNKNOWN}


# What the engine does with a tree drafter that lies beside the chain drafter that it uses.
_BESIDE = {
    "held": ("self.other = Other(model, 3)\n        ", ""),
    "called-and-dropped": (
        "self.other = Other(model, 3)\n        ",
        "self.other.propose(hidden_states, output)\n        ",
    ),
    "asked-for": ("", "self.log = isinstance(self.drafter, Other)\n        "),
}


@pytest.mark.parametrize("kind", _BESIDE)
def test_another_drafter_beside_the_one_in_use(kind: str, tmp_path: Path) -> None:
    made, used = _BESIDE[kind]
    other = _TREE.replace("class Drafter:", "class Other(Drafter):").replace(
        "import torch\n", f"import torch\nfrom {_dotted(mini.DRAFTER)} import Drafter\n", 1
    )
    files = mini.files(_WALK) | {_OTHER: other}
    for runner in _RUNNERS:
        text = files[runner].replace(
            "class GPU", f"from {_dotted(_OTHER)} import Other\n\nclass GPU", 1
        )
        text = text.replace("self.drafter = ", f"{made}self.drafter = ")
        files[runner] = text.replace(f"drafts = {_CALL}", f"{used}drafts = {_CALL}")

    report = reports.inspect(overlay.mini_install(tmp_path, files))

    assert drafting(report) == {StageVerdict.LINEAR}
    assert {e.file for e in report.evidence if e.stage is Stage.DRAFTING} == {mini.DRAFTER}


def test_a_beam_step_of_the_sampler_drafts_nothing(tmp_path: Path) -> None:
    sampler = """
import torch


class Sampler:
    def __call__(self, logits):
        self.scores = logits
        kept = self.beams(3)
        return kept[-1]

    def beams(self, levels):
        level, kept = self.start, []
        for _ in range(levels):
            level = torch.topk(self.after(level), self.width, dim=-1).indices.view(2, -1)
            kept.append(level)
        return kept
"""
    files = mini.files(_WALK) | {"vllm/v1/sample/sampler.py": sampler}

    assert drafting(reports.inspect(overlay.mini_install(tmp_path, files))) == {StageVerdict.LINEAR}


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")
