"""Host keys: nobody is logged in to, and nothing is told to, a host that is not the right one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ddtree.analyzers.errors import HostKeyError, UnreachableError
from ddtree.analyzers.transports.address import SshAddress
from ddtree.analyzers.transports.open import Settings, open_transport

from . import near, proxy
from .sshd import Sshd, make_key, program, public, serve

BOX = SshAddress("box")
BOTH = pytest.mark.parametrize("transport", ["paramiko", "openssh"])


@pytest.fixture(scope="module")
def other_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key of nobody."""
    return make_key(tmp_path_factory.mktemp("keys") / "other")


def fingerprint(key: Path) -> str:
    """A key's fingerprint, as the program shows it."""
    shown = subprocess.run(
        [program("ssh-keygen"), "-l", "-f", f"{key}.pub"],
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout.split()[1]


def works(settings: Settings) -> bool:
    with open_transport(BOX, settings) as transport:
        return near.answer(transport, "print(1)") == "1\n"


def refused(settings: Settings) -> HostKeyError:
    with pytest.raises(HostKeyError) as failure, open_transport(BOX, settings):
        pass
    assert failure.value.exit_code == 3
    return failure.value


@BOTH
def test_an_unknown_host(tmp_path: Path, server: Sshd, transport: str) -> None:
    """Its fingerprint is shown, and the command that accepts it."""
    failure = refused(near.settings(tmp_path, server, known="", transport=transport))
    program_ = " --transport openssh" if transport == "openssh" else ""
    config = f" --ssh-config {tmp_path}/config"
    assert failure.hint == f"ddtree inspect host ssh://box --accept-new{program_}{config}"
    assert fingerprint(server.host_key) in failure.found
    assert (tmp_path / "known_hosts").read_text() == ""


@BOTH
def test_a_new_key_is_accepted_on_request(tmp_path: Path, server: Sshd, transport: str) -> None:
    """It is added behind everything else, and known from then on."""
    before = "# mine\nother ssh-ed25519 AAAA broken"
    # The program itself writes into a line that has no end.
    before += "\n" if transport == "openssh" else ""
    settings = near.settings(tmp_path, server, known=before, transport=transport, accept_new=True)
    assert works(settings)
    after = (tmp_path / "known_hosts").read_text()
    assert after.startswith(before)
    assert after.removeprefix(before).strip() == server.known.strip()
    assert works(Settings(ssh_config=settings.ssh_config, transport=settings.transport))


@BOTH
def test_what_was_accepted_is_said(tmp_path: Path, server: Sshd, transport: str) -> None:
    said: list[str] = []
    more: dict[str, Any] = {"transport": transport, "accept_new": True, "say": said.append}
    settings = near.settings(tmp_path, server, known="", **more)
    assert works(settings)
    assert works(settings)
    (sentence,) = said
    assert fingerprint(server.host_key) in sentence
    if transport == "paramiko":
        assert str(tmp_path / "known_hosts") in sentence


def test_a_new_key_makes_a_new_file(tmp_path: Path, server: Sshd) -> None:
    """Which nobody else can read; names in it are hashed if the configuration says so."""
    new = tmp_path / "ssh" / "hosts"
    lines = [f"UserKnownHostsFile {new}", "HashKnownHosts yes"]
    settings = near.settings(tmp_path, server, known="", lines=lines, accept_new=True)
    assert works(settings)
    assert new.stat().st_mode & 0o777 == 0o600
    assert new.parent.stat().st_mode & 0o777 == 0o700
    assert new.read_text().startswith("|1|")
    assert "127.0.0.1" not in new.read_text()
    assert works(Settings(ssh_config=settings.ssh_config))
    found = subprocess.run(
        [program("ssh-keygen"), "-F", f"[127.0.0.1]:{server.port}", "-f", str(new)],
        capture_output=True,
        check=False,
    )
    assert found.returncode == 0


def test_many_accept_the_same_key_at_once(tmp_path: Path, server: Sshd) -> None:
    """One line remains of it."""
    settings = near.settings(tmp_path, server, known="", accept_new=True)
    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(works, [settings] * 6))
    assert (tmp_path / "known_hosts").read_text() == server.known


