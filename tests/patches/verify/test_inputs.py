"""Models and prompts that cannot be used are named before anything is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ddtree.analyzers.errors import TargetError, UsageError
from ddtree.patches.errors import FarSideError, Unserved
from ddtree.patches.verify import conclude
from ddtree.patches.verify.evidence import Evidence
from ddtree.patches.verify.fields import Fields
from ddtree.patches.verify.harness import events, inputs, plan
from ddtree.patches.verify.options import Options
from ddtree.patches.verify.report import Outcome, Pays, Report, Verdict
from tests.cli.test_verify import errors

from . import scripted
from .test_judge import failed, level, ready

Refused = tuple[str, str, str]


def model(folder: Path, **config: Any) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"vocab_size": 64, **config}))
    return str(folder)


@pytest.fixture
def looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that looks at what was asked for, and gives what was refused."""
    sent: list[Refused] = []

    def emit(kind: str, **fields: Any) -> None:
        if kind == "refused":
            sent.append((fields["what"], fields["found"], fields["expected"]))

    monkeypatch.setattr(events, "emit", emit)

    def look(**given: Any) -> Refused | None:
        folder = tmp_path / "job"
        folder.mkdir(exist_ok=True)
        inputs.run(Options(**given).job([]), folder, plan.INPUTS)
        assert (folder / plan.REFUSED).exists() == bool(sent)
        return sent[0] if sent else None

    return look


def prompts(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "prompts"
    path.write_text("\n".join(lines))
    return path


def test_a_model_that_is_there(looked: Any, tmp_path: Path) -> None:
    """With prompts whose tokens it knows."""
    given = prompts(tmp_path, "[1, 2]", "[63]")
    drafter = model(tmp_path / "d")
    assert looked(model=model(tmp_path / "m"), drafter=drafter, prompts=given) is None


@pytest.mark.parametrize("name", ["/no/such/model", "./here", "~/models/m", "a/b/c"])
def test_a_path_that_leads_nowhere(looked: Any, name: str) -> None:
    """It is no name of the hub."""
    kind, found, _ = looked(model=name, drafter="/no/drafter")
    assert (kind, found) == ("target", f"--model {name}: there is no such folder")


def test_a_drafter_that_is_not_there(looked: Any, tmp_path: Path) -> None:
    """The target is."""
    kind, found, _ = looked(model=model(tmp_path / "m"), drafter="/no/drafter")
    assert (kind, found) == ("target", "--drafter /no/drafter: there is no such folder")


def test_a_folder_without_a_model(looked: Any, tmp_path: Path) -> None:
    """Or with one that cannot be read."""
    (tmp_path / "empty").mkdir()
    kind, found, _ = looked(model=str(tmp_path / "empty"), method="ngram")
    assert (kind, "holds no config.json" in found) == ("target", True)


def test_a_configuration_that_is_no_json(looked: Any, tmp_path: Path) -> None:
    """Half a download."""
    (tmp_path / "config.json").write_text("{")
    kind, found, _ = looked(model=str(tmp_path), method="ngram")
    assert (kind, "config.json cannot be read" in found) == ("target", True)


@pytest.mark.parametrize("config", [{}, {"vocab_size": None, "text_config": {"vocab_size": 64}}])
def test_tokens_that_the_model_does_not_know(looked: Any, tmp_path: Path, config: Any) -> None:
    """The prompt, the token and the size are named."""
    path = tmp_path / "m"
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"vocab_size": 64} | config))
    if config:
        (path / "config.json").write_text(json.dumps({"text_config": {"vocab_size": 64}}))
    given = prompts(tmp_path, "[1, 2]", "[3, 64]")
    kind, found, expected = looked(model=str(path), method="ngram", prompts=given)
    assert kind == "usage"
    assert found == f"prompt 2 of --prompts holds the token 64, and {path} has 64"
    assert expected == "token ids from 0 to 63"


