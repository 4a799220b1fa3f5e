"""Whether the key that a host shows is the one that is known."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import shlex
from collections.abc import Callable
from pathlib import Path

from ...errors import HostKeyError
from ...install.names import printable
from ..settings import Settings
from .known_hosts import Entry, Marker, entries, fingerprint, hashed
from .options import HostOptions

_NAMES = {"ssh-ed25519": "ED25519", "ssh-rsa": "RSA", "ssh-dss": "DSA"}


class Trust:
    """What is known about the key of one host."""

    def __init__(
        self, options: HostOptions, settings: Settings, command: Callable[..., str]
    ) -> None:
        """Read what the files say.

        Args:
            options: of the host.
            settings: whether a new key is accepted, and who hears of it.
            command: makes the command that the user may run next, from more options for it.
        """
        self._options = options
        self._settings = settings
        self._command = command
        self._known = entries(options.known_hosts, options.known_as)
        elsewhere = options.known_elsewhere_as
        self._elsewhere = (
            [] if elsewhere == options.known_as else entries(options.known_hosts, elsewhere)
        )

    def kinds(self) -> tuple[str, ...]:
        """The kinds of key that the host should show, since one of them is known."""
        return tuple(dict.fromkeys(entry.kind for entry in self._trusted() + self._elsewhere))

    def check(self, kind: str, key: bytes) -> None:
        """Make sure that this key is the host's.

        Raises:
            HostKeyError: it is unknown, another one is known, or it is revoked.
        """
        self._refuse_revoked(kind, key)
        trusted = self._trusted()
        if any(entry.key == key for entry in trusted):
            return
        if trusted:
            raise self._changed(kind, key, trusted)
        authority = next((entry for entry in self._known if entry.marker == Marker.AUTHORITY), None)
        if authority is not None:
            raise self._certified(kind, key, authority)
        if any(e.marker == Marker.TRUSTED and e.key == key for e in self._elsewhere):
            return
        if not self._settings.accept_new:
            raise self._unknown(kind, key)
        if self._remember(kind, key):
            shown, file = self._options.shown, printable(str(self._options.known_hosts[0]))
            self._settings.say(
                f"trusted the new key of {shown}, {_shown(kind, key)}, kept in {file}"
            )

    def _trusted(self) -> list[Entry]:
        return [entry for entry in self._known if entry.marker == Marker.TRUSTED]

    def _refuse_revoked(self, kind: str, key: bytes) -> None:
        for entry in self._known + self._elsewhere:
            if entry.marker == Marker.REVOKED and entry.key == key:
                raise HostKeyError(
                    f"the key of {self._options.shown} is revoked by {_place(entry)}: "
                    f"{_shown(kind, key)}",
                    expected="a key that nobody has stolen; someone may be in the middle",
                    hint=f"ssh-keygen -l -f {_quoted(entry.file)}",
                )

    def _changed(self, kind: str, key: bytes, trusted: list[Entry]) -> HostKeyError:
        old = "; ".join(f"{_shown(entry.kind, entry.key)}, {_place(entry)}" for entry in trusted)
        name, file = shlex.quote(self._options.known_as), _quoted(trusted[0].file)
        return HostKeyError(
            f"{self._options.shown} shows another key than the known one: {_shown(kind, key)}; "
            "someone may be in the middle",
            expected=f"{old}; if the host was set up anew, forget its old key",
            hint=f"ssh-keygen -R {name} -f {file}",
        )

    def _certified(self, kind: str, key: bytes, authority: Entry) -> HostKeyError:
        return HostKeyError(
            f"only an authority vouches for {self._options.shown}, by {_place(authority)}, and "
            f"certificates cannot be checked here; the host shows {_shown(kind, key)}",
            expected="a known key, or the ssh program, which checks certificates",
            hint=self._command("--transport", "openssh"),
        )

    def _unknown(self, kind: str, key: bytes) -> HostKeyError:
        return HostKeyError(
            f"the key of {self._options.shown} is not known: {_shown(kind, key)}",
            expected="a key that a known_hosts file lists; if its fingerprint is right, accept it",
            hint=self._command("--accept-new"),
        )

    def _remember(self, kind: str, key: bytes) -> bool:
        """Append the key; whether it was not there. What the file holds is left as it is."""
        options = self._options
        file = options.known_hosts[0]
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unwritable(file, error) from error
        with os.fdopen(handle, "r+b", buffering=0) as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)
            # Another process may have been faster, and may have met another host.
            now = entries(options.known_hosts, options.known_as)
            if any(entry.marker == Marker.TRUSTED for entry in now):
                self._known = now
                self.check(kind, key)
                return False
            name = options.known_as
            name = hashed(name, os.urandom(20)) if options.hash_known_hosts else name
            line = f"{name} {kind} {base64.b64encode(key).decode()}\n".encode()
            try:
                opened.write(b"\n" + line if _unfinished(opened.fileno()) else line)
            except OSError as error:
                raise _unwritable(file, error) from error
            return True


def _unfinished(handle: int) -> bool:
    """Whether the last line of a file has no end."""
    # What cannot be read from an offset is no file of lines.
    with contextlib.suppress(OSError):
        size = os.fstat(handle).st_size
        return size > 0 and os.pread(handle, 1, size - 1) != b"\n"
    return False


def _shown(kind: str, key: bytes) -> str:
    name = _NAMES.get(kind, "ECDSA" if kind.startswith("ecdsa") else printable(kind))
    return f"{name} {fingerprint(key)}"


def _place(entry: Entry) -> str:
    return f"{printable(str(entry.file))} line {entry.line}"


def _quoted(path: Path) -> str:
    return shlex.quote(printable(str(path)))


def _unwritable(file: Path, error: OSError) -> HostKeyError:
    return HostKeyError(
        f"the new key cannot be kept in {printable(str(file))}: {error.strerror}",
        expected="a known_hosts file that can be written",
        hint=f"ls -l {_quoted(file)}",
    )
