"""The ssh configuration: what it says is what happens, with the ssh program at hand and without."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ddtree.analyzers.errors import HostKeyError, UnreachableError, UsageError
from ddtree.analyzers.transports.address import SshAddress
from ddtree.analyzers.transports.open import Settings, open_transport
from ddtree.analyzers.transports.ssh.resolve import resolve

from . import near
from .sshd import Sshd, make_key, program, public, serve

BOX = SshAddress("box")
BOTH = pytest.mark.parametrize("transport", ["paramiko", "openssh"])


@pytest.fixture
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who reads the configuration; without the ssh program it is ddtree itself."""
    if request.param == "own":
        monkeypatch.setenv(
            "PATH", os.defpath.replace("/usr/bin", "/nowhere").replace("/bin", "/no")
        )
        assert shutil.which("ssh") is None
    return str(request.param)


def works(settings: Settings, address: SshAddress = BOX) -> bool:
    with open_transport(address, settings) as transport:
        return near.answer(transport, "print(1)") == "1\n"


def config(folder: Path, server: Sshd, text: str, **more: Any) -> Settings:
    """Settings with this configuration, before what all tests have in common."""
    settings = near.settings(folder, server, **more)
    assert settings.ssh_config
    common = settings.ssh_config.read_text().partition("Host *")[2]
    settings.ssh_config.write_text(f"{text}\nHost *{common}")
    return settings


