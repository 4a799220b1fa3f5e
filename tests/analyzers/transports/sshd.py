"""A real OpenSSH server as an ordinary process on the loopback, with everything of its own.

As root it runs in a mount namespace of its own, where the account `ddtree` exists, with a home, a
shell, rc files and a password, and nowhere else. Otherwise it serves the account of the tests, by
key alone.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests import wheels

PASSWORD = "a word for tests"
# Made with `openssl passwd -6`.
_HASH = (
    "$6$ddtreetests$iUpBXRD5wsbnhkSMjrZ2AjLLmETj5fXGt7WbBZE6NzY"
    "PMtm.4WEz3MtkKIU0UvSrE3.LMOWgCflZS2KoPIW6Z/"
)
# An account that is not root, of a server with accounts of its own.
PLAIN = "plain"
_START_SECONDS = 20.0

# Mounts end with the namespace, which ends with its last process.
_PRIVATE = """
set -e
mount -t tmpfs tmpfs /run
mkdir /run/sshd
mount --bind "$1/passwd" /etc/passwd
mount --bind "$1/shadow" /etc/shadow
mount --bind "$1/pam.d" /etc/pam.d
shift
exec "$@"
"""


def program(name: str) -> str:
    """The path of a program of OpenSSH."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which(name, path=path)
    if found is None:
        wheels.unavailable(f"{name} is missing; install the packages openssh-server and -client")
    return found


@cache
def private() -> bool:
    """Whether a server can have accounts of its own."""
    if os.getuid() != 0 or shutil.which("unshare") is None:
        return False
    command = ["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs"]
    done = subprocess.run([*command, "tmpfs", "/run"], capture_output=True, check=False)
    return done.returncode == 0


def needs_accounts() -> None:
    """Skip, or fail under `$CI`, where a server can have no accounts of its own."""
    if not private():
        wheels.unavailable("a server with accounts of its own needs root and mount namespaces")


def make_key(path: Path, *, kind: str = "ed25519", passphrase: str = "") -> Path:
    """A new pair of keys; the path of the private one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [program("ssh-keygen"), "-q", "-t", kind, "-N", passphrase, "-C", "", "-f", str(path)]
    subprocess.run([*command, *(["-b", "2048"] if kind == "rsa" else [])], check=True)
    return path


def public(key: Path) -> str:
    """The kind and the public part of a key, as files list it."""
    return " ".join(Path(f"{key}.pub").read_text().split()[:2])


@dataclass
class Sshd:
    """A server, and how to reach it.

    Args:
        folder: where everything of it lies.
        port: where it listens.
        key: opens it.
        host_key: what it shows.
        process: the server.
    """

    folder: Path
    port: int
    user: str
    key: Path
    host_key: Path
    home: Path
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def known(self) -> str:
        """The line of a known_hosts file that vouches for it."""
        return f"[127.0.0.1]:{self.port} {public(self.host_key)}\n"

    def log(self) -> str:
        """What it said so far."""
        return (self.folder / "sshd.log").read_text("utf-8", "replace")

    def children(self) -> list[int]:
        """The processes that serve connections, and what they run, the youngest first."""
        return _descendants(self.process.pid)


@contextmanager
def serve(
    folder: Path,
    *,
    key: Path | None = None,
    host_key: Path | None = None,
    options: Sequence[str] = (),
    rc: str = "",
    port: int | None = None,
) -> Iterator[Sshd]:
    """Run a server while the block runs.

    Args:
        folder: an empty one, or none yet.
        key: the private key that opens it; a new one when None.
        host_key: its own; a new one when None.
        options: lines of its configuration, which go before others.
        rc: what the shell of its account does before every command.
        port: where to listen; anywhere when None.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key = key or make_key(folder / "id")
    host_key = host_key or make_key(folder / "host")
    port = port or free_port()
    home = folder / "home"
    user = _account(folder, home, rc)
    (folder / "authorized").write_text(public(key) + "\n")
    config = _config(folder, host_key, port, options)
    command = [program("sshd"), "-D", "-e", "-f", str(config)]
    if private():
        inside = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _PRIVATE, "sh"]
        command = [*inside, str(folder / "etc"), *command]
    # Nothing is left of it when the tests are killed.
    if setpriv := shutil.which("setpriv"):
        command = [setpriv, "--pdeathsig", "KILL", *command]
    with (folder / "sshd.log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    server = Sshd(folder, port, user, key, host_key, home, process)
    try:
        _wait(server)
        yield server
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server and its connections, also when it was stopped."""
    for pid in _descendants(process.pid):
        # It may end by itself.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.kill()
    process.wait()


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _account(folder: Path, home: Path, rc: str) -> str:
    home.mkdir()
    (home / ".bashrc").write_text(rc)
    if not private():
        return getpass.getuser()
    etc = folder / "etc"
    (etc / "pam.d").mkdir(parents=True)
    lines = Path("/etc/passwd").read_text().splitlines()
    kept = [line for line in lines if line.startswith(("root:", "sshd:", "nobody:"))]
    if not any(line.startswith("sshd:") for line in kept):
        kept.append("sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin")
    shell = shutil.which("bash") or "/bin/sh"
    ours = [f"ddtree:x:0:0::{home}:{shell}", f"{PLAIN}:x:65531:65534::/:/bin/sh"]
    (etc / "passwd").write_text("\n".join([*kept, *ours, ""]))
    (etc / "shadow").write_text(f"root:*:19000::::::\nddtree:{_HASH}:19000:0:99999:7:::\n")
    (etc / "shadow").chmod(0o600)
    rules = ("auth required pam_unix.so", "account required pam_permit.so")
    (etc / "pam.d" / "sshd").write_text("\n".join([*rules, "session required pam_permit.so", ""]))
    return "ddtree"


def _config(folder: Path, host_key: Path, port: int, options: Sequence[str]) -> Path:
    config = folder / "sshd_config"
    lines = [
        *options,
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {host_key}",
        f"AuthorizedKeysFile {folder}/authorized",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin yes",
        "PidFile none",
        "LogLevel VERBOSE",
        "UseDNS no",
    ]
    config.write_text("\n".join(lines) + "\n")
    return config


def _wait(server: Sshd) -> None:
    until = time.monotonic() + _START_SECONDS
    while f"port {server.port}" not in server.log():
        if server.process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"sshd does not start: {server.log()}")
        time.sleep(0.02)


def _descendants(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [found for child in map(int, children) for found in (*_descendants(child), child)]
