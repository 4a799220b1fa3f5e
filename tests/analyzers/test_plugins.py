"""What a plug-in replaces when it starts is part of the engine, however it goes about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree.analyzers.result import EnginePath, Report, Stage, StageVerdict, Verdict
from tests import wheels
from tests.analyzers import inputs, mini, overlay, plugins, reports

_STOCK = inputs.LINEAR["product_along_positions"]
_GENERAL = "vllm.general_plugins"
# What a replaced verifier may do: nothing tells what, a tree walk, a chain.
_UNKNOWN = """
import outside


def accept(parents, tokens, target):
    return outside.decide(parents, tokens, target)
"""
_ACCEPTS = {
    "unknown": (_UNKNOWN, Verdict.UNKNOWN),
    "walk": (plugins.WALK, Verdict.TREE),
    "chain": (plugins.CHAIN, Verdict.LINEAR),
}
# Ways of putting `_forward` into the place of the stock sampler's method.
_STYLES = {
    "by a helper": {
        "walker/__init__.py": plugins.FORWARD
        + """
def put(cls, name, function):
    setattr(cls, name, function)


def register():
    from vllm.v1.sample.rejection_sampler import RejectionSampler

    put(RejectionSampler, "forward", _forward)
"""
    },
    "from a list": {
        "walker/__init__.py": plugins.FORWARD
        + """
def register():
    import vllm.v1.sample.rejection_sampler as stock

    for cls, name, function in ((stock.RejectionSampler, "forward", _forward),):
        setattr(cls, name, function)
"""
    },
    "from a table": {
        "walker/__init__.py": plugins.FORWARD
        + """
TABLE = {"forward": _forward}


def register():
    import vllm.v1.sample.rejection_sampler as stock

    for name, function in TABLE.items():
        setattr(stock.RejectionSampler, name, function)
"""
    },
    "when a module is imported": {
        "walker/__init__.py": "def register():\n    import walker.patches\n",
        "walker/patches.py": "import vllm.v1.sample.rejection_sampler\n"
        + plugins.FORWARD
        + "vllm.v1.sample.rejection_sampler.RejectionSampler.forward = _forward\n",
    },
    "by a decorator": {
        "walker/__init__.py": "def register():\n    from walker import patches\n",
        "walker/patches.py": """
from vllm.v1.sample.rejection_sampler import RejectionSampler
from walker.accept import accept


def put(cls, name):
    def decorate(function):
        setattr(cls, name, function)
        return function

    return decorate


@put(RejectionSampler, "forward")
def _forward(self, metadata, logits, *rest):
    return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))
""",
    },
    "through importlib": {
        "walker/__init__.py": plugins.FORWARD
        + """
import importlib


def register():
    stock = importlib.import_module("vllm.v1.sample.rejection_sampler")
    stock.RejectionSampler.forward = _forward
"""
    },
    "through getattr": {
        "walker/__init__.py": plugins.FORWARD
        + """
import importlib

PLACES = [("vllm.v1.sample.rejection_sampler", "RejectionSampler", "forward", _forward)]


def register():
    for module, cls, name, function in PLACES:
        setattr(getattr(importlib.import_module(module), cls), name, function)
"""
    },
    "through sys.modules": {
        "walker/__init__.py": plugins.FORWARD
        + """
import sys


def register():
    stock = sys.modules["vllm.v1.sample.rejection_sampler"]
    stock.RejectionSampler.forward = _forward
"""
    },
    "around the stock one": {
        "walker/__init__.py": """
from walker.accept import accept


def make(stock):
    def forward(self, metadata, logits, *rest):
        if metadata is None:
            return stock(self, metadata, logits, *rest)
        return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))

    return forward


def register():
    from vllm.v1.sample.rejection_sampler import RejectionSampler

    RejectionSampler.forward = make(RejectionSampler.forward)
"""
    },
    "by an object": {
        "walker/__init__.py": "def register():\n    from walker import patches\n\n"
        "    patches.Patcher().apply()\n",
        "walker/patches.py": plugins.FORWARD
        + """
class Patcher:
    def apply(self):
        from vllm.v1.sample.rejection_sampler import RejectionSampler

        RejectionSampler.forward = _forward
""",
    },
    "by a class of its own": {
        "walker/__init__.py": """
from walker.accept import accept


def register():
    from vllm.v1.worker import gpu_model_runner

    class Walking(gpu_model_runner.RejectionSampler):
        def forward(self, metadata, logits, *rest):
            return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))

    gpu_model_runner.RejectionSampler = Walking
"""
    },
    "by a function of the module": {
        "walker/__init__.py": """
def register():
    import vllm.v1.sample.rejection_sampler as stock
    from walker.accept import accept

    def verify(tokens, target):
        return accept(None, tokens, target)

    stock.verify = verify
"""
    },
}
_PLATFORM = """
from vllm.platforms.cuda import CudaPlatform


class WalkingPlatform(CudaPlatform):
    worker_cls = WORKER
