"""Plug-ins that others published, beside a real release: none of them is misread.

What each does was read in its own code: which of them replaces the verifier, brings a runner, or
takes over imports. `unknown` is right wherever nothing can be proved from what is there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree.analyzers.result import EnginePath, Stage, Verdict
from tests import wheels
from tests.analyzers import overlay, reports
from tests.renamer import link

pytestmark = pytest.mark.extended

_LINEAR, _UNKNOWN = Verdict.LINEAR, Verdict.UNKNOWN
# The verdicts on the V1 and the V2 runner.
_TRUTH = {
    # Registers models.
    "ablated-vllm-plugin==0.0.1": (_LINEAR, _LINEAR),
    # Registers a method in a registry that this release does not have.
    "eagle-harness==0.1.3": (_LINEAR, _LINEAR),
    # Puts a chain of its own before the stock one.
    "flash-head==0.1.10": (_LINEAR, _LINEAR),
    # Wraps loading and running of models.
    "hotwire-vllm==0.1.2": (_LINEAR, _LINEAR),
    # A platform whose runner derives from the CPU's and verifies as it does.
    "pace-vllm==1.3.0": (_LINEAR, _LINEAR),
    # Platforms with runners of their own, in which nothing is verified.
    "sendnn-inference==2.6.3": (_UNKNOWN, _LINEAR),
    "vllm-spyre==1.10.0": (_UNKNOWN, _LINEAR),
    "vllm-rbln==0.12.0": (_UNKNOWN, _LINEAR),
    # Rewrites what the scheduler and the cache do.
    "vllm-beam-search-plugin==0.1.5": (_LINEAR, _LINEAR),
    # Replaces parts of the server.
    "vllm-hi==0.1.0": (_LINEAR, _LINEAR),
    # Replaces `sample_tokens` by functions that it makes at run time.
    "vllm-hust-vspec==0.14.3": (_UNKNOWN, _LINEAR),
    # Takes over Python's imports.
    "vllm-kunlun==0.11.1": (_UNKNOWN, _UNKNOWN),
    # A platform that starts the stock worker.
    "vllm-musa==0.1.1": (_LINEAR, _LINEAR),
}


@pytest.mark.parametrize("plugin", _TRUTH)
def test_a_published_plugin_beside_a_real_release(plugin: str, tmp_path: Path) -> None:
    place = overlay.overlay(wheels.python_tree(reports.requirement("0.32.0")), tmp_path)
    brought = wheels.python_tree(plugin, keep_wheel=False)
    for file in brought.rglob("*"):
        if file.is_file():
            target = place / file.relative_to(brought)
            target.parent.mkdir(parents=True, exist_ok=True)
            link(str(file), str(target))

    report = reports.inspect(place)

    found = reports.by_path(report)
    assert (found[EnginePath.V1].verdict, found[EnginePath.V2].verdict) == _TRUTH[plugin]
    for result in report.paths:
        if result.verdict is _UNKNOWN:
            assert ".py:" in result.stages[Stage.VERIFICATION].reason
    names = {one.name for one in report.install.plugins}
    assert len(names) > len({"lora_filesystem_resolver", "lora_hf_hub_resolver"})


def test_a_published_tree_verifier_is_named_with_the_hooks_that_it_needs(tmp_path: Path) -> None:
    plugin = "eagle-harness==0.1.3"
    place = overlay.overlay(wheels.python_tree(reports.requirement("0.32.0")), tmp_path)
    brought = wheels.python_tree(plugin, keep_wheel=False)
    for file in brought.rglob("*"):
        if file.is_file():
            overlay.write(place, str(file.relative_to(brought)), file.read_text("utf-8"))

    report = reports.inspect(place)

    (note,) = [note for note in report.notes if "brings tree verification" in note]
    assert "tree_accept.py" in note
    assert "register_speculative_method" in note
