"""`ddtree patch` as a command line: formats, exit codes, questions."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import fields
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from ddtree.cli.app import app
from ddtree.patches import perform
from ddtree.patches.distribution import distribution
from ddtree.patches.status import FileState, State, Status
from tests.patches import mini

FORMATS = ["terminal", "json", "markdown"]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> mini.Mini:
    """A tiny install, and a command whose runtime is as tiny."""
    made = mini.make(tmp_path)
    monkeypatch.setenv("DDTREE_STATE", str(made.state))
    small = partial(distribution, runtime=tmp_path / "runtime", kernels=tmp_path / "kernels")
    monkeypatch.setattr(perform, "distribution", lambda *_: small())
    return made


def schema() -> dict[str, Any]:
    text = files("ddtree.cli").joinpath("schema", "patch-1.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def broken(document: object) -> list[str]:
    found = Draft202012Validator(schema()).iter_errors(document)
    return [f"{problem.json_path}: {problem.message}" for problem in found]


def run(*arguments: object, answer: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["patch", *map(str, arguments)], input=answer)
    if "json" in arguments:
        # Whatever a test makes the command say has to follow the contract.
        assert broken(json.loads(result.stdout)) == []
    return result.exit_code, result.stdout, result.stderr


def test_the_default_is_a_plan_and_writes_nothing(install: mini.Mini) -> None:
    before = mini.snapshot(install.root)
    code, out, err = run(install.site)

    assert (code, err) == (0, "")
    assert out.startswith("plan: ")
    assert "beside vLLM: " in out
    assert '+    @_ddtree_hook("v1.sample")\n' in out
    assert mini.snapshot(install.root) == before


@pytest.mark.parametrize("format_", FORMATS)
def test_there_and_back_in_every_format(install: mini.Mini, format_: str) -> None:
    before = mini.snapshot(install.site)
    words = ("--format", format_)

    assert run(install.site, *words)[0] == 0
    assert run(install.site, "--status", *words)[0] == 0
    code, out, _ = run(install.site, "--apply", "--yes", *words)
    assert (code, "applied" in out) == (0, True)
    assert run(install.site, "--status", *words)[0] == 0
    assert run(install.site, "--apply", "--yes", *words)[0] == 0
    shutil.rmtree(install.site / "ddtree_runtime")
    assert run(install.site, "--status", *words)[0] == 4
    assert run(install.site, "--apply", "--yes", *words)[0] == 4
    code, out, _ = run(install.site, "--revert", "--yes", *words)
    assert (code, "reverted" in out) == (0, True)
    assert mini.snapshot(install.site) == before


def test_json_says_everything(install: mini.Mini) -> None:
    plan = json.loads(run(install.site, "--format", "json")[1])["plan"]
    applied = json.loads(run(install.site, "--apply", "-y", "--format", "json")[1])
    status = json.loads(run(install.site, "--status", "--format", "json")[1])["status"]

    assert applied["outcome"] == "applied"
    assert applied["plan"] == plan
    assert status["state"] == "applied"
    assert status["plan_id"] == plan["id"]
    assert set(status["files"].values()) == {"patched"}
    assert {item["file"] for item in plan["edits"]} == set(status["files"])
    assert "ddtree_runtime/hooks.py" in plan["installed"]


def outcomes(install: mini.Mini) -> dict[str, Any]:
    """One document of every outcome, and an error."""
    words = (install.site, "--format", "json")
    bundle = install.root / "bundle"
    texts = [
        run(*words)[1],
        run(*words, "--status")[1],
        run(*words, "--bundle", bundle)[1],
        run(*words, "--apply", "--yes")[1],
        run(*words, "--apply", "--yes", "--bundle", bundle)[1],
        run(*words, "--revert", "--yes")[1],
    ]
    documents = [json.loads(text) for text in texts]
    return {document.get("outcome", "error"): document for document in documents}


def test_every_outcome_follows_the_contract(install: mini.Mini) -> None:
    found = outcomes(install)

    assert set(found) == {"planned", "status", "bundled", "applied", "error", "reverted"}
    assert [broken(document) for document in found.values()] == [[]] * len(found)


@pytest.mark.parametrize(
    ("outcome", "keys", "value"),
    [
        ("planned", ("plan", "id"), "short"),
        ("planned", ("plan", "hooks"), []),
        ("planned", ("outcome",), "applied"),
        ("applied", ("notes",), None),
        ("applied", ("plan", "installed", "more"), 1),
        ("bundled", ("folder",), None),
        ("reverted", ("status", "files", "vllm/config/vllm.py"), "odd"),
        ("status", ("status", "state"), "odd"),
        ("status", ("status", "more"), 1),
        ("error", ("error", "exit_code"), 0),
        ("error", ("schema_version",), 2),
    ],
)
def test_the_schema_catches_a_broken_contract(
    install: mini.Mini, outcome: str, keys: tuple[str, ...], value: object
) -> None:
    document = outcomes(install)[outcome]
    place = document
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value

    assert broken(document) != []


def test_schema_and_code_have_the_same_words() -> None:
    definitions = schema()["$defs"]

    assert definitions["State"]["enum"] == [state.value for state in State]
    assert definitions["FileState"]["enum"] == [state.value for state in FileState]
    assert set(definitions["Status"]["properties"]) == {field.name for field in fields(Status)}


def test_a_plug_in_there_and_back(install: mini.Mini) -> None:
    """Its plan lists hooks in place of edits, follows the contract, and names its own command."""
    before = mini.snapshot(install.site)
    code, out, _ = run(install.site, "--as", "plugin")
    assert (code, "\nedit: " in out) == (0, False)
    assert f"\nhook: {mini.RUNNER}: GPUModelRunner._sample: v1.sample\n" in out
    assert " --apply --as plugin --plan " in out.splitlines()[-1]

    document = json.loads(run(install.site, "--as", "plugin", "--format", "json")[1])
    assert broken(document) == []
    words = ("--as", "plugin", "--yes", "--format", "json", "--plan", document["plan"]["id"])
    assert broken(json.loads(run(install.site, "--apply", *words)[1])) == []
    status = json.loads(run(install.site, "--status", "--format", "json")[1])
    assert broken(status) == []
    assert (status["status"]["way"], document["plan"]["edits"]) == ("plugin", [])
    assert run(install.site, "--apply", "--yes", "--as", "edits")[0] == 4
    assert run(install.site, "--revert", "--yes")[0] == 0
    assert mini.snapshot(install.site) == before


def test_whoever_is_to_be_asked_is_told_the_whole_command(install: mini.Mini) -> None:
    err = run(install.site, "--apply", "--as", "plugin")[2]

    assert f"run: ddtree patch {install.site} --as plugin --apply --yes" in err


@pytest.mark.parametrize("flag", ["--status", "--revert"])
def test_how_it_was_patched_is_found_out_and_not_said(install: mini.Mini, flag: str) -> None:
    code, _, err = run(install.site, flag, "--as", "plugin")

    assert (code, "finds out how the install is patched" in err) == (2, True)


def test_the_plan_that_was_seen_is_the_one_executed(install: mini.Mini) -> None:
    plan = json.loads(run(install.site, "--format", "json")[1])["plan"]["id"]

    assert run(install.site, "--apply", "--yes", "--plan", "000000000000")[0] == 4
    assert run(install.site, "--apply", "--yes", "--plan", plan)[0] == 0


@pytest.mark.parametrize("flag", ["--apply", "--revert"])
def test_nobody_to_ask_is_a_usage_error(install: mini.Mini, flag: str) -> None:
    before = mini.snapshot(install.root)
    code, out, err = run(install.site, flag)

    assert (code, out) == (2, "")
    assert f"run: ddtree patch {install.site} {flag} --yes" in err
    assert mini.snapshot(install.root) == before


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 2), ("", 2)])
def test_a_person_is_asked(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    before = mini.snapshot(install.root)
    monkeypatch.setattr("ddtree.cli.patch._somebody", lambda: True)
    ended, _, err = run(install.site, "--apply", answer=answer)

    assert "Go on? [y/N]" in err
    assert ended == code
    assert (mini.snapshot(install.root) == before) == (code != 0)


def test_two_flags_are_a_usage_error(install: mini.Mini) -> None:
    code, _, err = run(install.site, "--apply", "--status")

    assert (code, "--apply and --status are both given" in err) == (2, True)


@pytest.mark.parametrize("flag", ["--status", "--apply", "--revert"])
def test_no_target_is_3(install: mini.Mini, flag: str) -> None:
    assert run(install.root / "nothing", flag, "--yes")[0] == 3


def test_drift_is_4_and_is_data_too(install: mini.Mini) -> None:
    install.edit(mini.CONFIG, lambda text: text + "# mine\n")
    code, out, err = run(install.site, "--apply", "--yes", "--format", "json")

    assert code == 4
    assert json.loads(out)["error"]["exit_code"] == 4
    assert "vllm/config/vllm.py" in err


def test_a_failed_check_is_5(install: mini.Mini, monkeypatch: pytest.MonkeyPatch) -> None:
    before = mini.snapshot(install.site)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ddtree.patches.apply.check", full)
    code, _, err = run(install.site, "--apply", "--yes")

    assert code == 5
    assert "every byte is as it was before" in err
    assert mini.snapshot(install.site) == before


def test_a_recovery_that_cannot_be_is_6(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("ddtree.patches.apply.check", full)
        broken.setattr("ddtree.patches.apply.undo", full)
        assert run(install.site, "--apply", "--yes")[0] == 6
        broken.setattr("ddtree.patches.recover.undo", full)
        code, _, err = run(install.site, "--status")
        assert (code, "cannot be taken back yet" in err) == (6, True)
    code, out, _ = run(install.site, "--status")
    assert (code, "was found and taken back" in out) == (0, True)


def test_a_lost_patch_is_1(install: mini.Mini) -> None:
    run(install.site, "--apply", "--yes")
    again = mini.make(install.root, site=install.site)
    code, out, _ = run(again.site, "--status")

    assert (code, "Patch lost" in out) == (1, True)


def test_a_bundle_is_written(install: mini.Mini, tmp_path: Path) -> None:
    code, out, _ = run(install.site, "--bundle", tmp_path / "out")

    assert code == 0
    assert f"run: python {tmp_path}/out/apply.py SITE" in out
    assert (tmp_path / "out" / "apply.py").is_file()


def test_a_terminal_has_the_diff_first_and_the_facts_last(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    plan = json.loads(run(install.site, "--format", "json")[1])["plan"]["id"]
    out = run(install.site)[1]

    assert out.index("_ddtree_hook") < out.index("plan")
    assert "ddtree_runtime/hooks.py" not in out
    # On one line, to be pasted.
    assert out.endswith(f"ddtree patch {install.site} --apply --plan {plan}\n")


def test_a_plan_is_followed_by_its_command(install: mini.Mini) -> None:
    spaced = install.root / "a site"
    install.site.rename(spaced)
    lines = run(spaced)[1].splitlines()
    (command,) = [line.removeprefix("run: ") for line in lines if line.startswith("run: ")]
    # The last line, after the diff, in every form of text.
    assert lines[-2:] == ["nothing was written", f"run: {command}"]
    assert run(spaced, "--format", "markdown")[1].splitlines()[-2] == "- nothing was written"

    words = shlex.split(command)
    assert words[:3] == ["ddtree", "patch", str(spaced)]
    assert run(*words[2:], "--yes")[0] == 0


@pytest.mark.parametrize("words", [(), ("--status",), ("--revert", "--yes")])
def test_options_that_would_do_nothing_are_usage_errors(
    install: mini.Mini, words: tuple[str, ...]
) -> None:
    before = mini.snapshot(install.root)

    assert run(install.site, *words, "--plan", "0123456789ab")[0] == 2
    assert run(install.site, *words, "--check-imports")[0] == 2
    assert mini.snapshot(install.root) == before


def test_a_plan_for_a_terminal_stays_in_its_width(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of the diff and the command are the only ones that are left as they are."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in run(install.site)[1].splitlines()]
    after = lines[lines.index("") :]
    assert [line for line in after if len(line) > 80 and not line.startswith("run: ")] == []


@pytest.mark.parametrize("words", [(), ("--status",)])
def test_no_color_leaves_weights_alone(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Bold and dim are no colours."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    out = run(install.site, *words)[1]
    codes = {code for found in re.findall(r"\x1b\[([0-9;]*)m", out) for code in found.split(";")}
    assert codes <= {"0", "1", "2"}


def test_a_whole_patch_without_a_journal_is_clean(install: mini.Mini) -> None:
    run(install.site, "--apply", "--yes")
    shutil.rmtree(install.state)
    code, out, _ = run(install.site, "--status")

    assert code == 0
    assert out.startswith("status: untracked: Patched, and no journal of this user says so")
    assert "\nruntime: " not in out
    assert "\nrun: " not in out
    assert "nothing to repair: --revert gives every byte back\n" in out
    assert run(install.site, "--apply", "--yes")[0] == 0
    assert run(install.site, "--status", "--format", "json")[0] == 0

    (install.site / "ddtree_runtime" / "hooks.py").write_text("# mine\n")
    code, out, _ = run(install.site, "--status")
    assert code == 1
    assert out.count("\nruntime: ") == 1
    assert "ddtree_runtime/hooks.py: missing, or not as this ddtree lays it there" in out
    assert run(install.site, "--revert", "--yes")[0] == 0


def test_a_dead_end_names_every_command_that_leads_out(install: mini.Mini) -> None:
    run(install.site, "--apply", "--yes")
    install.edit(mini.CONFIG, lambda text: text + "# mine\n")
    code, out, _ = run(install.site, "--status")

    assert code == 4
    commands = [line for line in out.splitlines() if line.startswith("run: ")]
    assert commands == [f"run: ddtree patch {install.site} --revert --allow-local-edits"]
    (install.site / mini.CONFIG).unlink()
    out = run(install.site, "--status")[1]
    commands = [line for line in out.splitlines() if line.startswith("run: ")]
    assert commands == [
        "run: python -m pip install --force-reinstall --no-deps vllm==0.32.0",
        f"run: ddtree patch {install.site} --revert",
    ]


def test_a_status_says_what_to_run(install: mini.Mini) -> None:
    run(install.site, "--apply", "--yes")
    shutil.rmtree(install.site / "ddtree_runtime")
    out = run(install.site, "--status")[1]

    assert "Its hooks do nothing, as the runtime is gone." in out
    # One line for all of its files.
    assert out.count("\nruntime: ") == 1
    assert f"\nrun: ddtree patch {install.site} --revert\n" in out
