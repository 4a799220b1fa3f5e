"""What a verification concludes from events: every claim can fail, and says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches.errors import FarSideError
from ddtree.patches.status import State, Status
from ddtree.patches.verify import conclude
from ddtree.patches.verify.evidence import Evidence
from ddtree.patches.verify.fields import Fields
from ddtree.patches.verify.judge.cost import sign_test
from ddtree.patches.verify.judge.tokens import Divergence, Rule
from ddtree.patches.verify.options import Options
from ddtree.patches.verify.precondition import Ready
from ddtree.patches.verify.report import Level, Outcome, Pays, Report, Verdict

from . import scripted
from .scripted import STRETCHES, TOKENS, good, pass_

Events = list[dict[str, Any]]


def ready(**changes: Any) -> Ready:
    known: dict[str, Any] = {
        "target": "/env", "location": "/env/site", "version": "0.32.0", "state": State.APPLIED,
        "sentence": "Patched.", "plan_id": "abc", "recipe": "v1", "files": {}, "runtime": (),
        "foreign": (), **changes,
    }  # fmt: skip
    return Ready("/env", Path("/env/bin/python"), Path("/env/site"), Status(**known), ())


def judged(events: Events, options: Options | None = None, **changes: Any) -> Report:
    options = options or Options()
    evidence = Evidence()
    for event in events:
        evidence.add(event["kind"], Fields(event))
    job = options.job([])
    return conclude.report(options, ready(**changes), job, evidence, ("last words",), 61.25)


def level(report: Report, name: str) -> Level:
    return next(one for one in report.levels if one.level == name)


def outcome(report: Report, name: str, check: str) -> Outcome:
    return next(one.outcome for one in level(report, name).checks if one.name == check)


def changed(change: Callable[[dict[str, Any]], dict[str, Any] | None], events: Events) -> Events:
    """The events, each as `change` makes it; None drops it."""
    return [made for event in events if (made := change(event)) is not None]


def of(kind: str, name: str | None = None, **fields: Any) -> Callable[[dict[str, Any]], Any]:
    """A change of the events of a kind, and of a name where it is given."""

    def change(event: dict[str, Any]) -> dict[str, Any]:
        mine = event["kind"] == kind and name in (None, event.get("name"), event.get("engine"))
        return {**event, **fields} if mine else event

    return change


def test_all_is_well() -> None:
    """Every level passes, and the sentence says that a tree of 7 pays and one of 32 does not."""
    report = judged(good())
    assert report.verdict == Verdict.PASSED
    assert {one.outcome for one in report.levels} == {Outcome.PASSED}
    assert {check.outcome for one in report.levels for check in one.checks} == {Outcome.PASSED}
    assert report.pays == Pays.YES
    assert report.sentence.startswith(
        "A tree pays here: the best of 2 budgets, 7, gives 1.25 times the tokens per second of the "
        "same drafter's chain (12 of 12 stretches faster, p = 0.00049) with the tiny model"
    )
    assert report.sentence.endswith("not measured on a GPU or a model of a useful size.")
    assert report.log == ()
    assert report.seconds == 61.2
    lengths = {one.name: one.acceptance_length for one in report.engines}
    assert lengths["chain"] == pytest.approx(1.25)
    assert lengths["tree 7"] == pytest.approx(1 + 40 / 60)
    saved = {one.name: one.steps_saved for one in report.costs}
    assert saved == {"width 1": 0.0, "tree 7": pytest.approx(0.25), "tree 32": pytest.approx(0.25)}


UNIT = {"name": "walk", "passed": True, "detail": "12 cases"}
NO_COUNTERS = {"branches": 0, "acceptance_length_chain": 1, "fallbacks": {}}
FAILURES: dict[str, tuple[Callable[[dict[str, Any]], Any], str, str]] = {
    "a unit": (of("checks", checks=[{**UNIT, "passed": False}]), "L1", "walk"),
    "logits": (of("nodes", worst=0.5), "L3", "logits"),
    "blind logits": (of("nodes", worst=1e-6), "L3", "without mask"),
    "no trees": (of("nodes", trees=0), "L3", "logits"),
    "width 1 accepts more": (
        of("engine", "width 1", stretches=[scripted.stretch(1, 80, 21)] * STRETCHES),
        "L4",
        "acceptance",
    ),
    "width 1 has branches": (
        of("engine", "width 1", counters={**NO_COUNTERS, "branches": 1}),
        "L4",
        "drafts",
    ),
    "the chain accepts nothing": (
        of("engine", "chain", stretches=[scripted.stretch(1, 80, 0)] * STRETCHES),
        "L4",
        "drafts",
    ),
    "width 1 says something else": (
        of("pass", "width 1", tokens=scripted.wrong(TOKENS)),
        "L4",
        "tokens",
    ),
    "an oracle's pass": (of("pass", "oracle", tokens=scripted.wrong(TOKENS)), "L5", "oracle"),
    "a tree's pass": (of("pass", "tree 7", tokens=scripted.wrong(TOKENS)), "L5", "tree 7"),
    "too many tokens": (
        of("pass", "tree 7", tokens=[[*one, 1] for one in TOKENS]),
        "L5",
        "tree 7",
    ),
    "no tokens": (of("pass", "tree 7", tokens=[[], []]), "L5", "tree 7"),
    "too many requests": (of("pass", "tree 7", tokens=[*TOKENS, TOKENS[0]]), "L5", "tree 7"),
    "speculation is not needed for it": (
        of("pass", "plain", tokens=scripted.wrong(TOKENS)),
        "L5",
        "no speculation",
    ),
    "no branches": (
        of("engine", "tree 7", counters={**NO_COUNTERS, "branches": 0}),
        "L5",
        "branches of tree 7",
    ),
    "a tree-free request goes wrong": (
        of("pass", "no drafts", tokens=scripted.wrong(TOKENS)),
        "L5",
        "tree-free requests",
    ),
    "tree-free requests that had trees": (
        of("engine", "oracle", counters={**NO_COUNTERS, "branches": 3}),
        "L5",
        "tree-free requests",
    ),
    **{
        f"{part} is not missed": (
            of("pass", f"without {part}", tokens=[*TOKENS, TOKENS[-1]]),
            "L5",
            f"without {part}",
        )
        for part in ("mask", "positions", "commit")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_everything_that_can_go_wrong_fails_its_level(name: str) -> None:
    """And the whole, and the sentence does not praise trees whose output is wrong."""
    change, wanted, check = FAILURES[name]
    report = judged(changed(change, good()))
    assert level(report, wanted).outcome == Outcome.FAILED
    assert level(report, wanted).reason
    assert outcome(report, wanted, check) == Outcome.FAILED
    assert report.verdict == Verdict.FAILED
    assert report.log == ("last words",)
    words = ("pass", "too many", "no tokens", "goes wrong", "something else")
    wrong = any(tokens in name for tokens in words)
    assert ("not greedy decoding" in report.sentence) == wrong
    assert wrong is False or report.pays == Pays.NO


def test_controls_that_were_not_tried_fail() -> None:
    """Without them, a comparison proves nothing."""
    report = judged(changed(lambda event: None if event.get("without") else event, good()))
    assert outcome(report, "L5", "without mask") == Outcome.FAILED
    assert report.verdict == Verdict.FAILED


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (of("engine", cached=0), "blocks that trees wrote"),
        (of("engine", mixed=0), "chunked prefill"),
        (of("engine", block=4096), "block boundaries"),
        (of("engine", preemptions=None), "preemption"),
    ],
)
def test_what_was_not_covered_is_said_and_fails_nothing(change: Any, check: str) -> None:
    """A short prompt is no mistake."""
    report = judged(changed(change, good()))
    assert outcome(report, "L5", check) == Outcome.NOT_RUN
    assert report.verdict == Verdict.PASSED


def parted(dtype: str, lead: float, *engines: str) -> Events:
    """The events, in this type, with these engines leaving greedy decoding at this lead."""

    def change(event: dict[str, Any]) -> dict[str, Any]:
        if event["kind"] == "truth":
            return scripted.truth(dtype, lead)
        mine = event["kind"] == "pass" and event["engine"] in engines and not event["without"]
        return {**event, "tokens": scripted.wrong(event["tokens"])} if mine else event

    return changed(change, good())


def test_float32_has_no_near_ties() -> None:
    """The smallest lead is no excuse."""
    report = judged(parted("float32", 1e-9, "tree 7"))
    assert outcome(report, "L5", "tree 7") == Outcome.FAILED
    assert report.rule == "In float32, every token has to be that of greedy decoding."


def test_near_ties_in_other_types() -> None:
    """Four units in the last place of the best logit, which is 8 here; the rule says so."""
    near, wide = (judged(parted("bfloat16", lead, "tree 7")) for lead in (0.24, 0.26))
    assert outcome(near, "L5", "tree 7") == Outcome.PASSED
    assert outcome(wide, "L5", "tree 7") == Outcome.FAILED
    assert "near ties, the widest lead 0.24" in next(
        one.detail for one in level(near, "L5").checks if one.name == "tree 7"
    )
    assert "4 units in the last place of bfloat16 (3.1%)" in near.rule
    assert "the stock chain did not diverge" in near.rule


def test_a_divergence_that_the_stock_chain_shares_is_excused() -> None:
    """What vLLM's own chain does on the same prompts is no fault of trees."""
    report = judged(parted("bfloat16", 0.5, "tree 7", "chain"))
    assert outcome(report, "L5", "tree 7") == Outcome.PASSED
    assert "or 0.5, the widest at which the stock chain diverged" in report.rule