def test_a_new_key_that_cannot_be_kept_is_not_accepted(tmp_path: Path, server: Sshd) -> None:
    lines = [f"UserKnownHostsFile {tmp_path}"]
    settings = near.settings(tmp_path, server, known="", lines=lines, accept_new=True)
    assert "cannot be kept" in refused(settings).found


@BOTH
@pytest.mark.parametrize("accept_new", [False, True])
def test_a_man_in_the_middle(
    tmp_path: Path, server: Sshd, other_key: Path, transport: str, accept_new: bool
) -> None:
    """A changed key ends everything before anybody has said who they are."""
    known = f"[127.0.0.1]:{server.port} {public(other_key)}\n"
    with serve(tmp_path / "middle", key=server.key, host_key=server.host_key) as middle:
        known = known.replace(str(server.port), str(middle.port))
        settings = near.settings(
            tmp_path / "near", middle, known=known, transport=transport, accept_new=accept_new
        )
        failure = refused(settings)
        log = middle.log()
    assert "Accepted" not in log
    assert "Failed" not in log
    assert "user=" not in log and "for ddtree" not in log
    assert (tmp_path / "near" / "known_hosts").read_text() == known
    assert "someone may be in the middle" in failure.found
    assert fingerprint(server.host_key) in failure.found
    if transport == "paramiko":
        assert fingerprint(other_key) in failure.expected
        name = f"'[127.0.0.1]:{middle.port}'"
        assert failure.hint == f"ssh-keygen -R {name} -f {tmp_path}/near/known_hosts"


@BOTH
def test_a_man_in_the_middle_of_the_bytes(tmp_path: Path, server: Sshd, transport: str) -> None:
    """What he changes is noticed, before or after the login."""

    def flip(data: bytes, so_far: int) -> bytes:
        at = 3000 - so_far
        return (
            data if not 0 <= at < len(data) else data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        )

    with proxy.between(server.port, flip) as port:
        lines = [f"Port {port}", "HostKeyAlias real"]
        known = f"real {public(server.host_key)}\n"
        settings = near.settings(
            tmp_path, server, known=known, lines=lines, transport=transport, timeout=30.0
        )
        with (
            pytest.raises(UnreachableError) as failure,
            open_transport(BOX, settings) as opened,
        ):
            running = opened.start(near.python("print('x' * 100000)"), b"")
            try:
                near.output(running)
            finally:
                running.close()
    assert failure.value.exit_code == 3


@BOTH
def test_another_kind_of_key_is_no_new_host(tmp_path: Path, server: Sshd, transport: str) -> None:
    """Who holds no key of the known kind is not let off with one of another kind."""
    rsa = make_key(tmp_path / "rsa", kind="rsa")
    known = f"[127.0.0.1]:{server.port} {public(rsa)}\n"
    failure = refused(near.settings(tmp_path, server, known=known, transport=transport))
    if transport == "paramiko":
        assert "another key than the known one" in failure.found


@BOTH
def test_of_several_keys_the_known_one_is_asked_for(
    tmp_path: Path, server: Sshd, transport: str
) -> None:
    """Whichever a server likes best."""
    rsa = make_key(tmp_path / "rsa", kind="rsa")
    with serve(tmp_path / "two", key=server.key, options=[f"HostKey {rsa}"]) as two:
        known = f"[127.0.0.1]:{two.port} {public(rsa)}\n"
        assert works(near.settings(tmp_path, two, known=known, transport=transport))


MALFORMED = """
# a comment
x

@nonsense [127.0.0.1]:{port} {key}
[127.0.0.1]:{port}
[127.0.0.1]:{port} ssh-ed25519
[127.0.0.1]:{port} ssh-ed25519 not!base64
[127.0.0.1]:{port} ssh-ed25519 AAAA
[127.0.0.1]:{port} ssh-unheard-of AAAAC3NzaC1lZDI1NTE5AAAA
|1|broken {key}
|2|a|b {key}
@revoked
@cert-authority
@revoked * {other}
@cert-authority *.example.com {other}
other,!127.0.0.1 {other}
\x00\xff\x07 {other}
"""


