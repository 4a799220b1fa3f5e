"""`ddtree inspect host` of installs behind a real ssh server, and of hosts that are none."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ddtree.cli.app import app
from tests.analyzers import mini
from tests.analyzers.remote.test_report import CHAIN
from tests.analyzers.transports import near, proxy, sshd
from tests.analyzers.transports.conftest import nobodys_agent, server
from tests.analyzers.transports.sshd import Sshd, needs_accounts, public, serve

__all__ = ["nobodys_agent", "server"]

BOTH = pytest.mark.parametrize("transport", ["paramiko", "openssh"])


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A tiny install that verifies along a chain."""
    return mini.install(tmp_path, CHAIN)


def ddtree(*words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.stdout, result.stderr


def inspect(folder: Path, box: Sshd, site: Path, *words: str, **more: Any) -> tuple[int, str, str]:
    """Inspect the install of the host `box`."""
    config = str(near.settings(folder, box, **more).ssh_config)
    options = ["--no-cache", "--python", str(site), "--ssh-config", config]
    return ddtree("inspect", "host", "ssh://box", *options, *words)


def bare(out: str) -> Any:
    """A report without the one line that differs."""
    report = json.loads(out)
    del report["target"]
    return report


@BOTH
def test_the_report_is_the_one_of_an_install_here(
    tmp_path: Path, server: Sshd, site: Path, transport: str
) -> None:
    words = ["--format", "json", "--require", "linear"]
    here = ddtree("inspect", "host", str(site), "--no-cache", *words)
    there = inspect(tmp_path / "near", server, site, *words, "--transport", transport)
    assert (there[0], here[0]) == (0, 0), there[2]
    assert bare(there[1]) == bare(here[1])


@BOTH
def test_a_noisy_rc_file_changes_nothing(
    tmp_path: Path, server: Sshd, site: Path, transport: str
) -> None:
    needs_accounts()
    rc = "echo welcome to the box; echo >&2 'no mail'; printf '\\001ddtree'\n"
    words = ["--format", "json", "--transport", transport]
    quiet = inspect(tmp_path / "near", server, site, *words)
    with serve(tmp_path / "noisy", key=server.key, rc=rc) as noisy:
        loud = inspect(tmp_path / "near2", noisy, site, *words)
    assert loud[0] == quiet[0]
    assert loud[1] == quiet[1]


@BOTH
def test_the_command_that_accepts_a_new_key_can_be_pasted(
    tmp_path: Path, server: Sshd, site: Path, transport: str
) -> None:
    """Once it was run, everything works as if the host had always been known."""
    folder, words = tmp_path / "near", ["--transport", transport]
    code, out, err = inspect(folder, server, site, *words, known="")
    assert (code, out) == (3, "")
    assert "error: " in err
    (line,) = (line for line in err.splitlines() if line.startswith("run: "))
    ddtree(*shlex.split(line.removeprefix("run: "))[1:])
    assert (folder / "known_hosts").read_text() == server.known
    assert inspect(folder, server, site, *words, known=server.known)[0] == 0


@BOTH
def test_a_man_in_the_middle_is_told_nothing(
    tmp_path: Path, server: Sshd, site: Path, transport: str
) -> None:
    other = sshd.make_key(tmp_path / "other")
    known = f"[127.0.0.1]:{server.port} {public(other)}\n"
    words = ["--accept-new", "--transport", transport]
    code, out, err = inspect(tmp_path / "near", server, site, *words, known=known)
    assert (code, out) == (3, "")
    assert "someone may be in the middle" in err
    assert (tmp_path / "near" / "known_hosts").read_text() == known


@BOTH
@pytest.mark.parametrize(
    "instead",
    [
        "head -c 300000 /dev/zero",
        "printf '\\001ddtree\\n\\033[2J'; yes garbage | head -n 10000",
        "echo this account is closed; exit 1",
    ],
)
def test_a_reply_of_garbage(
    tmp_path: Path, server: Sshd, site: Path, transport: str, instead: str
) -> None:
    options = [f"ForceCommand {instead}"]
    with serve(tmp_path / "box", key=server.key, options=options) as box:
        code, out, err = inspect(tmp_path / "near", box, site, "--transport", transport)
    assert (code, out) == (3, "")
    assert err.startswith("error: ")
    assert "Traceback" not in err
    assert "\x1b" not in err


@BOTH
def test_a_link_that_is_cut_in_mid_reply(
    tmp_path: Path, server: Sshd, site: Path, transport: str
) -> None:
    """Shortly before the end of everything that comes back."""
    most = [1 << 30]
    total = [0]

    def cut(data: bytes, so_far: int) -> bytes | None:
        total[0] = so_far + len(data)
        return data if total[0] < most[0] else None

    with proxy.between(server.port, cut) as port:
        lines = [f"Port {port}", "HostKeyAlias real"]
        near_ = {"known": f"real {public(server.host_key)}\n", "lines": lines}
        words = ["--transport", transport]
        assert inspect(tmp_path / "near", server, site, *words, **near_)[0] == 0
        most[0] = total[0] - 500
        code, out, err = inspect(tmp_path / "near", server, site, *words, **near_)
    assert (code, out) == (3, "")
    assert "error: the connection to ssh://box broke" in err


def test_hosts_that_fail_do_not_hide_the_others(
    tmp_path: Path, server: Sshd, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mute, closed, unknown, refusing, and one that works."""
    monkeypatch.setattr("ddtree.analyzers.transports.ssh.connect.BANNER_SECONDS", 2.0)
    settings = near.settings(tmp_path / "near", server)
    assert settings.ssh_config
    text = settings.ssh_config.read_text()
    key = f"  IdentityFile {server.key}\n"
    with proxy.listening() as (_, mute):
        hosts = {
            "mute": f"  Port {mute}\n{key}",
            "closed": f"  Port {sshd.free_port()}\n{key}",
            "unknown": f"  Port {server.port}\n  UserKnownHostsFile {tmp_path}/none\n{key}",
            "refusing": f"  Port {server.port}\n  IdentityFile {tmp_path}/none\n",
        }
        blocks = "".join(
            f"Host {name}\n  HostName 127.0.0.1\n{rest}" for name, rest in hosts.items()
        )
        settings.ssh_config.write_text(blocks + text)
        (tmp_path / "list").write_text("".join(f"{name} {site}\n" for name in [*hosts, "box"]))
        words = ["--ssh-config", str(settings.ssh_config), "--no-cache", "--format", "json"]
        code, out, _ = ddtree("inspect", "host", "--hosts", str(tmp_path / "list"), *words)
    assert code == 3
    listed = {item["target"].removeprefix("ssh://"): item for item in json.loads(out)}
    assert list(listed) == [*hosts, "box"]
    for name, words_ in (
        ("mute", "did not greet as an ssh server"),
        ("closed", "Connection refused"),
        ("unknown", "is not known: ED25519 SHA256:"),
        ("refusing", "does not let"),
    ):
        assert words_ in listed[name]["error"]["found"]
        assert listed[name]["error"]["exit_code"] == 3
    assert "error" not in listed["box"]