def test_controls_have_to_be_wider_than_near_ties() -> None:
    """In bfloat16 a control whose mistakes are all near ties shows nothing."""
    report = judged(parted("bfloat16", 0.1))
    assert outcome(report, "L5", "without mask") == Outcome.FAILED


@pytest.mark.parametrize(("dtype", "tie"), [("bfloat16", True), ("float16", False)])
def test_a_unit_depends_on_the_type(dtype: str, tie: bool) -> None:
    """float16 has three bits more."""
    one = Divergence("tree 7", "whole", 0, False, 3, 0.2, 8.0)
    assert Rule(dtype, 0.0).is_tie(one) is tie


def failed(part: str) -> dict[str, Any]:
    return {"kind": "failed", "part": part, "reason": "ValueError: ddtree: a sliding window"}


def without(*names: str) -> Events:
    return [event for event in good() if event.get("engine", event.get("name")) not in names]


def test_an_engine_that_does_not_start_fails_its_levels() -> None:
    """With the reason that the engine gave."""
    report = judged([*without("tree 7"), failed("tree 7")])
    assert level(report, "L5").reason == "ValueError: ddtree: a sliding window"
    report = judged([*without("width 1"), failed("width 1")])
    assert level(report, "L4").reason == "ValueError: ddtree: a sliding window"
    events = [event for event in without("oracle") if event["kind"] != "nodes"]
    report = judged([*events, failed("oracle")])
    assert level(report, "L3").outcome == level(report, "L5").outcome == Outcome.FAILED


