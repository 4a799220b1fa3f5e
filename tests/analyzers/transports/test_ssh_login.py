"""Logging in: by key, agent, passphrase, password and questions, and what is said when it fails."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddtree.analyzers.errors import LoginError
from ddtree.analyzers.transports.address import SshAddress
from ddtree.analyzers.transports.open import Settings, open_transport
from ddtree.analyzers.transports.ssh.prompt import Secret

from . import near
from .sshd import PASSWORD, Sshd, make_key, needs_accounts, program, public, serve
from .terminal import login

BOX = SshAddress("box")
BOTH = pytest.mark.parametrize("transport", ["paramiko", "openssh"])
PHRASE = "open it please"
IN = "in\n"


@pytest.fixture(scope="module")
def other_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key that opens nothing."""
    return make_key(tmp_path_factory.mktemp("keys") / "other")


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The socket of an agent of our own, which holds nothing yet."""
    path = tmp_path / "agent"
    process = subprocess.Popen(
        [program("ssh-agent"), "-D", "-a", str(path)], stdout=subprocess.PIPE
    )
    assert process.stdout
    process.stdout.readline()
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    yield path
    process.send_signal(signal.SIGTERM)
    process.communicate()


def add(*keys: Path) -> None:
    """Give keys to the agent."""
    subprocess.run([program("ssh-add"), "-q", *map(str, keys)], check=True, capture_output=True)


def works(settings: Settings) -> bool:
    with open_transport(BOX, settings) as transport:
        return near.answer(transport, "print(1)") == "1\n"


def refused(settings: Settings) -> LoginError:
    with pytest.raises(LoginError) as failure, open_transport(BOX, settings):
        pass
    assert failure.value.exit_code == 3
    return failure.value


@BOTH
@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
def test_kinds_of_keys(tmp_path: Path, transport: str, kind: str) -> None:
    key = make_key(tmp_path / "key", kind=kind)
    with serve(tmp_path / "server", key=key, host_key=make_key(tmp_path / "h", kind=kind)) as box:
        assert works(near.settings(tmp_path / "near", box, transport=transport))


@BOTH
@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_files_of_the_older_form(tmp_path: Path, transport: str, kind: str) -> None:
    key = make_key(tmp_path / "key", kind=kind)
    change = [program("ssh-keygen"), "-q", "-p", "-m", "PEM", "-N", "", "-P", "", "-f", str(key)]
    subprocess.run(change, check=True, capture_output=True)
    assert b"OPENSSH" not in key.read_bytes()
    with serve(tmp_path / "server", key=key) as box:
        assert works(near.settings(tmp_path / "near", box, transport=transport))


@BOTH
def test_a_certificate(tmp_path: Path, other_key: Path, transport: str) -> None:
    """The server knows who signs keys, and no key."""
    key = make_key(tmp_path / "key")
    sign = [program("ssh-keygen"), "-q", "-s", str(other_key), "-I", "me", "-n", "ddtree"]
    subprocess.run([*sign, f"{key}.pub"], check=True, capture_output=True)
    options = [
        f"TrustedUserCAKeys {other_key}.pub",
        "AuthorizedKeysFile none",
        "AuthorizedPrincipalsFile none",
    ]
    needs_accounts()
    with serve(tmp_path / "server", key=key, options=options) as box:
        assert works(near.settings(tmp_path / "near", box, transport=transport))


@BOTH
def test_a_wrong_key(tmp_path: Path, server: Sshd, other_key: Path, transport: str) -> None:
    """It is said which was tried, and what the server takes."""
    lines = [f"IdentityFile {other_key}"]
    failure = refused(near.settings(tmp_path, server, lines=lines, transport=transport))
    assert "publickey" in failure.found
    if transport == "paramiko":
        assert str(other_key) in failure.found
        assert f"does not let {server.user} in" in failure.found
        assert re.match(rf"ssh -v -p {server.port} {server.user}@127.0.0.1", failure.hint)


@BOTH
def test_no_key(tmp_path: Path, server: Sshd, transport: str) -> None:
    lines = [f"IdentityFile {tmp_path}/none"]
    refused(near.settings(tmp_path, server, lines=lines, transport=transport))


@BOTH
def test_the_right_key_after_wrong_ones(
    tmp_path: Path, server: Sshd, other_key: Path, transport: str
) -> None:
    """Damaged files and folders among them."""
    (tmp_path / "damaged").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END")
    (tmp_path / "empty").touch()
    for name in ("damaged", "empty"):
        (tmp_path / name).chmod(0o600)
    names = [tmp_path / "damaged", tmp_path / "empty", tmp_path, other_key, server.key]
    lines = [f"IdentityFile {name}" for name in names]
    assert works(near.settings(tmp_path / "near", server, lines=lines, transport=transport))


def test_a_damaged_key_is_named(tmp_path: Path, server: Sshd) -> None:
    """And nothing of what it holds is shown."""
    damaged = tmp_path / "damaged"
    text = server.key.read_text()
    damaged.write_text(text[:150] + "AAAA" + text[154:])
    failure = refused(near.settings(tmp_path, server, lines=[f"IdentityFile {damaged}"]))
    assert f"{damaged} (cannot be read as a private key)" in failure.found
    assert text[160:190] not in failure.found


@BOTH
def test_by_agent(tmp_path: Path, server: Sshd, agent: Path, transport: str) -> None:
    """The environment's, or the one that the configuration names; no file is there."""
    add(server.key)
    for lines in (["IdentityAgent SSH_AUTH_SOCK"], [f"IdentityAgent {agent}"]):
        none = f"IdentityFile {tmp_path}/none"
        settings = near.settings(tmp_path, server, lines=[*lines, none], transport=transport)
        assert works(settings)


