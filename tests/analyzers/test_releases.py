"""The ground truth on eight real releases, from their wheels: what they do, and where it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from ddtree.analyzers.result import EnginePath, Stage, StageVerdict, Verdict
from tests import wheels
from tests.analyzers import reports
from tests.analyzers.reports import RELEASES

V0, V1, V2 = EnginePath.V0, EnginePath.V1, EnginePath.V2
_V1_FILE = "vllm/v1/sample/rejection_sampler.py"
_V2_FOLDER = "vllm/v1/worker/gpu/spec_decode"
_UTILS = f"{_V2_FOLDER}/rejection_sampler_utils.py"


@dataclass(frozen=True)
class Loop:
    """The lines of a function's `def` and of what makes it linear."""

    path: EnginePath
    file: str
    head: int
    line: int


@dataclass(frozen=True)
class Truth:
    """What is known of one release; `default` holds the answers that do not contradict the code."""

    v1: tuple[int, int, int, int]
    v2: tuple[tuple[str, int, int], ...] = ()
    v0: tuple[tuple[str, int, int], ...] = ()
    tree_drafts: bool = False
    default: dict[EnginePath, set[bool | None]] = field(default_factory=dict)
    rejection: frozenset[str] = frozenset()

    def loops(self) -> Iterator[Loop]:
        yield Loop(V1, _V1_FILE, *self.v1[:2])
        yield Loop(V1, _V1_FILE, *self.v1[2:])
        for path, places in ((V2, self.v2), (V0, self.v0)):
            for place in places:
                yield Loop(path, *place)

    def paths(self) -> set[EnginePath]:
        return {loop.path for loop in self.loops()}


_OPT_IN: dict[EnginePath, set[bool | None]] = {V1: {True}, V2: {False}}
_BY_MODEL: dict[EnginePath, set[bool | None]] = {V1: {None}, V2: {None}}
_MOSTLY_V2: dict[EnginePath, set[bool | None]] = {V1: {False, None}, V2: {True, None}}
_STANDARD = frozenset({"standard", "synthetic"})
_WITH_BLOCK = _STANDARD | {"block"}

TRUTH = {
    "0.8.5": Truth(
        (433, 461, 481, 509),
        v0=(("vllm/model_executor/layers/spec_decode_base_sampler.py", 73, 101),),
        default={V1: {True, None}, V0: {False, None}},
        rejection=frozenset({"rejection_sampler", "typical_acceptance_sampler"}),
    ),
    "0.11.0": Truth((438, 466, 486, 514), tree_drafts=True, default={V1: {True}}),
    "0.14.1": Truth(
        (642, 664, 687, 712),
        v2=((f"{_V2_FOLDER}/rejection_sample.py", 9, 24),),
        tree_drafts=True,
        default=_OPT_IN,
    ),
    "0.20.1": Truth(
        (695, 720, 749, 776),
        v2=(
            (f"{_V2_FOLDER}/rejection_sampler.py", 24, 39),
            (f"{_V2_FOLDER}/probabilistic_rejection_sampler_utils.py", 153, 212),
            (f"{_V2_FOLDER}/synthetic_rejection_sampler_utils.py", 10, 40),
        ),
        tree_drafts=True,
        default=_OPT_IN,
        rejection=frozenset({"strict", "probabilistic", "synthetic"}),
    ),
    "0.24.0": Truth(
        (715, 744, 773, 804), v2=((_UTILS, 157, 220),), default=_BY_MODEL, rejection=_STANDARD
    ),
    "0.27.1": Truth(
        (715, 744, 774, 805), v2=((_UTILS, 460, 530),), default=_BY_MODEL, rejection=_WITH_BLOCK
    ),
    "0.30.0": Truth(
        (719, 748, 822, 853), v2=((_UTILS, 485, 555),), default=_MOSTLY_V2, rejection=_WITH_BLOCK
    ),
    "0.32.0": Truth(
        (726, 755, 829, 860), v2=((_UTILS, 488, 558),), default=_MOSTLY_V2, rejection=_WITH_BLOCK
    ),
}
_LOOPS = [(version, loop) for version in RELEASES for loop in TRUTH[version].loops()]
_PATHS = [(version, path) for version in RELEASES for path in sorted(TRUTH[version].paths())]