@pytest.mark.parametrize("reader", ["ssh -G", "own"], indirect=True)
def test_files_that_are_included(tmp_path: Path, server: Sshd, reader: str) -> None:
    """By patterns, in folders, and by included files; what follows is in its place again."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "a.conf").write_text(f"Include {folder}/deep\nHost other\n  Port 1\n")
    (folder / "deep").write_text("Host box\n  HostName 127.0.0.1\n")
    (folder / "b.conf").write_text(f"Host box\n  IdentityFile {server.key}\n")
    text = f"Include {folder}/*.conf {folder}/missing\nHost box\n  Port {server.port}\n"
    assert works(config(tmp_path / "near", server, text))


@pytest.mark.parametrize("reader", ["ssh -G", "own"], indirect=True)
def test_an_inclusion_inside_of_a_block(tmp_path: Path, server: Sshd, reader: str) -> None:
    """Its lines hold for that block alone."""
    (tmp_path / "port").write_text(f"Port {server.port}\n")
    text = (
        f"Host other\n  Include {tmp_path}/nothing\n  Port 1\n"
        f"Host box\n  Include {tmp_path}/port\n  HostName 127.0.0.1\n"
        f"  IdentityFile {server.key}\n"
    )
    settings = config(tmp_path / "near", server, text)
    assert works(settings)
    assert resolve(SshAddress("other"), settings.ssh_config).port == 1


@pytest.mark.parametrize("reader", ["ssh -G", "own"], indirect=True)
def test_conditions(tmp_path: Path, server: Sshd, reader: str) -> None:
    """Those that do not hold are not taken for ones that do."""
    text = (
        "Match host other\n  Port 1\n"
        "Match originalhost box user nobody\n  Port 2\n"
        f"Match originalhost box\n  Port {server.port}\n  HostName 127.0.0.1\n"
        f"  IdentityFile {server.key}\n"
        "Match all\n  Port 4\n"
    )
    assert works(config(tmp_path / "near", server, text))


@BOTH
def test_conditions_that_only_ssh_knows(tmp_path: Path, server: Sshd, transport: str) -> None:
    """Commands, and a second pass at the end."""
    text = (
        "Match exec false\n  Port 1\n"
        "Match originalhost box exec true\n  HostName 127.0.0.1\n"
        f"Match final all\n  Port {server.port}\n  IdentityFile {server.key}\n"
    )
    assert works(config(tmp_path / "near", server, text, transport=transport))


@pytest.mark.parametrize(
    "text",
    [
        "Match exec true\n  Port 1\n",
        "Match final all\n  Port 1\n",
        "Match host box exec true\n Port 1\n",
        "Match unheard-of x\n  Port 1\n",
        "Host other\n  Include {folder}/blocks\n",
        "Include {folder}/itself\n",
    ],
)
@pytest.mark.parametrize("reader", ["own"], indirect=True)
def test_what_cannot_be_read_without_ssh_is_not_guessed(
    tmp_path: Path, server: Sshd, reader: str, text: str
) -> None:
    (tmp_path / "blocks").write_text("Host box\n  Port 1\n")
    (tmp_path / "itself").write_text(f"Include {tmp_path}/itself\n")
    settings = config(tmp_path / "near", server, text.format(folder=tmp_path))
    with pytest.raises(UsageError, match="cannot be read without ssh"):
        works(settings)


def test_a_configuration_that_ssh_refuses(tmp_path: Path, server: Sshd) -> None:
    with pytest.raises(UsageError, match="line 2: Bad configuration option: nonsense"):
        works(config(tmp_path, server, "Host box\n  Nonsense yes"))


@pytest.mark.parametrize("reader", ["ssh -G", "own"], indirect=True)
def test_a_configuration_that_is_not_there(tmp_path: Path, reader: str) -> None:
    with pytest.raises(UsageError, match=r"No such file|no such file"):
        works(Settings(ssh_config=tmp_path / "nowhere"))


@BOTH
def test_the_address_wins_over_the_configuration(
    tmp_path: Path, server: Sshd, transport: str
) -> None:
    text = f"Host *\n  Port 1\n  User nobody\n  IdentityFile {server.key}\n"
    address = SshAddress("127.0.0.1", server.user, server.port)
    assert works(config(tmp_path, server, text, transport=transport), address)


@pytest.mark.parametrize("reader", ["ssh -G", "own"], indirect=True)
def test_what_values_may_hold(
    tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    """Tokens, variables, quotes, blanks, and several files of known hosts."""
    monkeypatch.setenv("DDTREE_KEYS", str(server.key.parent))
    known = tmp_path / "known of box-127.0.0.1"
    known.write_text(server.known)
    text = (
        f"Host box\n  HostName 127.0.0.1\n  Port={server.port}\n"
        f'  IdentityFile "${{DDTREE_KEYS}}/{server.key.name}"\n'
        f'  UserKnownHostsFile {tmp_path}/none "{known}"\n'
    )
    settings = config(tmp_path / "near", server, text, known="")
    assert works(settings)


@pytest.mark.parametrize("reader", ["ssh -G", "own"], indirect=True)
def test_options_of_a_host(tmp_path: Path, server: Sshd, reader: str) -> None:
    """As they are read, whoever reads them."""
    text = (
        "Host box\n  HostName %h.example.com\n  Port 2222\n  User me\n  IdentitiesOnly yes\n"
        f"  IdentityFile {tmp_path}/%n-%r-%p\n  IdentityFile {tmp_path}/second\n"
        "  ProxyJump a@b:33,c\n  HostKeyAlias Real\n  ConnectTimeout 7\n  BatchMode yes\n"
        "  PasswordAuthentication no\n  NumberOfPasswordPrompts 1\n  HashKnownHosts yes\n"
    )
    options = resolve(BOX, config(tmp_path / "near", server, text).ssh_config)
    assert (options.alias, options.host, options.port) == ("box", "box.example.com", 2222)
    assert options.user == "me"
    assert options.identities == (tmp_path / "box-me-2222", tmp_path / "second")
    assert options.identities_only
    assert options.agent is None
    assert options.jumps == ("a@b:33", "c")
    assert options.proxy is None
    assert options.known_as == "real"
    assert options.connect_seconds == 7.0
    assert options.methods == {"publickey", "keyboard-interactive"}
    assert not options.ask
    assert options.prompts == 1
    assert options.hash_known_hosts
    assert options.known_hosts[0] == tmp_path / "near" / "known_hosts"


@pytest.mark.parametrize("reader", ["ssh -G", "own"], indirect=True)
def test_a_token_that_stands_for_nothing(tmp_path: Path, server: Sshd, reader: str) -> None:
    text = "Host box\n  IdentityFile ${DDTREE_NOT_SET}/x\n"
    with pytest.raises((UsageError, UnreachableError)):
        works(config(tmp_path, server, text))


@pytest.fixture(scope="module")
def inner(tmp_path_factory: pytest.TempPathFactory, server: Sshd) -> Iterator[Sshd]:
    """A server behind others."""
    with serve(tmp_path_factory.mktemp("inner") / "server") as running:
        yield running


def behind(folder: Path, jump: Sshd, inner: Sshd, known: str, hops: str, **more: Any) -> Settings:
    """Settings in which `box` is behind jump hosts, `gate` being the only one that is real."""
    text = (
        f"Host gate gate2\n  HostName 127.0.0.1\n  Port {jump.port}\n  IdentityFile {jump.key}\n"
        f"  User {jump.user}\n"
        f"Host box\n  HostName 127.0.0.1\n  Port {inner.port}\n  ProxyJump {hops}\n"
        f"  IdentityFile {inner.key}\n"
    )
    return config(folder, inner, text, known=known, **more)


@BOTH
@pytest.mark.parametrize("hops", ["gate", "gate,gate2", "ssh://gate"])
def test_through_jump_hosts(
    tmp_path: Path, server: Sshd, inner: Sshd, transport: str, hops: str
) -> None:
    """Each with its own configuration, key and known key."""
    before = inner.log().count("Accepted publickey"), server.log().count("Accepted publickey")
    known = server.known + inner.known
    assert works(behind(tmp_path, server, inner, known, hops, transport=transport))
    assert inner.log().count("Accepted publickey") == before[0] + 1
    assert server.log().count("Accepted publickey") == before[1] + len(hops.split(","))


@pytest.mark.parametrize("reader", ["own"], indirect=True)
def test_through_a_jump_host_without_the_program(
    tmp_path: Path, server: Sshd, inner: Sshd, reader: str
) -> None:
    assert works(behind(tmp_path, server, inner, server.known + inner.known, "gate"))


@BOTH
def test_a_jump_host_that_jumps(tmp_path: Path, server: Sshd, inner: Sshd, transport: str) -> None:
    """Its own configuration says how it is reached."""
    text = (
        f"Host door\n  HostName 127.0.0.1\n  Port {server.port}\n  IdentityFile {server.key}\n"
        f"Host gate\n  HostName 127.0.0.1\n  Port {server.port}\n  IdentityFile {server.key}\n"
        "  ProxyJump door\n"
        f"Host box\n  HostName 127.0.0.1\n  Port {inner.port}\n  IdentityFile {inner.key}\n"
        "  ProxyJump gate\n"
    )
    known = server.known + inner.known
    assert works(config(tmp_path, inner, text, known=known, transport=transport))


@pytest.mark.parametrize("known", ["gate", "box"])
def test_every_hop_is_checked(tmp_path: Path, server: Sshd, inner: Sshd, known: str) -> None:
    """An unknown key anywhere on the way ends it there."""
    line = server.known if known == "gate" else inner.known
    before = inner.log().count("Accepted")
    with pytest.raises(HostKeyError) as failure:
        works(behind(tmp_path, server, inner, line, "gate"))
    assert ("box" if known == "gate" else "gate") in failure.value.found
    assert failure.value.hint.startswith("ddtree inspect host ssh://box --accept-new")
    assert inner.log().count("Accepted") == before


def test_new_keys_of_every_hop_are_accepted(tmp_path: Path, server: Sshd, inner: Sshd) -> None:
    settings = behind(tmp_path, server, inner, "", "gate", accept_new=True)
    assert works(settings)
    assert (tmp_path / "known_hosts").read_text() == server.known + inner.known


@BOTH
def test_a_jump_host_that_forwards_nothing(tmp_path: Path, inner: Sshd, transport: str) -> None:
    options = ["AllowTcpForwarding no"]
    with serve(tmp_path / "gate", key=inner.key, options=options) as gate:
        known = gate.known + inner.known
        settings = behind(tmp_path / "near", gate, inner, known, "gate", transport=transport)
        with pytest.raises(UnreachableError) as failure:
            works(settings)
    if transport == "paramiko":
        assert "cannot be reached through its jump host" in failure.value.found


def test_jump_hosts_that_lead_to_each_other(tmp_path: Path, server: Sshd) -> None:
    text = "Host box\n  ProxyJump gate\nHost gate\n  ProxyJump box\n"
    with pytest.raises(UsageError, match="more than 8 jump hosts"):
        works(config(tmp_path, server, text))


@BOTH
def test_a_command_that_leads_there(
    tmp_path: Path, server: Sshd, inner: Sshd, transport: str
) -> None:
    """Such as another ssh."""
    text = (
        f"Host gate\n  HostName 127.0.0.1\n  Port {server.port}\n  IdentityFile {server.key}\n"
        f"Host box\n  HostName 127.0.0.1\n  Port {inner.port}\n  IdentityFile {inner.key}\n"
        f"  ProxyCommand {program('ssh')} -F {tmp_path}/config -W %h:%p gate\n"
    )
    known = server.known + inner.known
    assert works(config(tmp_path, inner, text, known=known, transport=transport))


@BOTH
def test_a_command_that_leads_nowhere(tmp_path: Path, server: Sshd, transport: str) -> None:
    settings = near.settings(tmp_path, server, lines=["ProxyCommand exit 1"], transport=transport)
    with pytest.raises(UnreachableError):
        works(settings)


@BOTH
def test_a_name_for_the_key(tmp_path: Path, server: Sshd, transport: str) -> None:
    """Whatever the address is today."""
    known = f"real {public(server.host_key)}\n"
    lines = ["HostKeyAlias real"]
    assert works(near.settings(tmp_path, server, known=known, lines=lines, transport=transport))


@BOTH
def test_trust_is_not_left_to_the_configuration(
    tmp_path: Path, server: Sshd, transport: str
) -> None:
    """`StrictHostKeyChecking no` is a habit of old; whoever means it says --accept-new."""
    lines = ["StrictHostKeyChecking no"]
    settings = near.settings(tmp_path, server, known="", lines=lines, transport=transport)
    with pytest.raises(HostKeyError):
        works(settings)
    other = make_key(tmp_path / "other")
    known = f"[127.0.0.1]:{server.port} {public(other)}\n"
    settings = near.settings(tmp_path, server, known=known, lines=lines, transport=transport)
    with pytest.raises(HostKeyError):
        works(settings)
