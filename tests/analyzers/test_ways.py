"""A chain is `linear` only if no other way leads past it, and what leads past it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree.analyzers.result import EnginePath, Report, Stage, StageVerdict, Verdict
from tests import wheels
from tests.analyzers import engines, inputs, mini, overlay, reports

_ACCEPT = "vllm/v1/sample/accept.py"
_RUNNERS = ("vllm/v1/worker/gpu_model_runner.py", "vllm/v1/worker/gpu/model_runner.py")
_CHAIN = """
import outside
import torch


def chain(tokens, target):
    out = []
    for i in range(len(tokens)):
        out.append(target[i])
        if tokens[i] != target[i]:
            break
    return out


def powers(parents, tokens, target):
    hit = (tokens == target.gather(1, parents)).float()
    return torch.where((hit @ hit.T).sum(-1) > 2, target, -1)


def verify(parents, tokens, target):
"""
# What may stand beside the chain in the verifier, and what of it has to be named.
_BESIDE = {
    "behind a branch": (
        """
if parents is not None:
    return outside.decide(parents, tokens, target)
return chain(tokens, target)
""",
        "outside.decide",
    ),
    "on the other branch": (
        """
if parents is None:
    return chain(tokens, target)
return outside.decide(parents, tokens, target)
""",
        "outside.decide",
    ),
    "in a function of the same package": (
        """
if parents is not None:
    return powers(parents, tokens, target)
return chain(tokens, target)
""",
        "powers",
    ),
    "in the verifier itself": (
        """
if parents is not None:
    hit = (tokens == target.gather(1, parents)).float()
    return torch.where(hit @ hit.T > 1, target, -1)
return chain(tokens, target)
""",
        "torch.where(hit @ hit.T > 1, target, -1)",
    ),
    "named inside a condition": (
        """
if (said := outside.decide(parents, tokens, target)) is not None:
    return said
return chain(tokens, target)
""",
        "outside.decide",
    ),
    "fed to an object": (
        """
if parents is not None:
    picker = outside.Picker()
    picker.feed(tokens, target)
    return picker.result()
return chain(tokens, target)
""",
        "picker.feed",
    ),
    "fed to what is entered": (
        """
if parents is not None:
    with outside.Picker(tokens) as picker:
        picker.feed(target)
        return picker.result
return chain(tokens, target)
""",
        "picker.feed",
    ),
    "where it is longer": (
        """
out = chain(tokens, target)
longer = outside.decide(parents, tokens, target)
return longer if len(longer) > len(out) else out
""",
        "outside.decide",
    ),
    "chosen row by row": (
        """
kept = torch.tensor(chain(tokens, target))
return torch.where(parents > 0, outside.decide(parents, tokens, target), kept)
""",
        "outside.decide",
    ),
    "written into the same buffer": (
        """
out = torch.full_like(target, -1)
if parents is not None:
    outside.decide(out, parents, tokens, target)
else:
    out[:] = torch.tensor(chain(tokens, target))
return out
""",
        "outside.decide",
    ),
    "after the chain": (
        """
out = chain(tokens, target)
if parents is not None:
    out = outside.extend(out, parents, tokens, target)
return out
""",
        "outside.extend",
    ),
    "by a method of what is handed in": (
        """
if parents is not None:
    return parents.decide(tokens, target)
return chain(tokens, target)
""",
        "parents.decide",
    ),
    "by choosing the drafts": (
        "return chain(outside.choose(parents, tokens, target), target)",
        "outside.choose",
    ),
    "by reordering the drafts": (
        """
rows = outside.order(parents, tokens, target)
return chain(tokens[rows], target)
""",
        "outside.order",
    ),
    "by overwriting the drafts": (
        """
tokens[:] = outside.order(parents, tokens, target)
return chain(tokens, target)
""",
        "outside.order",
    ),
    "by reordering the drafts in place": (
        """
outside.order(parents, tokens, target)
return chain(tokens, target)
""",
        "outside.order",
    ),
    "by renaming what a function of the package chose": (
        """
tokens = powers(parents, tokens, target)
return chain(tokens, target)
""",
        "powers",
    ),
}
# What may stand in the runner before it calls its verifier.
_IN_RUNNER = {
    "a verifier of sampled tokens": (
        """
if metadata.tree is not None:
    import outside
    return outside.accept(metadata.tree, self.sampler(logits))