"""
_REGISTER = 'def register():\n    return "walker.platform.WalkingPlatform"\n'


@pytest.mark.parametrize("accept", _ACCEPTS)
@pytest.mark.parametrize("style", _STYLES)
def test_a_replaced_verifier_decides(style: str, accept: str, tmp_path: Path) -> None:
    module, verdict = _ACCEPTS[accept]
    files = plugins.plugin(_GENERAL, _STYLES[style], module)

    report = reports.inspect(mini.install(tmp_path, _STOCK, files))

    found = reports.by_path(report)[EnginePath.V1]
    assert found.verdict is verdict
    if verdict is Verdict.UNKNOWN:
        assert "walker/" in found.stages[Stage.VERIFICATION].reason


@pytest.mark.parametrize("style", plugins.REPLACING)
def test_a_verifier_that_no_rule_knows_is_never_linear(style: str, tmp_path: Path) -> None:
    files = plugins.plugin(*plugins.REPLACING[style], _UNKNOWN)

    report = reports.inspect(mini.install(tmp_path, _STOCK, files))

    found = reports.by_path(report)[EnginePath.V1].stages[Stage.VERIFICATION]
    assert report.verdict is Verdict.UNKNOWN
    assert "walker/" in found.reason


@pytest.mark.parametrize("kind", plugins.UNREADABLE)
def test_what_cannot_be_read_leaves_the_verdict_open(kind: str, tmp_path: Path) -> None:
    files = plugins.plugin(_GENERAL, plugins.UNREADABLE[kind], plugins.WALK)

    report = reports.inspect(mini.install(tmp_path, _STOCK, files))

    found = reports.by_path(report)[EnginePath.V1].stages[Stage.VERIFICATION]
    assert found.verdict is StageVerdict.UNKNOWN
    assert "walker/__init__.py:" in found.reason


@pytest.mark.parametrize("kind", plugins.HARMLESS)
def test_a_plugin_that_replaces_nothing_leaves_the_chain(kind: str, tmp_path: Path) -> None:
    files = plugins.plugin(*plugins.HARMLESS[kind], _UNKNOWN)

    report = reports.inspect(mini.install(tmp_path, _STOCK, files))

    assert report.verdict is Verdict.LINEAR


def test_a_replaced_function_of_a_real_release(tmp_path: Path) -> None:
    start = """
import vllm.v1.sample.rejection_sampler as stock
from walker.accept import accept


def _decide(draft_token_ids, num_draft_tokens, *rest):
    return accept(num_draft_tokens, draft_token_ids, rest[3])


def register():
    stock.rejection_sample = _decide
"""
    base = wheels.python_tree(reports.requirement("0.32.0"))
    for name, verdict in (("unknown", Verdict.UNKNOWN), ("walk", Verdict.TREE)):
        files = plugins.plugin(_GENERAL, {"walker/__init__.py": start}, _ACCEPTS[name][0])
        found = reports.by_path(reports.inspect(overlay.overlay(base, tmp_path / name, files)))
        assert found[EnginePath.V1].verdict is verdict
        assert found[EnginePath.V2].verdict is Verdict.LINEAR


def test_the_runner_of_a_platform_in_a_module_of_its_own(tmp_path: Path) -> None:
    modules = {
        "walker/__init__.py": _REGISTER,
        "walker/platform.py": _PLATFORM.replace("WORKER", '"walker.worker.WalkingWorker"'),
        "walker/worker.py": plugins.REPLACING["platform"][1]["walker/worker.py"],
    }
    for name, verdict in (("unknown", Verdict.UNKNOWN), ("walk", Verdict.TREE)):
        report = _with_platform(tmp_path / name, modules, _ACCEPTS[name][0])
        assert reports.by_path(report)[EnginePath.V1].verdict is verdict


def test_a_platform_whose_runner_is_not_there_has_no_known_default(tmp_path: Path) -> None:
    modules = {
        "walker/__init__.py": _REGISTER,
        "walker/platform.py": _PLATFORM.replace("WORKER", '"walker.gone.WalkingWorker"'),
    }

    report = _with_platform(tmp_path, modules, plugins.WALK)

    assert {result.default for result in report.paths} == {None}
    assert any("walker.gone.WalkingWorker" in note and "not read" in note for note in report.notes)


def test_a_built_in_platform_s_runner_counts_as_well(tmp_path: Path) -> None:
    runner = plugins.REPLACING["platform"][1]["walker/worker.py"]
    files = mini.files(_STOCK) | {
        "vllm/platforms/own.py": 'WORKER = "vllm.v1.worker.own_worker.WalkingWorker"\n',
        "vllm/v1/worker/own_worker.py": runner.replace("walker.accept", "vllm.v1.sample.walk"),
    }
    for name, verdict in (("unknown", Verdict.UNKNOWN), ("walk", Verdict.TREE)):
        walk = {"vllm/v1/sample/walk.py": _ACCEPTS[name][0]}
        report = reports.inspect(overlay.mini_install(tmp_path / name, files | walk))
        assert reports.by_path(report)[EnginePath.V1].verdict is verdict


def test_hooks_that_this_vllm_lacks_are_named(tmp_path: Path) -> None:
    start = """
from vllm.v1.spec_decode.trees import TreeHooks
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from walker.accept import accept


def _walk(self, metadata, logits):
    return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))


def register():
    TreeHooks.walk = _walk
    GPUModelRunner.walk_tree = _walk
"""
    files = plugins.plugin(_GENERAL, {"walker/__init__.py": start}, plugins.WALK)

    report = reports.inspect(mini.install(tmp_path, _STOCK, files))

    (note,) = [note for note in report.notes if "brings tree verification" in note]
    assert "walker/accept.py" in note
    assert "vllm.v1.spec_decode.trees.TreeHooks" in note
    assert "GPUModelRunner.walk_tree" in note
    assert report.verdict is not Verdict.TREE


def _with_platform(root: Path, modules: dict[str, str], accept: str) -> Report:
    files = plugins.plugin("vllm.platform_plugins", modules, accept)
    return reports.inspect(mini.install(root, _STOCK, files))
