"""A command on the other side of an ssh connection."""

from __future__ import annotations

import collections
import contextlib
import threading
import time

import paramiko

from ...errors import UnreachableError
from ..local import LOG_LINES, PATIENCE_SECONDS

MOST_BYTES = 1 << 16
# The exit code of a command of which nobody heard again, as the ssh program has it.
LOST = 255
# For a command that was killed to say so, and for a server to say that it is still there.
_LAST_SECONDS = 5.0
_POLL_SECONDS = 0.5
# What the library raises when there is nobody to talk to any more.
_BROKEN = (OSError, EOFError, paramiko.SSHException)


class SshRunning:
    """A command whose stdin and stderr are served by threads, and stdout by whoever reads it."""

    def __init__(self, channel: paramiko.Channel, stdin: bytes, name: str) -> None:
        """Begin to serve them; `name` is the target in messages."""
        self._channel = channel
        self._name = name
        self._log: collections.deque[str] = collections.deque(maxlen=LOG_LINES)
        self._closed = threading.Event()
        self._code: int | None = None
        self._threads = [
            threading.Thread(target=self._feed, args=(stdin,), daemon=True),
            threading.Thread(target=self._listen, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def chunk(self, timeout: float) -> bytes | None:
        """See `Running`."""
        data = self._read(timeout)
        if data:
            return data
        if self._whole():
            return None
        raise self._broken()

    def log(self) -> tuple[str, ...]:
        """See `Running`."""
        return tuple(self._log)

    def close(self, patience: float | None = None) -> int:
        """See `Running`."""
        if self._code is None:
            self._code = self._ended(PATIENCE_SECONDS if patience is None else patience)
            self._closed.set()
            for thread in self._threads:
                thread.join(timeout=1.0)
        return self._code

    def _read(self, timeout: float) -> bytes:
        # Zero would mean another mode of the channel: one that never waits, in any direction.
        self._channel.settimeout(max(timeout, 0.001))
        try:
            return self._channel.recv(MOST_BYTES)
        except TimeoutError:
            raise
        except _BROKEN as error:
            # Who takes something says so to the server, which may be gone.
            raise self._broken() from error
        finally:
            self._channel.settimeout(_POLL_SECONDS)

    def _broken(self) -> UnreachableError:
        return UnreachableError(
            f"the connection to {self._name} broke before the command had ended",
            expected="a link that holds",
            hint="ddtree inspect host --help",
        )

    def _whole(self) -> bool:
        """Whether stdout ended because the command ended it."""
        if self._channel.eof_received or self._channel.exit_status != -1:
            return True
        # The other side may close without a word before; a broken connection ends its thread.
        transport = self._channel.get_transport()
        transport.join(1.0)
        return transport.is_alive()

    def _ended(self, patience: float) -> int:
        with contextlib.suppress(*_BROKEN):
            self._channel.shutdown_write()
        self._wait(patience)
        lost = (
            not self._channel.exit_status_ready() or not self._channel.get_transport().is_active()
        )
        code = self._channel.exit_status
        with contextlib.suppress(*_BROKEN):
            self._channel.close()
        return LOST if lost and code == -1 else code

    def _wait(self, patience: float) -> None:
        """Wait until the command has ended, and if need be end it."""
        # A host that is hung is not waited for as long as one that is busy.
        first = min(_LAST_SECONDS, patience)
        if self._waited(first) or not self._answers(max(first, _POLL_SECONDS)):
            return
        if not self._waited(patience - first):
            self._kill()
            self._waited(first)

    def _waited(self, seconds: float) -> bool:
        """Whether the command ends by itself; what it still prints must not hold it up."""
        until = time.monotonic() + seconds
        while not self._channel.exit_status_ready():
            if time.monotonic() >= until:
                return False
            with contextlib.suppress(TimeoutError, UnreachableError):
                if not self._read(0.05):
                    self._channel.status_event.wait(0.05)
        return True

    def _answers(self, seconds: float) -> bool:
        """Whether the server is still there, as far as it answers a question about nothing."""
        transport = self._channel.get_transport()
        question = threading.Thread(
            target=_ask_nothing, args=(transport,), daemon=True, name="ddtree-answers"
        )
        question.start()
        question.join(seconds)
        return not question.is_alive() and transport.is_active()

    def _kill(self) -> None:
        """Ask for the end of the command and of what it started in its process group."""
        transport = self._channel.get_transport()
        message = paramiko.Message()
        message.add_byte(paramiko.common.cMSG_CHANNEL_REQUEST)
        message.add_int(self._channel.remote_chanid)
        message.add_string("signal")
        message.add_boolean(False)
        message.add_string("KILL")
        with contextlib.suppress(*_BROKEN):
            # The library has no call for this request.
            transport._send_user_message(message)  # type: ignore[attr-defined]

    def _feed(self, data: bytes) -> None:
        at = 0
        while at < len(data) and not self._closed.is_set():
            try:
                sent = self._channel.send(data[at : at + MOST_BYTES])
            except TimeoutError:
                continue
            except _BROKEN:
                # It has ended; its exit code says why.
                return
            if not sent:
                return
            at += sent

    def _listen(self) -> None:
        rest = b""
        while not self._closed.is_set():
            try:
                data = self._channel.recv_stderr(MOST_BYTES)
            except TimeoutError:
                continue
            except _BROKEN:
                break
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            self._log.extend(map(_text, lines))
            rest = rest[-MOST_BYTES:]
        if rest:
            self._log.append(_text(rest))


def _ask_nothing(transport: paramiko.Transport) -> None:
    # It waits for as long as the connection lasts.
    with contextlib.suppress(*_BROKEN):
        transport.global_request("keepalive@openssh.com", wait=True)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip()
