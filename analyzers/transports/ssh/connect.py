"""From an address to a connection that is trusted and logged in, through jump hosts if need be."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Sequence

import paramiko

from ...errors import UnreachableError, UsageError
from ...install.names import printable
from ..address import SshAddress, parse_host
from ..deadline import Deadline
from ..settings import Settings
from .login import Login
from .options import HostOptions
from .resolve import resolve
from .trust import Trust
from .watch import Watch

CONNECT_SECONDS = 10.0
BANNER_SECONDS = 15.0
# A link that drops without a word is noticed after this many seconds.
_DEAD_SECONDS = 60
_PROBE_SECONDS = 15
# Hosts that lead to each other by mistake.
_MOST_HOPS = 8
_KEEPALIVE_SECONDS = 20

# What carries a connection: a socket, or a channel through another host.
Carrier = socket.socket | paramiko.Channel

# Else the standard library prints what paramiko logs, tracebacks among it.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class Connector:
    """Opens connections; what they need goes away with the stack."""

    def __init__(
        self,
        asked_for: SshAddress,
        settings: Settings,
        deadline: Deadline,
        stack: contextlib.ExitStack,
    ) -> None:
        """Connect on the way to this address."""
        self._asked_for = asked_for
        self._settings = settings
        self._deadline = deadline
        self._stack = stack

    def connect(self) -> paramiko.Transport:
        """A connection to the address, logged in.

        Raises:
            UnreachableError: it cannot be reached, is not trusted, or lets nobody in.
        """
        return self._reach(self._asked_for, None, _MOST_HOPS)

    def _reach(
        self, address: SshAddress, via: paramiko.Transport | None, hops: int
    ) -> paramiko.Transport:
        """Connect to one host: through `via`, or on the way that its options say."""
        options = resolve(address, self._settings.ssh_config)
        if via is not None:
            return self._secured(options, self._forwarded(via, options))
        if options.jumps:
            via = self._through(options, hops)
            return self._secured(options, self._forwarded(via, options))
        return self._secured(options, self._direct(options))

    def _through(self, options: HostOptions, hops: int) -> paramiko.Transport:
        via: paramiko.Transport | None = None
        for jump in options.jumps:
            hops -= 1
            if hops <= 0:
                raise UsageError(
                    f"more than {_MOST_HOPS} jump hosts lead to {options.shown}",
                    expected="a ProxyJump that does not lead back to where it came from",
                    hint=f"ssh -G {printable(options.alias)}",
                )
            address = parse_host(jump.removeprefix("ssh://"), uri=jump.startswith("ssh://"))
            via = self._reach(address, via, hops)
        assert via is not None
        return via

    def _direct(self, options: HostOptions) -> socket.socket:
        if options.proxy:
            return self._piped(options.proxy)
        seconds = self._deadline.within(options.connect_seconds or CONNECT_SECONDS)
        try:
            connected = socket.create_connection((options.host, options.port), seconds)
        except (OSError, UnicodeError) as error:
            raise _unreachable(options, error, seconds) from error
        self._stack.callback(connected.close)
        connected.settimeout(None)
        _notice_a_dead_link(connected)
        return connected

    def _piped(self, command: str) -> socket.socket:
        """The near end of a ProxyCommand's stdin and stdout."""
        near, far = socket.socketpair()
        self._stack.callback(near.close)
        with far:
            process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command}"],
                stdin=far.fileno(),
                stdout=far.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._stack.callback(_end, process)
        return near

    def _forwarded(self, via: paramiko.Transport, options: HostOptions) -> paramiko.Channel:
        seconds = self._deadline.within(options.connect_seconds or CONNECT_SECONDS)
        try:
            return via.open_channel(
                "direct-tcpip", (options.host, options.port), ("127.0.0.1", 0), timeout=seconds
            )
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise UnreachableError(
                f"{options.shown} cannot be reached through its jump host: {_words(error)}",
                expected="a jump host that may forward connections there",
                hint=f"ssh -v {shlex.quote(printable(options.alias))} true",
            ) from error

    def _secured(self, options: HostOptions, carrier: Carrier) -> paramiko.Transport:
        command = functools.partial(self._settings.command, self._asked_for)
        trust = Trust(options, self._settings, command)
        try:
            transport = paramiko.Transport(carrier)
        except (paramiko.SSHException, OSError) as error:
            raise _broken(options, error) from error
        self._stack.callback(transport.close)
        transport.banner_timeout = transport.handshake_timeout = BANNER_SECONDS
        _prefer(transport, trust.kinds())
        with Watch(
            transport,
            self._deadline.within(BANNER_SECONDS),
            options.shown,
            "greet as an ssh server",
        ):
            try:
                transport.start_client()
                key = transport.get_remote_server_key()
            except (paramiko.SSHException, EOFError, OSError) as error:
                raise _broken(options, error) from error
        trust.check(key.get_name(), key.asbytes())
        Login(transport, options, self._deadline).perform()
        transport.set_keepalive(_KEEPALIVE_SECONDS)
        return transport


def _prefer(transport: paramiko.Transport, kinds: Sequence[str]) -> None:
    """Ask for a key of a kind that is known, since a host may have several."""
    security = transport.get_security_options()
    signed = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
    wanted = [name for kind in kinds for name in signed.get(kind, (kind,))]
    usable = [name for name in wanted if name in security.key_types]
    security.key_types = tuple(dict.fromkeys([*usable, *security.key_types]))


def _notice_a_dead_link(connected: socket.socket) -> None:
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _PROBE_SECONDS),
        ("TCP_KEEPINTVL", _PROBE_SECONDS),
        ("TCP_KEEPCNT", _DEAD_SECONDS // _PROBE_SECONDS),
        ("TCP_USER_TIMEOUT", _DEAD_SECONDS * 1000),
    ):
        # Not every system has every one of them.
        option = getattr(socket, name, None)
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(2.0)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _unreachable(options: HostOptions, error: Exception, seconds: float) -> UnreachableError:
    if isinstance(error, TimeoutError):
        why = f"no answer within {seconds:.3g} seconds"
    elif isinstance(error, socket.gaierror | UnicodeError):
        why = "no such host"
    else:
        why = getattr(error, "strerror", None) or str(error)
    return UnreachableError(
        f"{options.shown} cannot be reached: {why}",
        expected="a host with an ssh server",
        hint=f"ssh -v {shlex.quote(printable(options.alias))} true",
    )


def _broken(options: HostOptions, error: Exception) -> UnreachableError:
    return UnreachableError(
        f"{options.shown} does not greet as an ssh server: {_words(error)}",
        expected="an ssh server of protocol 2 whose algorithms are known",
        hint=f"ssh -v {shlex.quote(printable(options.alias))} true",
    )


def _words(error: Exception) -> str:
    words = printable(str(error))[:300]
    return words or (
        "the connection ended" if isinstance(error, EOFError) else type(error).__name__
    )
