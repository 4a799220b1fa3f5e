"""What a verification says of the model runner that its engines worked with."""

from __future__ import annotations

import pytest

from ddtree.patches.errors import FarSideError, Unserved
from ddtree.patches.verify.harness import plan
from ddtree.patches.verify.options import Options
from ddtree.patches.verify.report import Pays, Verdict

from . import scripted
from .scripted import good
from .test_judge import judged


def test_a_v2_runner_without_triton_is_an_error_that_names_the_other() -> None:
    """Nothing that could be done to the patch helps."""
    events = [scripted.facts(), scripted.checks("imports", "vllm.config.vllm")]
    reason = f"RuntimeError: {plan.NO_TRITON} (No module named 'triton')"
    with pytest.raises(FarSideError, match="needs Triton, which cannot be imported") as caught:
        judged([*events, {"kind": "failed", "part": "engines", "reason": reason}])
    assert caught.value.hint.endswith("--runner v1")
    unknown = {"kind": "failed", "part": "imports", "reason": "ValueError: no such model"}
    with pytest.raises(Unserved, match="no such model"):
        judged([*events, unknown], Options(model="m", drafter="d"))


def test_the_report_names_the_runner_of_the_engines() -> None:
    """What vLLM took, unless it was asked for; nothing where no engine ran."""
    subject = judged(good()).subject
    assert (subject.runner, subject.runner_asked, subject.interpreted) == ("v1", False, False)
    v2 = [scripted.runner("v2") if event["kind"] == "runner" else event for event in good()]
    subject = judged(v2, Options(runner="v2")).subject
    assert (subject.runner, subject.runner_asked) == ("v2", True)
    none = [scripted.checks("L1", "walk"), scripted.facts(), scripted.checks("imports", "a")]
    assert judged(none, Options(levels=("L1",))).subject.runner is None


def test_the_interpreter_measures_nothing() -> None:
    """Levels are judged as always; whether a tree pays is not said."""
    told = scripted.runner("v2", interpreted=True)
    events = [told if event["kind"] == "runner" else event for event in good()]
    report = judged(events)
    assert report.verdict == Verdict.PASSED
    assert report.pays == Pays.NOT_MEASURED
    assert "Triton's interpreter" in report.sentence