def test_a_stock_chain_that_does_not_run_is_no_failure_of_trees() -> None:
    """But nothing can be compared with it, nor be said about cost."""
    report = judged([*without("chain"), failed("chain")])
    assert level(report, "L4").outcome == Outcome.NOT_RUN
    assert report.verdict == Verdict.INCOMPLETE
    assert report.pays == Pays.NOT_MEASURED
    assert "the stock chain does not run (ValueError" in report.sentence


def test_a_process_that_dies_fails_what_it_should_have_said() -> None:
    """Its passes until then are worth nothing."""
    dead = {"kind": "failed", "part": "engines", "reason": "the process ended with -11"}
    report = judged([*good()[:12], dead])
    assert {level(report, name).reason for name in ("L3", "L4", "L5")} == {dead["reason"]}
    assert level(report, "L1").outcome == Outcome.PASSED


def test_n_gram_trees_have_no_width() -> None:
    """So the level is not run, and the verdict is not "passed"."""
    report = judged(good(), Options(model="m", method="ngram"))
    assert "no width" in level(report, "L4").reason
    assert report.verdict == Verdict.INCOMPLETE


def test_what_was_not_asked_for_is_never_passed() -> None:
    """L1 alone passes as far as it went, and says nothing about cost."""
    events = [scripted.checks("L1", "walk"), scripted.facts(), scripted.checks("imports", "a")]
    report = judged(events, Options(levels=("L1",)))
    assert report.verdict == Verdict.INCOMPLETE
    assert [one.outcome for one in report.levels] == [Outcome.PASSED, *[Outcome.NOT_RUN] * 4]
    assert report.sentence == "Whether a tree pays was not measured: L5 was not run."


