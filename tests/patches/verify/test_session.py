"""What comes from a target is believed only as far as it is what was agreed on."""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any

import pytest

from ddtree.patches.errors import FarSideError
from ddtree.patches.verify import archive, session
from ddtree.patches.verify.evidence import Evidence
from ddtree.patches.verify.options import Options

from . import scripted
from .scripted import Scripted, line

JOB = Options().job(["vllm.config.vllm"])


def run(transport: Scripted, timeout: float = 60.0) -> tuple[Evidence, list[str]]:
    said: list[str] = []
    evidence, _ = session.evidence_of(transport, "/env/bin/python", JOB, timeout, said.append)
    return evidence, said


def test_events_become_evidence() -> None:
    """Whatever else is printed between them is no event, and signs of life say nothing."""
    noise = [b"Loading weights", b"", line("alive"), line("progress", text="decoding")]
    transport = Scripted([*noise, *scripted.lines(scripted.good()), b"never read"])
    evidence, said = run(transport)
    assert said == ["decoding"]
    assert evidence.truth is not None
    assert len(evidence.engines) == 6
    assert transport.closed
    assert transport.command[:4] == ["/env/bin/python", "-I", "-B", "-c"]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"ddtree-event {", "no JSON"),
        (b"ddtree-event " + b"[" * 100_000, "no JSON"),
        (b"ddtree-event [1]", "no object"),
        (b"ddtree-event \xff", "no JSON"),
        (b"ddtree-event {}", "without 'kind'"),
        (line("magic"), "unknown kind 'magic'"),
        (line("progress", text=3), "'text' that is not text"),
        (line("runner", runner="v3", interpreted=False), "unknown name 'v3'"),
        (line("runner", runner="v2", interpreted=1), "true or false"),
        (line("checks", part="L1", checks=[3]), "not a list of dict"),
        (line("checks", part="L1", checks=[{"name": "walk", "passed": 1}]), "true or false"),
        (line("checks", part="L1", checks=[{"name": "w", "passed": True}]), "without 'detail'"),
        (line(**{**scripted.truth(), "gaps": [[]]}), "do not belong together"),
        (line(**{**scripted.truth(), "gaps": 3}), "gaps that are no lists"),
        (line(**{**scripted.truth(), "tokens": [["a"]]}), "lists of whole numbers"),
        (line(**{**scripted.pass_("a", "b"), "offset": -1}), "a whole number"),
        (line(**{**scripted.pass_("a", "b"), "offset": True}), "a whole number"),
        (line(**scripted.engine("a", "tree", 7, counters=[])), "an object"),
        (line(**scripted.engine("a", "tree", 7, seconds=1, start_seconds="1")), "a number"),
    ],
)
def test_garbage_is_an_error_and_ends_the_target(bad: bytes, words: str) -> None:
    """With the last lines that the target printed, and an exit code of its own."""
    transport = Scripted([line("alive"), bad, line("end")])
    with pytest.raises(FarSideError) as caught:
        run(transport)
    assert words in caught.value.found
    assert caught.value.exit_code == 5
    assert caught.value.log == transport.log()
    assert transport.closed


def test_an_early_end_is_an_error() -> None:
    """Events without the last word are no verification."""
    transport = Scripted([line(**scripted.facts())], code=137)
    with pytest.raises(FarSideError, match="ended early, with exit code 137"):
        run(transport)
    assert transport.closed


def test_silence_and_lateness_are_errors() -> None:
    """A far side that hangs is ended; so is one that takes longer than it may."""
    silent = Scripted([None])
    with pytest.raises(FarSideError, match="was silent for 120 seconds"):
        run(silent, timeout=1000.0)
    late = Scripted([None])
    with pytest.raises(FarSideError, match="was not done after 0 seconds"):
        run(late, timeout=0.05)
    assert silent.closed
    assert late.closed


def test_an_interrupt_ends_the_target() -> None:
    """Whatever interrupts the near side, the far side is closed."""

    class Interrupted(Scripted):
        def chunk(self, timeout: float) -> bytes | None:
            raise KeyboardInterrupt

    transport = Interrupted([])
    with pytest.raises(KeyboardInterrupt):
        run(transport)
    assert transport.closed


def unpacked(job: dict[str, Any]) -> dict[str, bytes]:
    head, _, data = archive.packed(job).partition(b"\n")
    assert int(head) == len(data)
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        return {
            member.name: (opened.extractfile(member) or io.BytesIO()).read()
            for member in opened.getmembers()
        }


def test_the_archive_holds_the_harness_the_job_and_the_tiny_models() -> None:
    """A model of the user's own spares the tiny ones."""
    files = unpacked(JOB)
    assert json.loads(files["job.json"]) == JOB
    assert {"ddtree_harness/director.py", "ddtree_harness/oracle.py"} <= set(files)
    weights = [name for name in files if name.endswith(".safetensors")]
    assert len(weights) == 2
    # Triton finds the stand-in as an entry point, where its folder is on the path.
    entry = files["standin/ddtree_triton_cpu-1.dist-info/entry_points.txt"]
    assert entry == b"[triton.backends]\ncpu = ddtree_triton_cpu\n"
    assert {f"standin/ddtree_triton_cpu/{name}.py" for name in ("compiler", "driver")} <= set(files)
    assert b"\nName: vllm\n" in files["name/vllm-0+cpu.dist-info/METADATA"]
    own = Options(model="m", drafter="d", method="dflash").job([])
    assert not any(name.startswith("models/") for name in unpacked(own))
