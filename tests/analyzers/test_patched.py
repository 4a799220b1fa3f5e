"""Real releases before, under and after `ddtree patch`, and runtimes that lack a part."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.version import Version

from ddtree.analyzers.inspect import inspect_target
from ddtree.analyzers.result import EnginePath, Evidence, Report, Stage, StageVerdict, Verdict
from ddtree.patches import perform
from ddtree.patches.perform import Options
from tests.analyzers import patched, reports
from tests.patches import mini, releases

TREE = dict.fromkeys(Stage, StageVerdict.TREE)
WALK = f"{patched.RUNTIME}/kernels/tree/walk/vectorised.py"


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDTREE_STATE", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One patched release for all tests that look at copies of it."""
    root = tmp_path_factory.mktemp("patched")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DDTREE_STATE", str(root / "state"))
        yield patched.apply("0.32.0", root)


def v1(report: Report) -> dict[Stage, StageVerdict]:
    return reports.stages(report)[EnginePath.V1]


def v2(report: Report) -> dict[Stage, StageVerdict]:
    return reports.stages(report)[EnginePath.V2]


def check_places(report: Report, site: Path) -> None:
    """Every cited place exists, and holds what the report quotes or names."""
    for item in report.evidence:
        assert patched.line(site / item.file, item.line) == item.quote
        entry, *calls = item.calls
        assert f"def {entry.symbol.rpartition('.')[2]}(" in patched.line(
            site / entry.file, entry.line
        )
        for call in calls:
            shown = patched.line(site / call.file, call.line)
            name = call.symbol.rpartition(".")[2]
            assert name in shown or shown.lstrip().startswith("@") or name.startswith("__"), call


# One for every shape of the hooked functions; all the others take minutes.
SHAPES = ("0.20.1", "0.24.0", "0.27.1", "0.30.0", "0.33.0")
EVERY = [
    pytest.param(version, marks=() if version in SHAPES else pytest.mark.extended)
    for version in releases.VERSIONS
]


@pytest.mark.parametrize("version", EVERY)
def test_a_patched_release_verifies_a_tree(version: str, tmp_path: Path) -> None:
    place = patched.apply(version, tmp_path)

    report = reports.inspect(place)

    # Before 0.24.0, nothing hooks into the V2 runner.
    hooked = Path(mini.V2_RUNNER) in map(Path, patched.edited(place))
    assert hooked == (Version(version) >= Version("0.24"))
    assert v1(report) == TREE
    assert (v2(report) == TREE) is hooked
    found = reports.by_path(report)
    assert found[EnginePath.V1].verdict is Verdict.TREE
    assert found[EnginePath.V2].verdict is (Verdict.TREE if hooked else Verdict.LINEAR)
    assert report.verdict is Verdict.TREE
    check_places(report, place)
    assert report.install.modified == tuple(sorted(map(str, patched.edited(place))))
    assert any(f"import {patched.RUNTIME}, a package beside vLLM" in n for n in report.notes)
    assert any("depends on the configuration" in note for note in report.notes)


