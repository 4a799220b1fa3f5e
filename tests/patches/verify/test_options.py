"""What can be asked for, and what is told to the far side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ddtree.analyzers.errors import UsageError
from ddtree.patches.verify.harness import events, plan, prompts, runners
from ddtree.patches.verify.options import Options, read_prompts


def job(**given: Any) -> dict[str, Any]:
    return Options(**given).job(["vllm.config.vllm"])


def test_the_tiny_model_is_the_default() -> None:
    """Float32, two budgets, a block drafter."""
    found = job()
    assert (found["model"], found["method"], found["dtype"]) == (None, "dflash", "float32")
    assert found["budgets"] == [7, 32]
    own = job(model="m", drafter="d", budgets=(64, 16, 64))
    assert (own["method"], own["dtype"], own["budgets"]) == (None, "auto", [16, 64])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"drafter": "d"}, "for a --model of your own"),
        ({"method": "eagle"}, "for a --model of your own"),
        ({"model": "m"}, "a --model without a --drafter"),
        ({"model": "m", "method": "eagle3"}, "without a --drafter for eagle3"),
        ({"budgets": (0,)}, "--budget "),
        ({"budgets": (7, 129)}, "--budget "),
        ({"tokens": 15}, "--tokens 15"),
    ],
)
def test_what_does_not_belong_together(given: dict[str, Any], words: str) -> None:
    """A usage error that says what is expected."""
    with pytest.raises(UsageError, match=words):
        Options(**given)


def test_drafters_that_need_no_model() -> None:
    """The target's own heads, or its text."""
    for method in ("mtp", "ngram"):
        assert job(model="m", method=method)["method"] == method


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One.\n\n Two. \n", [{"text": "One."}, {"text": "Two."}]),
        ('"One."\n{"prompt": "Two."}\n', [{"text": "One."}, {"text": "Two."}]),
        ('[1, 2]\n{"prompt_token_ids": [3]}\n', [{"tokens": [1, 2]}, {"tokens": [3]}]),
        ('"quoted" text\nand more\n', [{"text": '"quoted" text'}, {"text": "and more"}]),
    ],
)
def test_prompts(tmp_path: Path, text: str, found: list[dict[str, Any]]) -> None:
    """Text or JSON, a line each."""
    path = tmp_path / "prompts"
    path.write_text(text, encoding="utf-8")
    assert read_prompts(path) == found
    assert job(model="m", method="mtp", prompts=path)["prompts"] == found


