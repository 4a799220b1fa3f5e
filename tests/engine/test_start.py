"""What is wrong with a start is said at once: by the first process, in one message."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from . import environment, runs

pytestmark = pytest.mark.engine

BUDGET = {"ddtree": {"budget": 16}}
# What is given, and what is said about it; a number is the width of the verification.
STARTS: dict[str, tuple[dict[str, Any], int | str]] = {
    "trees": ({"additional_config": BUDGET}, 16),
    "no trees": ({}, 7),
    "somebody else's": ({"additional_config": {"other": {"budget": 3}}}, 7),
    "a wrong value": (
        {"additional_config": {"ddtree": {"budget": 400}}},
        "SettingsError: ddtree.budget: expected a whole number from 1 to 128, found 400",
    ),
    "a misspelt name": (
        {"additional_config": {"dd_tree": {"budget": 16}}},
        'SettingsError: ddtree: in --additional-config, nobody reads "dd_tree": expected',
    ),
    "no drafter": (
        {"additional_config": BUDGET, "speculative_config": None},
        "Refused: ddtree: there is no drafter",
    ),
    "too small a budget": (
        {"additional_config": {"ddtree": {"budget": 4}}},
        "Refused: ddtree: a budget of 4 nodes does not hold the drafter's own 7 tokens",
    ),
    "several stages": (
        {"additional_config": BUDGET, "pipeline_parallel_size": 2},
        "Refused: ddtree: pipeline parallelism",
    ),
}


@pytest.fixture
def copied(python: Path, tmp_path: Path) -> Path:
    """The interpreter of a copy of the patched environment, to be damaged."""
    folder = tmp_path / "env"
    shutil.copytree(python.parents[1], folder, symlinks=True, copy_function=os.link)
    return folder / "bin" / python.name


def ran(python: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """A process of an environment's interpreter."""
    return subprocess.run(
        [str(python), *arguments],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"},
        input=given, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


def configured(python: Path, cases: list[dict[str, Any]]) -> list[Any]:
    """What vLLM's configuration comes to with these engine arguments."""
    common = {"model": runs.TARGET, "skip_tokenizer_init": True, "dtype": "float32"}
    given = json.dumps([{**common, **runs.dflash(), **case} for case in cases])
    done = ran(python, str(runs.HERE / "configured.py"), given=given)
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_settings_and_refusals_are_decided_with_the_configuration(python: Path) -> None:
    """Where it is made, so that nothing has been loaded by then, nor any process started."""
    found = configured(python, [case for case, _ in STARTS.values()])
    for name, result, (_, want) in zip(STARTS, found, STARTS.values(), strict=True):
        assert str(result).startswith(str(want)), (name, result)


def serve(python: Path, additional: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """A server that does not get as far as serving."""
    drafter = json.dumps(runs.dflash()["speculative_config"])
    command = ["-m", "vllm.entrypoints.openai.api_server", "--model", runs.TARGET]
    command += ["--skip-tokenizer-init", "--dtype", "float32", "--speculative-config", drafter]
    return ran(python, *command, "--additional-config", json.dumps(additional))


def test_a_server_says_it_in_one_line(python: Path) -> None:
    """Without a look at vLLM's code, and before another process was started."""
    done = serve(python, {"ddtree": {"budget": 16, "max_sibling": 2}})
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert done.stderr.splitlines()[-1].startswith("ddtree: unknown setting max_sibling; expected")
    assert "Traceback" not in said
    assert "EngineCore" not in said


def test_a_damaged_runtime_is_refused_at_once(copied: Path) -> None:
    """Also in a file that would be read in the middle of serving; without trees nobody asks."""
    site = environment.site_packages(copied)
    damaged = "ddtree_runtime/kernels/tree/walk/kernel.py"
    file = site / damaged
    text = file.read_text()
    file.unlink()
    file.write_text(text[:100])
    stock, trees = configured(copied, [{}, {"additional_config": BUDGET}])
    assert stock == 7
    assert trees.startswith("RuntimeError: ddtree: trees are configured, and their runtime cannot")
    assert f"{damaged}); run: ddtree patch --status" in trees