@pytest.mark.parametrize("version", ["0.24.0", "0.30.0", "0.33.0"])
def test_a_reverted_release_verifies_a_chain(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports are kept between the three looks, as they are on a user's machine."""
    monkeypatch.setenv("DDTREE_CACHE", str(tmp_path / "cache"))
    place = releases.copy(version, tmp_path)
    before = inspect_target(str(place))
    perform.apply(Options(str(place)))
    assert inspect_target(str(place)).verdict is Verdict.TREE
    perform.revert(Options(str(place)))

    after = inspect_target(str(place))

    assert after == before
    assert after.verdict is Verdict.LINEAR
    assert after.install.modified == ()
    assert not any("beside vLLM" in note for note in after.notes)


def shown(report: Report, stage: Stage) -> list[Evidence]:
    return reports.evidence(report, EnginePath.V1, stage)


def test_the_evidence_lies_where_the_work_is_done(site: Path) -> None:
    report = reports.inspect(site)

    (walk,) = shown(report, Stage.VERIFICATION)
    assert walk.file == WALK
    assert patched.line(site / walk.file, walk.line).strip().startswith("for ")
    assert [call.symbol for call in walk.calls[:3]] == [
        "GPUModelRunner.sample_tokens",
        "GPUModelRunner._sample",
        "sample",
    ]
    wrapped = walk.calls[2]
    assert patched.line(site / wrapped.file, wrapped.line).strip() == '@_ddtree_hook("v1.sample")'
    folders = {
        stage: {item.file.split("/")[3] for item in shown(report, stage)}
        for stage in (Stage.DRAFTING, Stage.ATTENTION, Stage.COMMIT)
    }
    assert folders == {
        Stage.DRAFTING: {"build"},
        Stage.ATTENTION: {"ancestors", "attention"},
        Stage.COMMIT: {"commit"},
    }


def test_no_name_of_ours_is_needed(site: Path, tmp_path: Path) -> None:
    place = patched.copy_of(site, tmp_path)
    patched.rename(place)

    report = reports.inspect(place)

    assert v1(report) == v2(report) == TREE
    check_places(report, place)
    assert shown(report, Stage.VERIFICATION)[0].file.startswith("graft/")


def test_an_install_without_a_record_is_read_the_same(site: Path, tmp_path: Path) -> None:
    place = patched.copy_of(site, tmp_path)
    next(place.glob("vllm*.dist-info/RECORD")).unlink()

    assert v1(reports.inspect(place)) == TREE


def test_without_its_runtime_a_patched_release_is_a_stock_one(site: Path, tmp_path: Path) -> None:
    place = patched.copy_of(site, tmp_path)
    shutil.rmtree(place / patched.RUNTIME)

    report = reports.inspect(place)

    assert report.verdict is Verdict.LINEAR
    assert report.install.modified == tuple(sorted(map(str, patched.edited(place))))
    assert any(f"import {patched.RUNTIME}, which is missing" in note for note in report.notes)


CHAIN_WALK = "on_path = torch.cumprod((wanted[:, :-1] == tokens).int(), dim=1)"
# Which stage loses its tree when a part of the runtime is replaced.
LACKING = {
    "walk": (Stage.VERIFICATION, WALK, "on_path = _all_the_way(followed, anchor)", CHAIN_WALK),
    "commit": (
        Stage.COMMIT,
        f"{patched.RUNTIME}/cache.py",
        "commit(self._plans[key], slots, perm, accepted, row_start=row_start, longest=longest)",
        "self._plans[key].groups",
    ),
    "mask-not-activated": (
        Stage.ATTENTION,
        f"{patched.RUNTIME}/prepare.py",
        "ACTIVE.masked = step",
        "ACTIVE.masked = None",
    ),
    "mask-not-applied": (
        Stage.ATTENTION,
        f"{patched.RUNTIME}/attention.py",
        "    attend(step, masked, name, layer, query, output)\n",
        "    function(query, key, value, output, layer_name, *rest, **named)\n",
    ),
    "mask-is-causal": (
        Stage.ATTENTION,
        f"{patched.RUNTIME}/kernels/tree/ancestors/vectorised.py",
        "visible = visible | visible.index_select(0, anchor)",
        "visible = torch.tril(visible)",
    ),
    "drafting": (
        Stage.DRAFTING,
        f"{patched.RUNTIME}/hooks.py",
        '    "v1.propose": v1.propose,\n',
        "",
    ),
}


@pytest.mark.parametrize("part", LACKING)
def test_a_runtime_that_lacks_a_part_is_seen_through(part: str, site: Path, tmp_path: Path) -> None:
    stage, file, old, new = LACKING[part]
    place = patched.copy_of(site, tmp_path)
    patched.replace(place, file, old, new)

    found = v1(reports.inspect(place))

    assert found[stage] is not StageVerdict.TREE
    for other in {Stage.DRAFTING, Stage.ATTENTION, Stage.VERIFICATION} - {stage}:
        assert found[other] is StageVerdict.TREE


def test_a_drafter_that_is_not_replaced_is_seen_through(site: Path, tmp_path: Path) -> None:
    """On the V2 runner, trees are drafted by what the runtime stores on the drafter."""
    place = patched.copy_of(site, tmp_path)
    stored = "    speculator.propose = functools.partial(propose, engine, speculator.propose)\n"
    patched.replace(place, f"{patched.RUNTIME}/v2/runner.py", stored, "")

    report = reports.inspect(place)

    assert v2(report)[Stage.DRAFTING] is StageVerdict.LINEAR
    assert v2(report)[Stage.VERIFICATION] is StageVerdict.TREE
    assert v1(report) == TREE


def test_hooks_that_call_nothing_are_seen_through(site: Path, tmp_path: Path) -> None:
    place = patched.copy_of(site, tmp_path)
    file = f"{patched.RUNTIME}/hooks.py"
    patched.replace(place, file, "return handler(function, *args", "return function(*args")

    report = reports.inspect(place)

    assert report.verdict is Verdict.LINEAR
    assert StageVerdict.TREE not in v1(report).values()