@pytest.mark.parametrize("version", RELEASES)
def test_every_release_is_linear_in_total(version: str) -> None:
    report = reports.of_wheel(version)

    assert report.verdict is Verdict.LINEAR
    assert report.summary


@pytest.mark.parametrize("version", RELEASES)
def test_the_paths_that_exist_are_reported(version: str) -> None:
    assert set(reports.by_path(reports.of_wheel(version))) == TRUTH[version].paths()


@pytest.mark.parametrize(("version", "path"), _PATHS)
def test_stages(version: str, path: EnginePath) -> None:
    found = reports.stages(reports.of_wheel(version))[path]

    assert found[Stage.VERIFICATION] is StageVerdict.LINEAR
    assert found[Stage.COMMIT] is not StageVerdict.TREE
    drafts_trees = TRUTH[version].tree_drafts and path is V1
    assert (found[Stage.DRAFTING] is StageVerdict.TREE) == drafts_trees
    assert (found[Stage.ATTENTION] is StageVerdict.TREE) == drafts_trees
    assert reports.by_path(reports.of_wheel(version))[path].verdict is Verdict.LINEAR


@pytest.mark.parametrize(
    ("version", "loop"), _LOOPS, ids=lambda value: getattr(value, "head", value)
)
def test_the_loop_that_makes_it_linear_is_shown(version: str, loop: Loop) -> None:
    lines = _lines(version, loop.file)
    shown = reports.evidence(reports.of_wheel(version), loop.path, Stage.VERIFICATION)
    here = [item for item in shown if (item.file, item.line) == (loop.file, loop.line)]

    assert here, [(item.file, item.line, item.symbol) for item in shown]
    for item in here:
        assert item.supports is StageVerdict.LINEAR
        assert lines[loop.line - 1].strip() in item.quote
        assert f"def {item.symbol.rpartition('.')[2]}(" in lines[loop.head - 1]
        assert item.calls, "a verdict of linear shows the calls that reach the loop"


@pytest.mark.parametrize(("version", "path"), _PATHS)
def test_evidence_quotes_what_the_file_says(version: str, path: EnginePath) -> None:
    report = reports.of_wheel(version)
    for stage in Stage:
        for item in reports.evidence(report, path, stage):
            if item.file.endswith(".py"):
                quoted = item.quote.splitlines()[0].strip()
                assert quoted in _lines(version, item.file)[item.line - 1], item


@pytest.mark.parametrize(("version", "path"), _PATHS)
def test_default_runner(version: str, path: EnginePath) -> None:
    result = reports.by_path(reports.of_wheel(version))[path]

    assert result.default in TRUTH[version].default[path]


@pytest.mark.parametrize("version", RELEASES)
def test_methods_are_read_from_the_code(version: str) -> None:
    methods = reports.of_wheel(version).methods

    assert {"ngram", "eagle", "medusa"} <= set(methods.speculative)
    assert set(methods.rejection) == TRUTH[version].rejection


@pytest.mark.parametrize("version", RELEASES)
def test_coverage_counts_every_python_file(version: str) -> None:
    tree = wheels.python_tree(reports.requirement(version))
    coverage = reports.of_wheel(version).coverage

    assert coverage.files >= sum(1 for _ in tree.glob("vllm/**/*.py"))
    assert 0 < coverage.parsed <= coverage.files
    assert coverage.rules
    assert coverage.unreadable == ()


def _lines(version: str, file: str) -> list[str]:
    return (wheels.python_tree(reports.requirement(version)) / file).read_text().splitlines()


def test_a_v0_engine_that_refuses_drafts_verifies_nothing() -> None:
    report = reports.of_wheel("0.10.2")

    assert set(reports.by_path(report)) == {V1}
    assert report.verdict is Verdict.LINEAR
    assert any("refuses drafts on the V0 engine" in note for note in report.notes)