@BOTH
@pytest.mark.parametrize("place", ["before", "after"])
def test_lines_that_say_nothing(
    tmp_path: Path, server: Sshd, other_key: Path, transport: str, place: str
) -> None:
    """Damaged ones, and those about others, leave the good one as it is."""
    noise = MALFORMED.format(port=server.port, key=public(server.host_key), other=public(other_key))
    known = noise + server.known if place == "before" else server.known + noise
    assert works(near.settings(tmp_path, server, known=known, transport=transport))


def test_lines_that_say_nothing_trust_nothing(
    tmp_path: Path, server: Sshd, other_key: Path
) -> None:
    noise = MALFORMED.format(port=server.port, key=public(server.host_key), other=public(other_key))
    assert "is not known" in refused(near.settings(tmp_path, server, known=noise)).found


@BOTH
@pytest.mark.parametrize("names", ["*", "[127.0.0.1]:{port}", "[127.*]:*,other"])
def test_a_revoked_key(tmp_path: Path, server: Sshd, transport: str, names: str) -> None:
    """Even if another line trusts it, and even if new keys are accepted."""
    line = f"@revoked {names.format(port=server.port)} {public(server.host_key)}\n"
    for known in (line, server.known + line, line + server.known):
        settings = near.settings(
            tmp_path, server, known=known, transport=transport, accept_new=True
        )
        failure = refused(settings)
        assert "revoked" in failure.found.lower()
        assert (tmp_path / "known_hosts").read_text() == known


def test_a_revoked_key_of_another_host_is_no_reason(
    tmp_path: Path, server: Sshd, other_key: Path
) -> None:
    """A line that revokes some other key makes this one neither known nor certified."""
    known = f"@revoked * {public(other_key)}\n"
    assert "is not known" in refused(near.settings(tmp_path, server, known=known)).found
    assert works(near.settings(tmp_path, server, known=known, accept_new=True))


def test_an_authority_is_for_the_program(tmp_path: Path, server: Sshd, other_key: Path) -> None:
    """The library cannot check certificates, so that it says who can."""
    known = f"@cert-authority * {public(other_key)}\n"
    failure = refused(near.settings(tmp_path, server, known=known, accept_new=True))
    assert "only an authority vouches" in failure.found
    config = f" --ssh-config {tmp_path}/config"
    assert failure.hint == f"ddtree inspect host ssh://box --transport openssh{config}"
    assert works(near.settings(tmp_path, server, known=known + server.known))


@pytest.fixture
def certified(tmp_path: Path, server: Sshd, other_key: Path) -> Iterator[Sshd]:
    """A server whose key an authority has signed."""
    host = make_key(tmp_path / "certified-host")
    sign = [program("ssh-keygen"), "-q", "-s", str(other_key), "-I", "box", "-h"]
    subprocess.run([*sign, "-n", "127.0.0.1", f"{host}.pub"], check=True)
    options = [f"HostCertificate {host}-cert.pub"]
    with serve(tmp_path / "certified", key=server.key, host_key=host, options=options) as running:
        yield running


def test_the_program_checks_certificates(tmp_path: Path, certified: Sshd, other_key: Path) -> None:
    known = f"@cert-authority [127.0.0.1]:* {public(other_key)}\n"
    assert works(near.settings(tmp_path / "near", certified, known=known, transport="openssh"))


@pytest.mark.parametrize(
    "names",
    [
        "[127.0.0.1]:{port}",
        "[127.*.1]:{port}",
        "[127.0.0.?]:*",
        "other,[127.0.0.1]:{port}",
        "*,!other",
        # The usual port's key counts for other ports too.
        "127.0.0.1",
    ],
)
@BOTH
def test_names_that_match(tmp_path: Path, server: Sshd, transport: str, names: str) -> None:
    known = f"{names.format(port=server.port)} {public(server.host_key)} a comment\n"
    assert works(near.settings(tmp_path, server, known=known, transport=transport))


@pytest.mark.parametrize("names", ["box", "[127.0.0.1]:1", "*,!*127.0.0.1*", "[127.0.0.[0-9]]:*"])
@BOTH
def test_names_that_do_not(tmp_path: Path, server: Sshd, transport: str, names: str) -> None:
    known = f"{names} {public(server.host_key)}\n"
    refused(near.settings(tmp_path, server, known=known, transport=transport))
