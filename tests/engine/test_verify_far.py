"""`ddtree verify` of a real vLLM behind a real ssh server; nothing of it stays there."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.analyzers.transports import near, proxy, sshd
from tests.analyzers.transports.sshd import Sshd

from ..cli.test_verify import errors
from . import installs, verified
from .environment import engine_python
from .test_verify import engines_run, outcomes

pytestmark = pytest.mark.engine


@dataclass(frozen=True, slots=True)
class There:
    """A patched environment behind a server, with a folder of its own for temporary files."""

    environment: Path
    temporary: Path
    server: Sshd
    words: list[str]
    # Once it is set, the next bytes from there end the link.
    cut: threading.Event


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[There]:
    """What is asked for by its address, over there."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    state, temporary, environment = (tmp_path / name for name in ("state", "tmp", "environment"))
    temporary.mkdir()
    installs.environment(engine_python(), environment)
    monkeypatch.setenv("DDTREE_STATE", str(state))
    options = [f"SetEnv DDTREE_STATE={state} TMPDIR={temporary}"]
    cut = threading.Event()
    with (
        sshd.serve(tmp_path / "server", options=options) as server,
        proxy.between(server.port, lambda data, _: None if cut.is_set() else data) as port,
    ):
        known = f"[127.0.0.1]:{port} {sshd.public(server.host_key)}\n"
        lines = [f"Port {port}"]
        config = near.settings(tmp_path / "near", server, known=known, lines=lines).ssh_config
        words = [f"{server.user}@box", "--ssh-config", str(config), "--python", str(environment)]
        yield There(environment, temporary, server, words, cut)


def test_a_verification_elsewhere_passes(there: There, tmp_path: Path) -> None:
    """First it is refused, since nothing is patched; then it is the report of an install here."""
    code, out, err = verified.run("verify", *there.words, "--level", "L1")
    assert (code, out) == (4, "")
    config = tmp_path / "near" / "config"
    named = f"{there.server.user}@box --python {there.environment} --ssh-config {config}"
    assert f"run: ddtree patch {named} --apply" in err

    verified.patch(there.environment, tmp_path / "work")
    levels = ["--level", "L1", "--level", "L4"]
    code, out, err = verified.run("verify", *there.words, *levels, "--format", "json")
    assert (code, verified.beside_progress(err)) == (0, ""), out + err
    assert "] L1: walks" in err
    report = json.loads(out)
    assert errors(report) == []
    assert report["subject"]["target"] == f"{there.server.user}@box"
    assert {level: outcomes(report)[level] for level in ("L1", "L4")} == {
        "L1": "passed",
        "L4": "passed",
    }
    assert list(there.temporary.iterdir()) == []
    assert verified.processes(str(there.environment)) == []


@pytest.mark.parametrize("how", ["interrupt", "kill", "link"])
def test_nothing_stays_there(there: There, tmp_path: Path, how: str) -> None:
    """Whether a person, the system or the network ends the command."""
    verified.patch(there.environment, tmp_path / "work")
    process = verified.command("verify", *there.words, "--level", "L5", "--transport", "paramiko")
    folder = engines_run(there.temporary)
    assert verified.processes(folder.name)
    if how == "link":
        there.cut.set()
    else:
        process.send_signal(signal.SIGINT if how == "interrupt" else signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    if how == "interrupt":
        assert process.returncode == 130
        assert verified.beside_progress(err) == "interrupted\n"
    elif how == "link":
        assert process.returncode in (3, 5), err
        assert "Traceback" not in err
    until = time.monotonic() + 60
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.2)
    assert verified.processes(folder.name) == []
    assert list(there.temporary.iterdir()) == []
