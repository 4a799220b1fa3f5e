"""Run commands on another machine through the ssh program.

One master connection is opened first, while ssh may ask at the terminal; every command goes
through it afterwards, in a session of its own where a terminal's Ctrl-C does not reach it.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from ..errors import HostKeyError, LoginError, TargetError, UnreachableError
from ..install.names import printable
from . import Running
from .address import SshAddress
from .deadline import Deadline
from .explained import ExplainedRunning
from .local import LocalTransport
from .settings import Settings

CONNECT_SECONDS = 10
# Connect, exchange of keys and login, when no person has to type anything.
LOGIN_SECONDS = 40.0
# Servers do not wait longer for a login either.
TYPING_SECONDS = 180.0
# ssh's own exit code for whatever it fails at itself.
_FAILED = 255
_LIMITS = (
    f"ConnectTimeout={CONNECT_SECONDS}",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "ForwardAgent=no",
    "ForwardX11=no",
    "LogLevel=ERROR",
)
_OWN_WORDS = re.compile(
    r"connection (?:to|closed|reset|timed)|client_loop|packet_write|broken pipe|mux_client|"
    r"timeout, server|kex_exchange|host key|permission denied|^ssh: |could not resolve|"
    r"control socket|master",
    re.IGNORECASE,
)
_KEY_WORDS = re.compile(r"host key|host identification|fingerprint", re.IGNORECASE)
_LOGIN_WORDS = re.compile(r"permission denied|authentication fail", re.IGNORECASE)
_SHOWN_KEY = re.compile(r"^debug1: Server host key: (\S+) (SHA256:[\w+/]+)")
# The end of what ssh said says enough.
_MOST_BYTES = 1 << 16
_BAD_KEYS = (
    ("IDENTIFICATION HAS CHANGED", "it shows another key than the known one"),
    ("REVOKED", "it is revoked"),
)


class OpensshTransport:
    """Commands behind the ssh program."""

    def __init__(self, address: SshAddress, settings: Settings, deadline: Deadline) -> None:
        """Connect to this address, within the deadline.

        Raises:
            UnreachableError: it cannot be reached, is not trusted, or lets nobody in.
        """
        self._address = address
        self._settings = settings
        self._ssh = _program(address)
        self._deadline = deadline
        self._options = _options(address, settings)
        with contextlib.ExitStack() as stack:
            # The path of a socket must be short.
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ddt-"))
            self._socket = Path(folder) / "s"
            stack.callback(self._leave)
            self._connect(Path(folder) / "log")
            self._stack = stack.pop_all()

    def __enter__(self) -> OpensshTransport:
        """Nothing is left to do."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the master connection."""
        self._stack.close()

    def start(self, command: Sequence[str], stdin: bytes) -> Running:
        """See `Transport`."""
        # Without the master there is no way, rather than a second login.
        only = ["-o", "ControlMaster=no", "-o", "ProxyCommand=exit 1", "-o", "BatchMode=yes"]
        words = [self._ssh, "-T", "-S", str(self._socket), *only, *self._options]
        running = LocalTransport().start(
            [*words, "--", self._address.host, shlex.join(command)], stdin
        )
        return ExplainedRunning(running, self._explained, always=True)

    def _connect(self, log: Path) -> None:
        from .ssh.prompt import restored, terminal

        asks = terminal()
        master = ["-M", "-N", "-f", "-S", str(self._socket), "-o", "ControlPersist=yes"]
        # Only then the fingerprint of a key is told.
        master += ["-o", "LogLevel=DEBUG1"]
        trust = "accept-new" if self._settings.accept_new else "yes"
        given = ["-o", f"StrictHostKeyChecking={trust}"] + ([] if asks else ["-o", "BatchMode=yes"])
        limit = TYPING_SECONDS if asks else LOGIN_SECONDS
        with log.open("wb") as opened, restored() if asks else contextlib.nullcontext():
            try:
                done = subprocess.run(
                    [self._ssh, *master, *given, *self._options, "--", self._address.host],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=opened,
                    timeout=self._deadline.within(limit),
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise self._failed(("no answer in time",)) from None
        said = log.read_bytes()[-_MOST_BYTES:].decode("utf-8", "replace").splitlines()
        words = tuple(filter(None, map(str.strip, said)))
        if done.returncode:
            raise self._failed(words)
        if any("Permanently added" in line for line in words):
            key = _fingerprint(words) or "of an unknown kind"
            self._settings.say(f"trusted the new key of {self._address}, {key}")

    def _leave(self) -> None:
        if self._socket.exists():
            command = [self._ssh, "-S", str(self._socket), *self._options, "-O", "exit", "--"]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    [*command, self._address.host],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=5.0,
                    check=False,
                )

    def _explained(self, code: int, log: tuple[str, ...]) -> TargetError | None:
        last = log[-1] if log else ""
        if code != _FAILED or (last and not _OWN_WORDS.search(last)):
            return None
        return UnreachableError(
            f"the connection to {self._address} broke: {printable(last)[:300] or 'no word'}",
            expected="a link that holds",
            hint="ddtree inspect host --help",
        )

    def _failed(self, said: tuple[str, ...]) -> UnreachableError:
        told = [line for line in said if not line.startswith("debug")]
        words = "; ".join(told)
        reason = printable(told[-1] if told else "no reason given")[:300]
        if _KEY_WORDS.search(words):
            return self._untrusted(words, reason, _fingerprint(said))
        if _LOGIN_WORDS.search(words):
            return LoginError(
                f"{self._address} lets ssh not in: {reason}",
                expected="a key in the agent or in a file that the ssh configuration names",
                hint=f"ssh -v {self._address} true",
            )
        return UnreachableError(
            f"ssh cannot reach {self._address}: {reason}",
            expected="a host with an ssh server",
            hint=f"ssh -v {self._address} true",
        )

    def _untrusted(self, words: str, reason: str, key: str | None) -> HostKeyError:
        expected = "a key that a known_hosts file lists; if its fingerprint is right, accept it"
        hint = self._settings.command(self._address, "--accept-new")
        for sign, meaning in _BAD_KEYS:
            if sign in words.upper():
                reason, expected = f"{meaning}; someone may be in the middle", "the known key"
                hint = f"ssh -v {self._address} true"
        shown = f", {key}" if key else ""
        return HostKeyError(
            f"ssh does not trust the key of {self._address}{shown}: {reason}",
            expected=expected,
            hint=hint,
        )


def _fingerprint(said: tuple[str, ...]) -> str | None:
    """The kind and the fingerprint of the last key that a server has shown."""
    found = [match for line in said if (match := _SHOWN_KEY.search(line))]
    return f"{printable(found[-1][1])} {found[-1][2]}" if found else None


def _program(address: SshAddress) -> str:
    ssh = shutil.which("ssh")
    if ssh is None:
        raise UnreachableError(
            f"there is no ssh on this machine to reach {address} with",
            expected="the program ssh on PATH, or --transport paramiko",
            hint="command -v ssh",
        )
    return ssh


def _options(address: SshAddress, settings: Settings) -> list[str]:
    from .ssh.configured import arguments

    limits = [word for limit in _LIMITS for word in ("-o", limit)]
    return [*arguments(address, settings.ssh_config), *limits]
