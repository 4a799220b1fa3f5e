"""Where a patch lies: packages that several sites lead to, patches of other releases, lost ones."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import hints, journal, marks, perform
from ddtree.patches import preflight as looked_at
from ddtree.patches.errors import RolledBack
from ddtree.patches.processes import Process, Processes
from ddtree.patches.status import State
from tests.analyzers.targets import installs

from . import mini

# Two sites that lead to one package by links


@pytest.fixture
def sites(tmp_path: Path) -> tuple[mini.Mini, mini.Mini]:
    """Two installs of the same real folder."""
    first, second = mini.make(tmp_path / "first"), mini.make(tmp_path / "second")
    real = tmp_path / "shared" / "vllm"
    real.parent.mkdir()
    (first.site / "vllm").rename(real)
    shutil.rmtree(second.site / "vllm")
    for one in (first, second):
        (one.site / "vllm").symlink_to(real)
    return first, second


def test_a_patch_through_another_site_is_no_damage_of_this_one(
    sites: tuple[mini.Mini, mini.Mini], tmp_path: Path
) -> None:
    first, second = sites
    before = mini.snapshot(tmp_path)
    mini.applied(first)
    assert first.status().state == State.APPLIED

    status = second.status()
    assert status.state == State.DAMAGED
    assert str(first.site) in status.sentence
    assert status.runtime == ()
    assert status.repair == (hints.patch(str(second.site), "--revert"),)
    with pytest.raises(ConflictError) as caught:
        second.apply()
    assert caught.value.hint == status.repair[0]
    outcome = second.revert()
    assert isinstance(outcome, perform.Reverted)
    assert f"The runtime in {first.site} is removed." in outcome.sentence
    shutil.rmtree(tmp_path / "state")
    assert mini.snapshot(tmp_path) == before


def test_the_other_site_s_crash_is_taken_back_where_it_happened(
    sites: tuple[mini.Mini, mini.Mini], tmp_path: Path
) -> None:
    first, second = sites
    before = mini.snapshot(tmp_path)
    mini.applied(first)
    (found,) = journal.journals(mini.place_of(mini.Mini(tmp_path, tmp_path / "shared")))
    journal.enter(found, journal.Phase.REVERTING)
    assert second.status().state == State.STOCK
    shutil.rmtree(tmp_path / "state")
    assert mini.snapshot(tmp_path) == before


# A lost patch and an apply that is refused


def upgraded(install: mini.Mini) -> None:
    mini.applied(install)
    shutil.rmtree(install.site / f"vllm-{mini.VERSION}.dist-info")
    installs.installed(install.site, "vllm", "0.33.0", mini.FILES)
    assert install.status().state == State.LOST


def process(*_: object, **__: object) -> Processes:
    return Processes((Process(1, "vllm serve", "runs"),), 0)


def obstacle(*_: object, **__: object) -> list[str]:
    return ["something is in the way"]


@pytest.mark.parametrize(
    ("name", "value"), [("processes_of", process), ("_full", obstacle), ("_kind", obstacle)]
)
def test_a_refused_apply_deletes_nothing(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch, name: str, value: Callable[..., Any]
) -> None:
    upgraded(install)
    before = mini.snapshot(install.root)
    with monkeypatch.context() as broken:
        broken.setattr(looked_at, name, value)
        with pytest.raises(ConflictError):
            install.apply()
    with pytest.raises(ConflictError, match="the plan is"):
        install.apply(plan_id="0123456789ab")
    assert mini.snapshot(install.root) == before
    assert install.status().state == State.LOST
    mini.applied(install)
    assert install.status().state == State.APPLIED


def test_a_failed_apply_says_what_of_the_lost_patch_is_gone(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgraded(install)

    def check(*_: object, **__: object) -> None:
        raise ConflictError("not as planned", expected="it", hint="it")

    with monkeypatch.context() as broken:
        broken.setattr("ddtree.patches.apply.check", check)
        with pytest.raises(RolledBack, match=r"but for what was left of the lost patch"):
            install.apply()
    assert install.status().state == State.STOCK


# Journals and edits of older releases


def by_a_former_release(install: mini.Mini) -> None:
    """What the release before wrote: another guard, and a journal that knows no site."""
    mini.applied(install)
    (path,) = install.state.rglob("journal.json")
    body = json.loads(path.read_text())
    del body["site"], body["digest"]
    body["format"] = 2
    for item in body["edits"]:
        file = install.site / item["file"]
        text = file.read_text()
        for guard in (marks.GUARD, marks.CONFIG_GUARD):
            text = text.replace(guard, marks._FORMER)
        assert marks._FORMER in text
        file.write_text(text)
        item["new_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(body | {"digest": digest}))


@pytest.mark.parametrize("known", [True, False])
def test_a_patch_of_a_former_release_is_understood(install: mini.Mini, known: bool) -> None:
    before = mini.snapshot(install.site)
    by_a_former_release(install)
    if not known:
        shutil.rmtree(install.state)
    status = install.status()
    assert status.state == (State.APPLIED if known else State.UNTRACKED)
    assert known or status.outdated
    install.revert()
    assert mini.snapshot(install.site) == before


def test_a_former_release_s_crash_is_taken_back(install: mini.Mini) -> None:
    before = mini.snapshot(install.site)
    by_a_former_release(install)
    (path,) = install.state.rglob("journal.json")
    body = json.loads(path.read_text())
    del body["digest"]
    body["phase"] = "applying"
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(body | {"digest": digest}))
    assert install.status().state == State.STOCK
    assert mini.snapshot(install.site) == before
