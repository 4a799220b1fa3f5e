"""Controls that prove nothing fail, and are not taken for output that is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from ddtree.cli.render.verify.phrases import headline
from ddtree.patches.verify.report import Pays, Verdict

from . import scripted
from .scripted import STRETCHES, good
from .test_judge import FAILURES, NO_COUNTERS, changed, judged, level, of

BARE = {**NO_COUNTERS, "fallbacks": {"frequency penalty": 9}}


def idle(event: dict[str, Any]) -> dict[str, Any]:
    """A drafter of which nothing is accepted, one by one or in a row."""
    none = [scripted.stretch(1, 80, 0)] * STRETCHES
    return {**event, "stretches": none} if event.get("role") in ("chain", "width1") else event


@pytest.mark.parametrize(
    ("change", "wanted", "check"),
    [
        (of("engine", "tree 7", counters=BARE), "L5", "branches of tree 7"),
        (idle, "L4", "drafts"),
        FAILURES["blind logits"],
        FAILURES["mask is not missed"],
    ],
)
def test_what_proves_nothing_is_not_called_wrong(change: Any, wanted: str, check: str) -> None:
    """It fails, asks for other prompts, and leaves cost to what was measured."""
    report = judged(changed(change, good()))
    assert level(report, wanted).proved_nothing
    found = next(one for one in level(report, wanted).checks if one.name == check)
    assert found.vacuous
    assert "nothing" in found.detail
    assert report.verdict == Verdict.FAILED
    said = headline(report)
    assert "proved nothing" in said
    assert "more prompts or longer ones" in said
    assert "do not serve" not in said
    assert report.pays == Pays.YES
    assert report.sentence.startswith("A tree pays here")


def test_the_detail_of_an_empty_control_reads_as_a_failure() -> None:
    """How many requests went wrong, and what follows from it."""
    change, _, check = FAILURES["mask is not missed"]
    report = judged(changed(change, good()))
    assert level(report, "L5").reason == (
        f"{check}: only 0 of 2 requests go wrong, so this proves nothing"
    )


def test_what_is_wrong_comes_before_what_proves_nothing() -> None:
    """And then the level is wrong, not empty."""
    events = changed(FAILURES["mask is not missed"][0], good())
    report = judged(changed(FAILURES["a tree's pass"][0], events))
    assert not level(report, "L5").proved_nothing
    assert "are not greedy" in level(report, "L5").reason
    assert headline(report).endswith("do not serve with this patch")
    assert (report.pays, "not greedy decoding" in report.sentence) == (Pays.NO, True)
