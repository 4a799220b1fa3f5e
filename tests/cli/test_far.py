"""`ddtree patch` of an install behind a real ssh server, as a command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ddtree.cli.app import app
from ddtree.patches.distribution import distribution
from ddtree.patches.far import remote
from tests.analyzers.transports import near, sshd
from tests.analyzers.transports.sshd import Sshd
from tests.patches.far import box
from tests.patches.far.box import Box

from .test_patch import broken


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A server whose commands keep their journals in a folder of its own."""
    root = tmp_path_factory.mktemp("server")
    with sshd.serve(root / "sshd", options=[f"SetEnv DDTREE_STATE={root / 'state'}"]) as running:
        yield running


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    """A tiny install, and a command whose runtime is as tiny."""
    made = box.make(tmp_path)
    small = partial(distribution, tmp_path / "runtime", tmp_path / "kernels")
    monkeypatch.setattr(remote, "distribution", lambda *_: small())
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return made


def run(folder: Path, server: Sshd, there: Box, *words: str, **more: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `ddtree patch` for the server."""
    config = near.settings(folder / "near", server, **more).ssh_config
    target = [f"{server.user}@box", "--python", str(there.install.root / "env")]
    result = CliRunner().invoke(app, ["patch", *target, "--ssh-config", str(config), *words])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("transport", ["paramiko", "openssh"])
def test_the_whole_story(tmp_path: Path, server: Sshd, there: Box, transport: str) -> None:
    """Plan, apply, status and revert; the JSON is the one of an install here."""
    go = partial(run, tmp_path, server, there, "--transport", transport, "--format", "json")
    before = there.snapshot()
    code, out, err = go()
    assert (code, err) == (0, ""), err
    plan = json.loads(out)
    assert broken(plan) == []
    assert plan["plan"]["target"] == f"{server.user}@box"
    assert there.snapshot() == before
    code, out, err = go("--apply", "--yes", "--plan", plan["plan"]["id"])
    assert (code, err) == (0, ""), err
    assert broken(json.loads(out)) == []
    code, out, _ = go("--status")
    assert (code, json.loads(out)["status"]["state"]) == (0, "applied")
    code, out, err = go("--revert", "--yes")
    assert (code, err) == (0, ""), err
    assert there.snapshot() == before


def test_the_command_of_a_plan_can_be_pasted(tmp_path: Path, server: Sshd, there: Box) -> None:
    """It names the address and the environment there."""
    code, out, err = run(tmp_path, server, there)
    assert (code, err) == (0, ""), err
    env = there.install.root / "env"
    (line,) = (line for line in out.splitlines() if line.startswith("run: "))
    config = tmp_path / "near" / "config"
    named = f"{server.user}@box --python {env} --ssh-config {config}"
    assert f"ddtree patch {named} --apply --plan " in line


def test_an_unknown_host_is_refused_before_anything(
    tmp_path: Path, server: Sshd, there: Box
) -> None:
    """With its fingerprint and the command that accepts it."""
    code, out, err = run(tmp_path, server, there, "--apply", "--yes", known="")
    assert (code, out) == (3, "")
    assert "SHA256:" in err
    assert "--accept-new" in err
    assert not (there.install.site / "ddtree_runtime").exists()