def test_tokens_that_the_tiny_model_does_not_know(
    looked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its vocabulary is that of the folder that was sent along."""
    (tmp_path / "job").mkdir()
    model(tmp_path / "job" / "models" / "tiny-qwen3-target", vocab_size=512)
    model(tmp_path / "job" / "models" / "tiny-dflash-drafter")
    kind, found, _ = looked(prompts=prompts(tmp_path, "[512]"))
    assert (kind, "the tiny model has 512" in found) == ("usage", True)


def test_text_for_a_model_without_a_tokenizer(looked: Any, tmp_path: Path) -> None:
    """The prompts that come with ddtree are text."""
    path = model(tmp_path / "m")
    kind, found, expected = looked(model=path, method="ngram")
    assert (kind, found) == (
        "usage",
        f"--model {path} has no tokenizer, which prompts that are text need",
    )
    assert "--prompts FILE with token ids" in expected


def test_a_tokenizer_that_cannot_be_loaded(
    looked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own first words are quoted."""
    from ddtree.patches.verify.harness import prompts as module

    def encoder(job: dict[str, Any]) -> Any:
        raise OSError(f"Can't load the tokenizer of {job['model']}.\nMore lines")

    monkeypatch.setattr(module, "_encoder", encoder)
    path = model(tmp_path / "m")
    (tmp_path / "m" / "tokenizer.json").write_text("{")
    kind, found, expected = looked(model=path, method="ngram")
    assert kind == "usage"
    assert "has no tokenizer for prompts that are text: Can't load" in found
    assert "More lines" not in found
    assert "--prompts FILE with token ids" in expected


def concluded(sent: list[dict[str, Any]], **given: Any) -> Report:
    evidence = Evidence()
    for event in sent:
        evidence.add(event["kind"], Fields(event))
    options = Options(**given)
    return conclude.report(options, ready(), options.job([]), evidence, ("last words",), 1.0)


@pytest.mark.parametrize(
    ("what", "kind", "code", "hint"),
    [
        ("target", TargetError, 3, "ddtree verify /env --model MODEL --drafter DRAFTER"),
        ("usage", UsageError, 2, "ddtree verify /env --model m --drafter d --prompts FILE"),
    ],
)
def test_a_refusal_keeps_the_target(what: str, kind: Any, code: int, hint: str) -> None:
    """And is an error of the user's, not of ddtree's."""
    event = {"kind": "refused", "what": what, "found": "no\x1b[31m", "expected": "yes"}
    with pytest.raises(kind) as caught:
        concluded([event], model="m", drafter="d")
    assert (caught.value.exit_code, caught.value.hint) == (code, hint)
    assert "\x1b" not in caught.value.found


def imported() -> list[dict[str, Any]]:
    return [scripted.facts(), scripted.checks("imports", "vllm.config.vllm")]


def test_a_model_that_vllm_does_not_serve() -> None:
    """Of the user's own it is a wrong target; the tiny one's is a defect."""
    with pytest.raises(Unserved) as caught:
        concluded([*imported(), failed("plain")], model="m", drafter="d")
    assert (caught.value.exit_code, caught.value.hint) == (3, "ddtree verify /env")
    assert caught.value.log == ("last words",)
    with pytest.raises(FarSideError):
        concluded([*imported(), failed("plain")])


def test_what_had_run_is_reported_all_the_same() -> None:
    """With the reason why the rest was not; and never as passed."""
    units = [scripted.checks("L1", "walk"), scripted.checks("L2", "walk, torch")]
    report = concluded([*units, *imported(), failed("plain")], model="m", drafter="d")
    assert level(report, "L1").outcome == level(report, "L2").outcome == Outcome.PASSED
    for name in ("L3", "L4", "L5"):
        assert level(report, name).outcome == Outcome.NOT_RUN
        assert level(report, name).reason.startswith(
            "vLLM gave nothing without speculation: ValueError: ddtree: a sliding window"
        )
    assert (report.verdict, report.pays) == (Verdict.FAILED, Pays.NOT_MEASURED)
    from ddtree.cli.render.verify import json as form
    from ddtree.cli.render.verify import phrases

    assert phrases.headline(report) == (
        "L3, L4, L5 not run: vLLM does not serve this model as it is"
    )
    assert errors(json.loads(form.render(report))) == []


def test_what_the_harness_says_itself_needs_no_type(capsys: pytest.CaptureFixture[str]) -> None:
    """Its sentence is all."""
    assert events.reason(events.Unable("there is no engine")) == "there is no engine"
    assert events.reason(ValueError("\nno\nmore")) == "ValueError: no"
    assert events.reason(KeyError()) == "KeyError: KeyError"


def test_relative_folders_are_whole_paths_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The harness works in another folder."""
    model(tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    found = Options(model="m", drafter="org/name").at_home()
    assert (found.model, found.drafter) == (str(tmp_path / "m"), "org/name")