@BOTH
def test_no_agent_on_request(tmp_path: Path, server: Sshd, agent: Path, transport: str) -> None:
    add(server.key)
    lines = ["IdentityAgent none", f"IdentityFile {tmp_path}/none"]
    refused(near.settings(tmp_path, server, lines=lines, transport=transport))


@pytest.fixture
def crowded(tmp_path: Path, agent: Path, server: Sshd) -> Path:
    """An agent with more keys than a server lets anybody try, the right one last."""
    wrong = [make_key(tmp_path / f"wrong{number}") for number in range(7)]
    add(*wrong, server.key)
    return agent


@BOTH
def test_too_many_keys(tmp_path: Path, server: Sshd, crowded: Path, transport: str) -> None:
    """The server ends it, and it is said why."""
    lines = [f"IdentityAgent {crowded}", f"IdentityFile {tmp_path}/none"]
    failure = refused(near.settings(tmp_path, server, lines=lines, transport=transport))
    if transport == "paramiko":
        assert "ended the connection during the login" in failure.found
        assert "IdentitiesOnly yes" in failure.expected


@BOTH
@pytest.mark.parametrize("only", ["yes", "no"])
def test_the_key_that_is_named_comes_first(
    tmp_path: Path, server: Sshd, crowded: Path, transport: str, only: str
) -> None:
    """From the agent, of which the public part alone may be at hand."""
    named = tmp_path / "named"
    named.with_name("named.pub").write_text(public(server.key) + "\n")
    shutil.copy(f"{server.key}.pub", named)
    lines = [
        f"IdentityAgent {crowded}",
        f"IdentitiesOnly {only}",
        f"IdentityFile {named}",
    ]
    assert works(near.settings(tmp_path / "near", server, lines=lines, transport=transport))


@BOTH
def test_other_keys_of_the_agent_are_not_shown(
    tmp_path: Path, server: Sshd, agent: Path, other_key: Path, transport: str
) -> None:
    """With `IdentitiesOnly`, even the right one."""
    add(server.key)
    lines = [f"IdentityAgent {agent}", "IdentitiesOnly yes", f"IdentityFile {other_key}"]
    refused(near.settings(tmp_path, server, lines=lines, transport=transport))


@pytest.mark.parametrize("what", ["missing", "mute", "nonsense"])
def test_an_agent_that_is_none(
    tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The files are tried then."""
    import socket
    import threading

    monkeypatch.setattr("ddtree.analyzers.transports.ssh.keys._AGENT_SECONDS", 0.5)
    path = tmp_path / "agent"
    with socket.socket(socket.AF_UNIX) as listener:
        kept: list[socket.socket] = []

        def serve_once() -> None:
            near_, _ = listener.accept()
            kept.append(near_)
            if what == "nonsense":
                near_.sendall(b"\0\0\0\x05\x0c\xff\xff\xff\xff" * 10)

        if what != "missing":
            listener.bind(str(path))
            listener.listen()
            thread = threading.Thread(target=serve_once, daemon=True)
            thread.start()
        lines = [f"IdentityAgent {path}", f"IdentityFile {server.key}"]
        assert works(near.settings(tmp_path / "near", server, lines=lines))
        for end in kept:
            end.close()


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key behind a passphrase."""
    return make_key(tmp_path_factory.mktemp("locked") / "key", passphrase=PHRASE)


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory, locked: Path) -> Iterator[Sshd]:
    """The server that it opens."""
    with serve(tmp_path_factory.mktemp("behind") / "server", key=locked) as running:
        yield running


@BOTH
def test_a_passphrase_is_asked_at_the_terminal(
    tmp_path: Path, behind: Sshd, transport: str
) -> None:
    """Again after a wrong one; it is shown nowhere."""
    settings = near.settings(tmp_path, behind, transport=transport)
    question = str(behind.key)
    done = login(settings, [(question, "not this one"), (question, PHRASE)])
    assert (done.code, done.said) == (0, IN)
    for word in ("not this one", PHRASE):
        assert word not in done.screen + done.log