""",
        "outside.accept",
    ),
    "a verifier where one part is missing": (
        """
if metadata.chain is None:
    import outside
    return outside.accept(metadata, logits)
""",
        "outside.accept",
    ),
    "a verifier of the package where one part is missing": (
        """
if metadata.chain is None:
    return compare(metadata, logits)
""",
        "compare",
    ),
    "a reordering of the drafts": (
        """
import outside
metadata.draft_token_ids = outside.walk(metadata.draft_token_ids, logits.argmax(-1))
""",
        "outside.walk",
    ),
    "a result that is kept elsewhere": (
        """
import outside
self.tree_tokens = outside.walk(metadata.draft_token_ids, logits.argmax(-1))
""",
        "outside.walk",
    ),
    "a method that is not there": (
        """
if metadata.tree is not None:
    return self._walk(metadata, logits)
""",
        "self._walk",
    ),
}
# What is beside a chain in every engine, and verifies nothing.
_HARMLESS = {
    "a sampler from elsewhere": (
        """
import outside
target = outside.sample(target)
return chain(tokens, target)
"""
    ),
    "a filter in place": (
        """
outside.apply_mask(target)
return chain(tokens, target)
"""
    ),
    "the token after the prefix": (
        """
out = chain(tokens, target)
return [*out, target[len(out)]]
"""
    ),
    "a report": (
        """
print(target.sum())
return chain(tokens, target)
"""
    ),
}
_COMPARE = """

def compare(metadata, logits):
    hit = metadata.draft_token_ids == logits.argmax(-1)
    return logits.argmax(-1) * hit
"""


@pytest.mark.parametrize("case", _BESIDE)
def test_a_way_past_the_chain_leaves_it_open(case: str, tmp_path: Path) -> None:
    body, named = _BESIDE[case]

    report = reports.inspect(mini.install(tmp_path, _module(body)))

    _assert_open(report, named, _ACCEPT)


@pytest.mark.parametrize("case", _HARMLESS)
def test_what_verifies_nothing_leaves_the_chain(case: str, tmp_path: Path) -> None:
    report = reports.inspect(mini.install(tmp_path, _module(_HARMLESS[case])))

    assert report.verdict is Verdict.LINEAR, report.paths


@pytest.mark.parametrize("case", _IN_RUNNER)
def test_a_way_past_the_sampler_leaves_it_open(case: str, tmp_path: Path) -> None:
    body, named = _IN_RUNNER[case]
    files = mini.files(inputs.LINEAR["cursor_by_one"])
    stock = files[_RUNNERS[0]]
    decided = "        return self.rejection_sampler(metadata, logits)\n"
    added = "".join(f"        {line}\n" for line in body.strip().splitlines())
    runner = stock.replace(decided, added + decided) + _COMPARE

    report = reports.inspect(
        overlay.mini_install(tmp_path, files | dict.fromkeys(_RUNNERS, runner))
    )

    _assert_open(report, named, *_RUNNERS)


@pytest.mark.parametrize("module", ["chosen_by_environment", "opaque_op"])
def test_beside_the_stock_chain_of_a_real_release(module: str, tmp_path: Path) -> None:
    base = wheels.python_tree(reports.requirement("0.32.0"))
    place = engines.in_release(base, tmp_path, inputs.UNCLEAR[module], _ACCEPT, keep=True)

    report = reports.inspect(place)

    _assert_open(report, "verify", *engines.verifiers())


def test_before_the_stock_sampler_of_a_real_release(tmp_path: Path) -> None:
    base = wheels.python_tree(reports.requirement("0.32.0"))
    place = engines.in_runner(base, tmp_path, inputs.UNCLEAR["opaque_op"], _ACCEPT)

    report = reports.inspect(place)

    _assert_open(report, "reorder", *_RUNNERS)


def _module(body: str) -> str:
    return _CHAIN + "".join(f"    {line}\n" for line in body.strip().splitlines())


def _assert_open(report: Report, named: str, *files: str) -> None:
    assert report.verdict is Verdict.UNKNOWN
    for path in (EnginePath.V1, EnginePath.V2):
        found = reports.by_path(report)[path].stages[Stage.VERIFICATION]
        assert found.verdict is StageVerdict.UNKNOWN, path
        assert named in found.reason
        assert any(f" at {file}:" in found.reason for file in files), found.reason