def test_a_module_that_does_not_import_fails_everything_that_needs_it() -> None:
    """Engines are not even tried."""
    events = [scripted.checks("L1", "walk"), scripted.checks("L2", "walk"), scripted.facts()]
    report = judged([*events, scripted.checks("imports", "vllm.config.vllm", passed=False)])
    assert report.verdict == Verdict.FAILED
    assert {level(report, name).outcome for name in ("L3", "L4", "L5")} == {Outcome.NOT_RUN}


def test_a_vllm_that_serves_nothing_is_an_error() -> None:
    """Nothing can be said about trees then."""
    events = [scripted.facts(), scripted.checks("imports", "vllm.config.vllm")]
    with pytest.raises(FarSideError, match="gave nothing without speculation: ValueError"):
        judged([*events, failed("plain")])
    with pytest.raises(FarSideError, match="could not be asked what is installed: ValueError"):
        judged([failed("imports")])


def test_another_vllm_is_a_conflict() -> None:
    """The interpreter imports from elsewhere than where the patch is."""
    with pytest.raises(ConflictError, match="imports vLLM from /other, not from /env/site"):
        judged(changed(of("facts", location="/other"), good()))


def slower(seconds: float) -> Callable[[dict[str, Any]], Any]:
    return lambda event: (
        {**event, "stretches": [scripted.stretch(seconds, 60, 40)] * STRETCHES}
        if event.get("role") == "tree"
        else event
    )


def test_a_tree_that_does_not_pay() -> None:
    """The report says no."""
    report = judged(changed(slower(2.0), good()))
    assert report.pays == Pays.NO
    assert report.sentence.startswith("A tree does not pay here: the best of 2 budgets")
    assert "0.50 times" in report.sentence
    assert report.verdict == Verdict.PASSED


def test_a_difference_that_may_be_chance() -> None:
    """Half of the stretches faster, half slower."""

    def change(event: dict[str, Any]) -> dict[str, Any]:
        parts = [scripted.stretch(0.9 + 0.2 * (number % 2), 60, 40) for number in range(STRETCHES)]
        return {**event, "stretches": parts} if event.get("role") == "tree" else event

    report = judged(changed(change, good()))
    assert report.pays == Pays.UNDECIDED
    assert report.sentence.startswith("Whether a tree pays here is undecided")


def test_too_few_pairs_are_no_measurement() -> None:
    """Nine are not ten."""
    few = of("engine", "chain", stretches=[scripted.stretch(1, 80, 20)] * 9)
    report = judged(changed(few, good()), Options(levels=("L5",)))
    assert report.costs == ()
    assert report.pays == Pays.NOT_MEASURED


def test_eager_on_a_gpu_is_no_measurement() -> None:
    """Its launch gaps hide what a tree costs; without it the GPU's name is in the sentence."""
    gpu = of("facts", cuda=True, device="H200")
    report = judged(changed(gpu, good()))
    assert (report.pays, "enforce_eager" in report.sentence) == (Pays.NOT_MEASURED, True)
    report = judged(changed(of("engine", eager=False), changed(gpu, good())))
    assert report.pays == Pays.YES
    assert report.sentence.endswith("on H200; not measured on a model of a useful size.")


def test_an_outdated_or_foreign_install_is_noted() -> None:
    """What was verified is what is installed."""
    report = judged(good(), outdated=True, foreign=("vllm/a.py",))
    assert len(report.notes) == 2


@pytest.mark.parametrize("pairs", [1, 2, 10, 12, 101])
def test_the_sign_test_is_the_binomial_test(pairs: int) -> None:
    """Two-sided, against a library's."""
    for first in range(pairs + 1):
        assert sign_test(first, pairs) == pytest.approx(binomtest(first, pairs).pvalue)
    assert sign_test(0, 0) == 1.0


def test_passes_of_other_engines_do_not_count() -> None:
    """A pass belongs to the engine that it names."""
    report = judged([*good(), pass_("tree 99", "whole", tokens=scripted.wrong(TOKENS))])
    assert report.verdict == Verdict.PASSED