def test_the_tiny_model_has_no_tokenizer(tmp_path: Path) -> None:
    """Text is refused before anything runs."""
    path = tmp_path / "prompts"
    path.write_text("One.\n")
    with pytest.raises(UsageError, match="no tokenizer"):
        job(prompts=path)
    path.write_text("[1, 2]\n")
    assert job(prompts=path)["prompts"] == [{"tokens": [1, 2]}]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n \n",
        b"[1, -2]\n",
        b"[]\n",
        b'{"text": "a"}\n',
        b'["a"]\n',
        b"{\n",
        b"[true]",
        b"\xff\n",
    ],
)
def test_prompts_that_are_none(tmp_path: Path, data: bytes) -> None:
    """The line is named."""
    path = tmp_path / "prompts"
    path.write_bytes(data)
    with pytest.raises(UsageError):
        read_prompts(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_prompts(tmp_path / "nothing")


def names(found: dict[str, Any]) -> list[str]:
    return [name for name, _ in plan.roles(found)]


def test_engines_are_started_for_the_levels_that_need_them() -> None:
    """What others are compared with comes first."""
    assert names(job()) == ["plain", "chain", "width 1", "tree 7", "tree 32", "oracle"]
    assert names(job(levels=("L3",))) == ["plain", "oracle"]
    assert names(job(levels=("L4",))) == ["plain", "chain", "width 1"]
    assert "width 1" not in names(job(model="m", method="ngram"))


def parts(asked: dict[str, Any], runner: str | None = "v1") -> dict[str, dict[str, str]]:
    """Processes and their variables, where vLLM takes this runner if nobody asks for one."""
    return dict(plan.parts(asked, lambda: {**asked, "runner": asked["runner"] or runner}))


def test_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for all tiny engines, one for each of a user's own; interpreted without a GPU."""
    monkeypatch.setattr(plan, "has_gpu", lambda: False)
    assert list(parts(job())) == ["L1", "L2", "engines"]
    assert parts(job())["L2"]["TRITON_INTERPRET"] == "1"
    # Only engines have controls, and only the harness allows them.
    assert parts(job())["engines"]["DDTREE_CONTROLS"] == "1"
    assert list(parts(job(levels=("L1",)))) == ["L1", "imports"]
    own = job(model="m", drafter="d", levels=("L4",))
    assert list(parts(own)) == ["inputs", "imports", "plain", "chain", "width 1"]
    monkeypatch.setattr(plan, "has_gpu", lambda: True)
    assert "TRITON_INTERPRET" not in parts(job())["L2"]


def test_the_runner_is_the_one_that_was_asked_for_or_that_vllm_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All engines are told the same; the process that asks vLLM is told nothing."""
    monkeypatch.setattr(plan, "has_gpu", lambda: True)
    own = job(model="m", drafter="d", levels=("L4",))
    for taken, told in (("v1", "0"), ("v2", "1")):
        found = parts(own, taken)
        assert plan.RUNNER not in found.pop("imports")
        assert found.pop("inputs") == {}
        assert {one[plan.RUNNER] for one in found.values()} == {told}
    asked = parts({**own, "runner": "v2"}, "v1")
    del asked["inputs"]
    assert {one[plan.RUNNER] for one in asked.values()} == {"1"}
    assert not any("TRITON_INTERPRET" in one for one in asked.values())
    # What vLLM could not even be asked cannot run.
    assert list(parts(own, None)) == ["inputs", "imports"]
    monkeypatch.setattr(plan, "has_gpu", lambda: False)
    assert parts(job(runner="v2"))["engines"]["TRITON_INTERPRET"] == "1"
    assert "TRITON_INTERPRET" not in parts(job(runner="v1"))["engines"]


def test_what_is_known_of_the_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for, found by an earlier process, told by the environment, or not known."""
    monkeypatch.delenv(plan.RUNNER, raising=False)
    assert runners.known(job(), tmp_path)["runner"] is None
    monkeypatch.setenv(plan.RUNNER, "1")
    assert runners.known(job(), tmp_path)["runner"] == "v2"
    (tmp_path / runners.FILE).write_text("v1")
    assert runners.known(job(), tmp_path)["runner"] == "v1"
    assert runners.known(job(runner="v2"), tmp_path)["runner"] == "v2"


def test_a_runner_object_says_which_it_is() -> None:
    """By its classes' modules, subclasses for a platform included."""

    class Base:
        __module__ = "vllm.v1.worker.gpu.model_runner"

    class Platform(Base):
        __module__ = "vllm.v1.worker.cpu.model_runner"

    class Old:
        __module__ = "vllm.v1.worker.cpu_model_runner"

    assert runners.kind(Platform()) == "v2"
    assert runners.kind(Old()) == "v1"


def test_settings_of_engines(tmp_path: Path) -> None:
    """Stock engines have no trees; on a GPU trees get what they ask for, and nothing is eager."""
    asked = job(runner="v1")
    cpu = {one.role: one for one in plan.cases(asked, tmp_path, [5, 9], gpu=False)}
    assert all("additional_config" not in cpu[role].engine for role in ("plain", "chain"))
    assert "speculative_config" not in cpu["plain"].engine
    assert cpu["width1"].engine["additional_config"] == {"ddtree": {"budget": 7, "max_siblings": 1}}
    assert cpu["width1"].engine["speculative_config"] == cpu["chain"].engine["speculative_config"]
    assert cpu["oracle"].engine["speculative_config"]["model"].endswith(".oracle.Oracle")
    gpu = {one.role: one for one in plan.cases(asked, tmp_path, [5, 9], gpu=True)}
    assert not any("enforce_eager" in one.engine for one in gpu.values())
    tree = gpu["tree"].engine
    assert tree["compilation_config"] == {"cudagraph_mode": "PIECEWISE"}
    assert tree["attention_backend"] == "TRITON_ATTN"
    given = {"attention_config": {"backend": "FLASH_ATTN"}}
    chosen = plan.cases(job(runner="v1", engine=given), tmp_path, [5], gpu=True)
    assert not any("attention_backend" in one.engine for one in chosen)
    assert tree["additional_config"]["ddtree"]["allow_untested_device"] is True
    assert tree["async_scheduling"] is gpu["plain"].engine["async_scheduling"] is False
    assert not {"compilation_config", "attention_backend"} & set(gpu["chain"].engine)
    own = job(model="m", method="ngram", engine={"max_num_seqs": 3})
    assert all(one.engine["max_num_seqs"] == 3 for one in plan.cases(own, tmp_path, [5], gpu=True))


def test_settings_of_engines_on_the_v2_runner(tmp_path: Path) -> None:
    """The oracle takes the drafter's place later, and vLLM schedules as it likes."""
    gpu = {one.role: one.engine for one in plan.cases(job(runner="v2"), tmp_path, [5, 9], gpu=True)}
    assert gpu["oracle"]["speculative_config"] == gpu["chain"]["speculative_config"]
    assert gpu["oracle"]["additional_config"]["ddtree"]["budget"] == 32
    assert not any("async_scheduling" in engine for engine in gpu.values())


def test_what_vllm_is_asked_its_runner_for(tmp_path: Path) -> None:
    """The stock chain's model, drafter and arguments; trees would be refused at once or not."""
    given = job(model="m", drafter="d", method="eagle3", engine={"tensor_parallel_size": 2})
    assert plan.chain(given, tmp_path) == {
        "model": "m",
        "speculative_config": {"num_speculative_tokens": 4, "method": "eagle3", "model": "d"},
        "dtype": "auto",
        "tensor_parallel_size": 2,
    }


def test_the_drafter_s_depth(tmp_path: Path) -> None:
    """A block drafter's block less the first token."""
    (tmp_path / "config.json").write_text(json.dumps({"block_size": 16}))
    assert plan.depth_of("dflash", str(tmp_path)) == 15
    assert plan.depth_of("dflash", "somebody/something") == 7
    assert plan.depth_of("eagle3", None) == 4


@pytest.mark.parametrize("tokens", [16, 24, 96, 1000])
def test_stretches_lie_within_the_continuation(tokens: int) -> None:
    """From its start to its end."""
    offsets, length = plan.segments(job(tokens=tokens))
    assert offsets[0] == 0
    assert offsets[-1] + length == tokens
    assert len(offsets) == plan.ROUNDS >= 10


def test_under_the_interpreter_less_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its times are not compared, so that few stretches and few requests are enough."""
    monkeypatch.setattr(plan, "has_gpu", lambda: False)
    monkeypatch.setattr(events, "emit", lambda *_, **__: None)
    slow = job(runner="v2")
    offsets, length = plan.segments(slow)
    assert len(offsets) == 2
    assert offsets[-1] + length == slow["tokens"]
    assert prompts.of(slow) == prompts.of(job(runner="v1"))[: prompts.INTERPRETED]


def test_prompts_on_the_far_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny model takes token ids alone, and the seed decides which."""
    monkeypatch.setattr(events, "emit", lambda *_, **__: None)
    assert prompts.of(job()) == prompts.of(job()) != prompts.of(job(seed=2))
    given = {**job(), "prompts": [{"tokens": [1]}]}
    assert prompts.of(given) == [[1]]
    with pytest.raises(ValueError, match="no tokens"):
        prompts.of({**job(), "prompts": [{"tokens": [1]}, {"tokens": []}]})
