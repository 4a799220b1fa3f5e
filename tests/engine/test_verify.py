"""`ddtree verify` on a real vLLM: it passes, it refuses, it notices, and it leaves nothing."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from ..cli.test_verify import errors
from . import installs, verified
from .environment import engine_python

pytestmark = pytest.mark.engine


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the journals of this test's patches, and one for temporary files."""
    monkeypatch.setenv("DDTREE_STATE", str(tmp_path / "state"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return tmp_path


@pytest.fixture
def environment(state: Path) -> Path:
    """An unpatched private environment."""
    folder = state / "environment"
    installs.environment(engine_python(), folder)
    return folder


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    """What became of the levels."""
    return {level["level"]: level["outcome"] for level in report["levels"]}


def check(report: dict[str, Any], level: str, name: str) -> str:
    """What became of a check."""
    (found,) = (one for one in report["levels"] if one["level"] == level)
    return str({one["name"]: one["outcome"] for one in found["checks"]}[name])


def _assert_told(lines: list[str]) -> None:
    """Without a terminal, lines say when each level, engine and pass began, and what is left."""
    for part in ("L1", "L2", "importing", "starting an engine", "decoding", "timing steps"):
        told = [line for line in lines if f"] {part}" in line]
        assert told, part
        assert any("left: " in line or "round 1 of " in line for line in told), part
    assert "L2" in next(line for line in lines if "] L1" in line).partition("left: ")[2]


def test_a_patched_vllm_passes_and_says_that_a_tree_does_not_pay(
    environment: Path, state: Path
) -> None:
    """All levels on the tiny models; nothing is left of the run.

    An interpreter that the operator's shell asks of Triton changes nothing: engines that inherited
    it would take the V2 runner.
    """
    verified.patch(environment, state / "work")
    before = sorted(environment.rglob("*"))
    code, out, err = verified.run("verify", environment, "--format", "json", TRITON_INTERPRET="1")
    assert (code, verified.beside_progress(err)) == (0, ""), out + err
    _assert_told(err.splitlines())
    report = json.loads(out)
    assert errors(report) == []
    assert report["verdict"] == "passed"
    assert set(outcomes(report).values()) == {"passed"}
    every = [one for level in report["levels"] for one in level["checks"]]
    # By name, so that a failure tells which.
    assert {one["name"]: one["outcome"] for one in every if one["outcome"] != "passed"} == {}
    assert len(report["imports"]) == 10
    lengths = {one["name"]: one["acceptance_length"] for one in report["engines"]}
    assert lengths["chain"] == lengths["width 1"] < lengths["tree 7"] < lengths["tree 32"]
    assert {cost["name"] for cost in report["costs"]} == {"width 1", "tree 7", "tree 32"}
    assert report["costs"][-1]["steps_saved"] > 0.05
    # Without a GPU, vLLM takes the V1 runner by itself.
    assert (report["subject"]["runner"], report["subject"]["runner_asked"]) == ("v1", False)
    assert report["pays"] in ("no", "undecided")
    assert "not measured on a GPU" in report["sentence"]
    assert list((state / "tmp").iterdir()) == []
    assert verified.processes(str(environment)) == []
    assert sorted(environment.rglob("*")) == before


# A run under Triton's interpreter takes minutes, and many where cores are shared.
SLOW = ("--timeout", "3000", "--format", "json")


@pytest.mark.extended
def test_the_v2_runner_passes_under_the_interpreter(environment: Path, state: Path) -> None:
    """Nodes, the stock chain and greedy decoding; its times are not taken for a GPU's."""
    verified.patch(environment, state / "work")
    levels = [word for level in ("L3", "L4", "L5") for word in ("--level", level)]
    code, out, err = verified.run(
        "verify", environment, "--runner", "v2", *levels, "--tokens", "32", *SLOW, patience=3000
    )
    assert (code, verified.beside_progress(err)) == (0, ""), out + err
    report = json.loads(out)
    assert errors(report) == []
    subject = report["subject"]
    assert (subject["runner"], subject["runner_asked"], subject["interpreted"]) == (
        "v2", True, True,
    )  # fmt: skip
    assert [outcomes(report)[name] for name in ("L3", "L4", "L5")] == ["passed"] * 3
    every = [one for level in report["levels"] for one in level["checks"]]
    # So few tokens need no more blocks than there are.
    assert {one["name"] for one in every if one["outcome"] != "passed"} <= {"preemption"}
    assert {"without mask", "without positions", "without commit"} <= {one["name"] for one in every}
    assert (report["pays"], report["costs"]) == ("not measured", [])
    assert "Triton's interpreter" in report["sentence"]
    assert list((state / "tmp").iterdir()) == []


@pytest.mark.extended
def test_a_missing_commit_fails_on_the_v2_runner_too(environment: Path, state: Path) -> None:
    """Nothing but the runner is another one."""
    verified.patch(environment, state / "work", COMMIT)
    code, out, err = verified.run(
        "verify", environment, "--runner", "v2", "--level", "L3", "--tokens", "32", *SLOW,
        patience=3000,
    )  # fmt: skip
    assert (code, verified.beside_progress(err)) == (1, ""), out + err
    assert outcomes(json.loads(out))["L3"] == "failed"


def test_without_triton_the_v2_runner_is_an_error_that_says_so(
    environment: Path, state: Path
) -> None:
    """The other runner is named, and nothing is judged."""
    verified.patch(environment, state / "work")
    (triton,) = environment.glob("lib/python*/site-packages/triton")
    triton.unlink()
    code, out, err = verified.run("verify", environment, "--runner", "v2", "--level", "L5")
    assert (code, out) == (5, "")
    assert "the V2 model runner needs Triton, which cannot be imported here" in err
    assert f"run: ddtree verify {environment} --runner v1" in err


def test_an_unpatched_vllm_is_refused(environment: Path) -> None:
    """Nothing is started, and the command that helps is named."""
    code, out, err = verified.run("verify", environment)
    assert (code, out) == (4, "")
    assert f"run: ddtree patch {environment} --apply" in err


# The first child is followed, whatever its token.
WALK = {
    "kernels/tree/walk/vectorised.py": (
        "matches = real & (wanted.gather(1, above) == tokens)",
        "matches = real",
    )
}
# Accepted rows stay where they are.
COMMIT = {
    "runtime/accept.py": (
        'if "commit" not in engine.settings.without:',
        "if not step.trees:",
    )
}


def test_a_wrong_walk_fails(environment: Path, state: Path) -> None:
    """L1, L2, L4 and L5 notice; the logits of nodes are right all the same."""
    verified.patch(environment, state / "work", WALK)
    code, out, err = verified.run("verify", environment, "--format", "json")
    assert (code, verified.beside_progress(err)) == (1, ""), out + err
    report = json.loads(out)
    assert errors(report) == []
    assert report["verdict"] == "failed"
    found = outcomes(report)
    assert found == dict.fromkeys(("L1", "L2", "L4", "L5"), "failed") | {"L3": found["L3"]}
    assert check(report, "L1", "walk") == check(report, "L2", "walk, torch") == "failed"
    assert check(report, "L1", "build") == "passed"
    assert check(report, "L5", "tree 32") == check(report, "L5", "oracle") == "failed"
    assert check(report, "L5", "no speculation") == "passed"
    assert report["pays"] == "no"
    assert "not greedy decoding" in report["sentence"]
    assert any("Another ddtree" in note for note in report["notes"])


def test_a_missing_commit_fails(environment: Path, state: Path) -> None:
    """Walk and kernels are right, so that only engines notice."""
    verified.patch(environment, state / "work", COMMIT)
    levels = [word for level in ("L1", "L3", "L5") for word in ("--level", level)]
    code, out, err = verified.run("verify", environment, *levels, "--format", "json")
    assert (code, verified.beside_progress(err)) == (1, ""), out + err
    report = json.loads(out)
    found = outcomes(report)
    assert found == {
        "L1": "passed",
        "L2": "not run",
        "L3": "failed",
        "L4": "not run",
        "L5": "failed",
    }
    assert check(report, "L5", "oracle") == "failed"
    assert check(report, "L5", "tree-free requests") == "passed"


def test_an_edited_module_that_does_not_import_fails(environment: Path, state: Path) -> None:
    """Somebody broke another file of vLLM; no engine is started on it."""
    verified.patch(environment, state / "work")
    (file,) = environment.glob("lib/python*/site-packages/vllm/v1/spec_decode/metadata.py")
    file.unlink()
    file.write_text('raise RuntimeError("broken by hand")\n', encoding="utf-8")
    code, out, err = verified.run("verify", environment, "--level", "L5", "--format", "json")
    assert (code, verified.beside_progress(err)) == (1, ""), out + err
    report = json.loads(out)
    wrong = [one["detail"] for one in report["imports"] if one["outcome"] == "failed"]
    assert "RuntimeError: broken by hand" in wrong
    assert outcomes(report)["L5"] == "not run"
    assert any("metadata.py" in note for note in report["notes"])


def test_a_patch_that_somebody_changed_is_refused(environment: Path, state: Path) -> None:
    """What would be verified is not what ddtree installed."""
    verified.patch(environment, state / "work")
    (hooks,) = environment.glob("lib/python*/site-packages/ddtree_runtime/hooks.py")
    text = hooks.read_text(encoding="utf-8")
    hooks.unlink()
    hooks.write_text(f"{text}# mine\n", encoding="utf-8")
    code, out, err = verified.run("verify", environment)
    assert (code, out) == (4, "")
    assert "ddtree_runtime/hooks.py is not as it was put there" in err


def test_an_interrupt_leaves_no_process_and_no_folder(environment: Path, state: Path) -> None:
    """While engines run: 130, one line, and everything is gone."""
    verified.patch(environment, state / "work")
    process = verified.command("verify", environment, "--level", "L5")
    folder = engines_run(state / "tmp")
    time.sleep(2)
    assert verified.processes(folder.name)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert verified.beside_progress(err) == "interrupted\n"
    assert verified.processes(folder.name) == []
    assert verified.processes(str(environment)) == []
    assert list((state / "tmp").iterdir()) == []


def engines_run(temporary: Path) -> Path:
    """The harness's folder, once its engines have decoded something."""
    until = time.monotonic() + 180
    while time.monotonic() < until:
        for folder in temporary.glob("ddtree-verify-*"):
            if (folder / "truth.json").exists():
                return folder
        time.sleep(0.2)
    raise AssertionError("no engine was started")