@BOTH
@pytest.mark.parametrize("phrase", ["", "wrong"])
def test_nobody_knows_the_passphrase(
    tmp_path: Path, behind: Sshd, transport: str, phrase: str
) -> None:
    question = str(behind.key)
    settings = near.settings(tmp_path, behind, transport=transport)
    done = login(settings, [(question, phrase)] * 3)
    assert done.code == 3
    assert done.said.startswith("error: ")
    if transport == "paramiko":
        assert "(not unlocked)" in done.said


@BOTH
def test_a_passphrase_without_a_terminal(tmp_path: Path, behind: Sshd, transport: str) -> None:
    """Nobody is asked anywhere else."""
    done = login(near.settings(tmp_path, behind, transport=transport), terminal=False)
    assert done.code == 3
    assert done.screen == ""
    if transport == "paramiko":
        assert "encrypted, and no terminal to ask at" in done.said


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A server that takes passwords."""
    needs_accounts()
    options = ["PasswordAuthentication yes", "PubkeyAuthentication no"]
    with serve(tmp_path_factory.mktemp("asking") / "server", options=options) as running:
        yield running


@pytest.fixture(scope="module")
def questioning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A server that asks questions."""
    needs_accounts()
    options = ["UsePAM yes", "KbdInteractiveAuthentication yes", "PubkeyAuthentication no"]
    with serve(tmp_path_factory.mktemp("questions") / "server", options=options) as running:
        yield running


@pytest.fixture(params=["asking", "questioning"])
def worded(request: pytest.FixtureRequest) -> Sshd:
    """A server that a word opens."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Sshd)
    return found


@BOTH
def test_by_password(tmp_path: Path, worded: Sshd, transport: str) -> None:
    """It is asked at the terminal, again after a wrong one, and shown nowhere."""
    settings = near.settings(tmp_path, worded, transport=transport)
    done = login(settings, [("assword", "hunter2"), ("assword", PASSWORD)])
    assert (done.code, done.said) == (0, IN)
    for word in ("hunter2", PASSWORD):
        assert word not in done.screen + done.log


@BOTH
def test_a_wrong_password(tmp_path: Path, worded: Sshd, transport: str) -> None:
    """As often as the configuration says, and then it is over; no word is in what is said."""
    lines = ["NumberOfPasswordPrompts 2"]
    settings = near.settings(tmp_path, worded, lines=lines, transport=transport)
    done = login(settings, [("assword", "hunter2")] * 2)
    assert done.code == 3
    assert done.said.startswith("error: ")
    assert done.screen.lower().count("password") == 2
    assert "hunter2" not in done.said + done.screen + done.log


@BOTH
def test_a_password_without_a_terminal(tmp_path: Path, worded: Sshd, transport: str) -> None:
    done = login(near.settings(tmp_path, worded, transport=transport), terminal=False)
    assert done.code == 3
    assert done.screen == ""
    if transport == "paramiko":
        assert "(no terminal to ask at)" in done.said


@BOTH
def test_nobody_is_asked_in_batch_mode(tmp_path: Path, worded: Sshd, transport: str) -> None:
    lines = ["BatchMode yes"]
    done = login(near.settings(tmp_path, worded, lines=lines, transport=transport))
    assert done.code == 3
    assert "assword" not in done.screen


def test_no_passphrase_for_a_server_that_takes_no_keys(
    tmp_path: Path, asking: Sshd, locked: Path
) -> None:
    """The first question is the one that is of use."""
    settings = near.settings(tmp_path, asking, lines=[f"IdentityFile {locked}"])
    done = login(settings, [("assword", PASSWORD)])
    assert (done.code, done.said) == (0, IN)
    assert str(locked) not in done.screen


@BOTH
def test_a_key_and_a_password(tmp_path: Path, other_key: Path, transport: str) -> None:
    """A server may want both."""
    needs_accounts()
    options = [
        "PasswordAuthentication yes",
        "AuthenticationMethods publickey,password",
    ]
    with serve(tmp_path / "server", options=options) as both:
        lines = [f"IdentityFile {other_key}", f"IdentityFile {both.key}"]
        settings = near.settings(tmp_path / "near", both, lines=lines, transport=transport)
        done = login(settings, [("assword", PASSWORD)])
    assert (done.code, done.said) == (0, IN)


def test_a_secret_shows_itself_to_nobody() -> None:
    assert PASSWORD not in f"{Secret(PASSWORD)!r} {Secret(PASSWORD)}"


def test_thinking_takes_no_time(tmp_path: Path, asking: Sshd) -> None:
    """What a person needs for the password does not count."""
    settings = near.settings(tmp_path, asking, timeout=20.0)
    assert os.environ.get("SSH_AUTH_SOCK") is None
    assert login(settings, [("assword", PASSWORD)]).said == IN
