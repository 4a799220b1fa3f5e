"""Plan, apply, status, revert and bundle of an install that only commands reach."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError, DdtreeError, TargetError, UsageError
from ddtree.analyzers.remote import bundle
from ddtree.analyzers.targets.resolve import open_target
from ddtree.analyzers.transports import Transport
from ddtree.analyzers.transports.local import LocalTransport
from ddtree.patches import journal, perform
from ddtree.patches.errors import AnchorError, FarSideError, RecoveryPending
from ddtree.patches.far import message, remote
from ddtree.patches.journal import Phase
from ddtree.patches.perform import Applied, Bundled, Planned, Reverted
from ddtree.patches.place import place_of
from ddtree.patches.plan import Plan
from ddtree.patches.status import State, Status
from ddtree.patches.way import Way
from tests.analyzers.targets import installs

from .. import mini
from . import box
from .box import Box, Tampered


@pytest.fixture
def far(tmp_path: Path) -> Box:
    """A tiny install elsewhere that nothing was done to."""
    return box.make(tmp_path)


def planned(far: Box) -> Plan:
    found = remote.plan(far.far, far.options)
    assert isinstance(found, Planned)
    return found.plan


def test_the_plan_is_the_one_that_is_made_there(far: Box, state: Path) -> None:
    """Byte for byte, id included; and nothing is written."""
    before = far.snapshot()
    local = perform.plan(replace(far.install.options, target=str(far.install.root / "env")))
    assert isinstance(local, Planned)
    found = planned(far)
    assert found.diff == local.plan.diff
    assert found.id == local.plan.id
    assert found == replace(local.plan, target="user@box", named=far.far.named)
    assert far.snapshot() == before
    assert not state.exists()


def test_a_plug_in_is_planned_here_and_put_there(far: Box) -> None:
    """The files there are read alone, the plan is the one that is made there, all is taken back."""
    asked = replace(far.options, way=Way.PLUGIN)
    before, files = far.snapshot(), installs.snapshot(far.install.site / "vllm")
    target = str(far.install.root / "env")
    local = perform.plan(replace(far.install.options, target=target, way=Way.PLUGIN))
    assert isinstance(local, Planned)
    found = remote.plan(far.far, asked)
    assert isinstance(found, Planned)
    assert found.plan == replace(local.plan, target="user@box", named=far.far.named)

    done = remote.apply(far.far, asked)
    assert isinstance(done, Applied)
    assert not any(".pth" in note for note in done.notes)
    assert installs.snapshot(far.install.site / "vllm") == files
    assert (far.status().state, far.status().way) == (State.APPLIED, Way.PLUGIN)
    for action in (remote.plan, remote.apply):
        with pytest.raises(ConflictError, match="is patched already, by") as caught:
            action(far.far, replace(far.options, way=Way.EDITS))
        assert "user@box" in caught.value.hint
    back = remote.revert(far.far, far.options)
    assert isinstance(back, Reverted)
    assert "no file of vLLM had been changed" in back.sentence
    assert far.snapshot() == before


def test_apply_and_revert(far: Box) -> None:
    """Both sides agree on what happened, and every byte comes back."""
    before = far.snapshot()
    asked: list[object] = []
    done = remote.apply(far.far, replace(far.options, agree=asked.append))
    assert isinstance(done, Applied)
    assert asked == [done.plan]
    assert far.status().state == State.APPLIED
    assert far.status().target == "user@box"
    # What is done from elsewhere is known at the place itself.
    there = perform.status(replace(far.install.options, target=str(far.install.root / "env")))
    assert isinstance(there, Status)
    assert there.plan_id == done.plan.id

    again = remote.apply(far.far, far.options)
    assert isinstance(again, Status)
    back = remote.revert(far.far, far.options)
    assert isinstance(back, Reverted)
    assert back.sentence.startswith("10 files are as they were before, byte for byte.")
    assert far.snapshot() == before
    assert far.status().state == State.STOCK
    nothing = remote.revert(far.far, far.options)
    assert isinstance(nothing, Status)


def test_the_answer_no_writes_nothing(far: Box) -> None:
    before = far.snapshot()

    def no(_: object) -> None:
        raise UsageError("no", expected="", hint="")

    with pytest.raises(UsageError):
        remote.apply(far.far, replace(far.options, agree=no))
    assert far.snapshot() == before


def test_a_byte_that_changes_between_plan_and_apply_is_a_refusal(far: Box) -> None:
    """The plan is made again on the other side, and is another one then."""

    def meddle(_: object) -> None:
        far.install.edit(mini.PROPOSER, lambda text: text + "# mine\n")
        # As an installer would record it, or the file would be refused as somebody else's.
        for record in far.install.site.glob("vllm-*/RECORD"):
            record.unlink()

    with pytest.raises(ConflictError, match=r"the plan is .* now, not"):
        remote.apply(far.far, replace(far.options, agree=meddle))
    assert far.status().state == State.STOCK


def test_another_plan_than_the_one_shown_is_refused(far: Box) -> None:
    with pytest.raises(ConflictError, match="not 0123456789ab"):
        remote.apply(far.far, replace(far.options, plan_id="0123456789ab"))


def test_refusals_name_what_can_be_typed_here(far: Box) -> None:
    """The hint of the other side speaks of its own paths."""
    far.install.edit(mini.RUNNER, lambda text: text.replace("def _sample(", "def _other("))
    named = str(far.install.root / "env")
    with pytest.raises(DdtreeError) as caught:
        remote.apply(far.far, far.options)
    assert caught.value.found.startswith("user@box: ")
    assert caught.value.hint == f"ddtree inspect host user@box --python {named}"

    far.install.edit(mini.RUNNER, lambda text: text.replace("def _other(", "def _sample("))
    mini.applied(far.install)
    far.install.edit(mini.RUNNER, lambda text: text + "# mine\n")
    with pytest.raises(ConflictError, match="changed since ddtree wrote it") as refused:
        remote.revert(far.far, far.options)
    command = f"ddtree patch user@box --python {named} --revert"
    assert refused.value.hint == f"{command} --allow-local-edits"
    assert far.status().repair == (refused.value.hint,)

    (far.install.site / mini.RUNNER).unlink()
    first, second = far.status().repair
    assert first.startswith("ssh user@box ")
    assert named in first
    assert second == command


def test_an_anchor_that_moved_is_refused_here(far: Box) -> None:
    """Where the edits are made; the other side is not touched."""
    far.install.edit(mini.RUNNER, lambda text: text.replace("def _sample(", "def _other("))
    for record in far.install.site.glob("vllm-*/RECORD"):
        record.unlink()
    before = far.snapshot()
    with pytest.raises(AnchorError, match="is defined 0 times"):
        remote.apply(far.far, far.options)
    assert far.snapshot() == before


def test_an_interrupted_change_is_taken_back_by_the_next_command(far: Box) -> None:
    """As on this machine, by the same code."""
    before = far.snapshot()
    remote.apply(far.far, far.options)
    with open_target(str(far.install.root / "env")) as target:
        (found,) = journal.journals(place_of(target))
    journal.enter(found, Phase.APPLYING)
    status = far.status()
    assert status.state == State.STOCK
    assert "was found and taken back" in status.notes[0]
    assert far.snapshot() == before


def test_a_bundle_is_written_here(far: Box, tmp_path: Path) -> None:
    before = far.snapshot()
    made = remote.bundle(far.far, far.options, tmp_path / "bundle")
    assert isinstance(made, Bundled)
    assert (tmp_path / "bundle" / "apply.py").is_file()
    assert far.snapshot() == before


@pytest.mark.parametrize("part", [0, 1, 1000, -1])
def test_half_a_request_changes_nothing(far: Box, part: int) -> None:
    """A command that is cut short is none."""
    before = far.snapshot()
    cut = replace(far.far, opener=Tampered(requests=part), patience=2.0)
    with pytest.raises(TargetError, match="gave no whole reply within 2 seconds"):
        remote.plan(cut, far.options)
    plan = planned(far)
    with pytest.raises(RecoveryPending, match="is not known here") as caught:
        remote._asked(cut, "apply", far.options, plan=plan.id)
    assert caught.value.hint.endswith("--status")
    assert far.snapshot() == before


@pytest.mark.parametrize("said", ["null", "[]", "{}", '{"status": 3}', '{"notes": [1]}'])
def test_a_reply_that_makes_no_sense_is_believed_in_nothing(far: Box, said: str) -> None:
    with pytest.raises(FarSideError, match="not what was asked for"):
        remote._read(far.far, ast.literal_eval(said.replace("null", "None")))


def test_garbage_instead_of_a_reply(far: Box) -> None:
    """A change may have happened all the same, which the message says."""
    liar = replace(far.far, opener=Tampered(reply=[b"Welcome!\n", b"\0" * 100]))
    with pytest.raises(TargetError, match="ended before its reply was whole"):
        remote.status(liar, far.options)
    with pytest.raises(RecoveryPending):
        remote._asked(liar, "revert", far.options)


@pytest.mark.parametrize("action", ["apply", "plan"])
def test_an_interrupted_change_says_what_is_not_known(far: Box, action: str) -> None:
    """With the command that tells; nothing needs to be said where nothing was to be changed."""
    said: list[str] = []

    @contextmanager
    def interrupted() -> Iterator[Transport]:
        raise KeyboardInterrupt
        yield LocalTransport()

    stopped = replace(far.far, opener=interrupted, say=said.append)
    with pytest.raises(KeyboardInterrupt):
        remote._asked(stopped, action, far.options)
    told = "whether the apply on user@box was done is not known here; run: ddtree patch user@box "
    assert [line.startswith(told) for line in said] == [True] * (action == "apply")


def test_what_is_sent_is_what_runs_here() -> None:
    """Texts of files, none of libcst, and syntax that Python 3.10 reads."""
    texts = bundle.texts(remote._PROGRAM)
    names = {name.rstrip(".") for name in texts}
    assert {"ddtree.patches.apply", "ddtree.patches.recipes.v1", "packaging.version"} <= names
    assert not {"ddtree.patches.edit", "libcst"} & names
    for name, text in texts.items():
        ast.parse(text, name, feature_version=message.OLDEST)


def test_it_runs_without_anything_installed(far: Box) -> None:
    """The interpreter there has neither packaging nor anything else of ours."""
    python = far.install.root / "env" / "bin" / "python"
    done = subprocess.run(
        [python, "-c", "import packaging"], capture_output=True, check=False, text=True
    )
    assert "ModuleNotFoundError" in done.stderr
    assert sys.prefix not in str(far.install.root)
    assert far.status().state == State.STOCK
