"""The private keys that may open a host: the agent's, and files."""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
from paramiko.agent import AgentSSH

from ...install.names import printable
from .options import HostOptions
from .prompt import Secret

_AGENT_SECONDS = 10.0
# More is no key.
_MOST_BYTES = 1 << 20
_OPENSSH = re.compile(
    rb"-----BEGIN OPENSSH PRIVATE KEY-----(.*?)-----END OPENSSH PRIVATE KEY-----", re.DOTALL
)
_MAGIC = b"openssh-key-v1\0"
_ENCRYPTED = (b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED")


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A private key on disk, not opened yet."""

    path: Path
    public: bytes | None
    encrypted: bool

    def load(self, passphrase: Secret | None) -> paramiko.PKey | None:
        """The key; None if the passphrase is wrong or it is of no kind that can be used."""
        word = passphrase.word.encode() if passphrase else None
        # Whatever the libraries say about a damaged key; its text may hold parts of the key.
        with contextlib.suppress(
            paramiko.SSHException, paramiko.pkey.UnknownKeyType, ValueError, TypeError, OSError
        ):
            return paramiko.PKey.from_path(self.path, word)  # type: ignore[arg-type]  # bytes, too
        return None


@dataclass(frozen=True, slots=True)
class Keys:
    """Everything that may be tried, in this order."""

    agent: tuple[paramiko.AgentKey, ...]
    files: tuple[KeyFile, ...]


class Agent(AgentSSH):
    """The keys of the agent behind a socket."""

    def __init__(self, path: str) -> None:
        """Ask for its keys; it has none if it does not answer."""
        super().__init__()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_AGENT_SECONDS)
        try:
            self._socket.connect(path)
            _connect: Any = self._connect  # type: ignore[attr-defined]  # the stubs hide it
            _connect(self._socket)
        except (OSError, paramiko.SSHException, struct.error, ValueError, IndexError):
            self.close()

    def close(self) -> None:
        """Let go of the agent."""
        self._socket.close()


def keys_of(options: HostOptions, agent: Agent | None) -> Keys:
    """The keys of a host's options: those that it names first, the agent's before files.

    With `IdentitiesOnly` an agent serves only keys that the options name, since a server counts
    every key that it is shown.
    """
    files = tuple(filter(None, map(_key_file, options.identities)))
    held = [
        key for key in (agent.get_keys() if agent else ()) if isinstance(key, paramiko.AgentKey)
    ]
    named = {file.public: place for place, file in enumerate(files) if file.public}
    first = sorted((key for key in held if key.blob in named), key=lambda key: named[key.blob])
    others = () if options.identities_only else (key for key in held if key.blob not in named)
    served = {key.blob for key in first}
    return Keys((*first, *others), tuple(file for file in files if file.public not in served))


def shown(file: KeyFile) -> str:
    """The file in messages."""
    return printable(str(file.path))


def _key_file(path: Path) -> KeyFile | None:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        data = path.read_bytes()
    except OSError:
        return None
    public, encrypted = _opened(data)
    return KeyFile(path, public or _beside(path), encrypted)


def _opened(data: bytes) -> tuple[bytes | None, bool]:
    """The public part of a private key, and whether the rest is encrypted."""
    found = _OPENSSH.search(data)
    if found is None:
        return None, any(words in data for words in _ENCRYPTED)
    with contextlib.suppress(binascii.Error, ValueError, struct.error):
        body = base64.b64decode(b"".join(found[1].split()), validate=True)
        if body.startswith(_MAGIC):
            cipher, rest = _string(body[len(_MAGIC) :])
            _, rest = _string(rest)
            _, rest = _string(rest)
            public, _ = _string(rest[4:])
            return public, cipher != b"none"
    return None, False


def _string(data: bytes) -> tuple[bytes, bytes]:
    (size,) = struct.unpack_from(">I", data)
    return data[4 : 4 + size], data[4 + size :]


def _beside(path: Path) -> bytes | None:
    """The key of the `.pub` file beside a private one."""
    with contextlib.suppress(OSError, binascii.Error, ValueError, IndexError):
        text = path.with_name(path.name + ".pub").read_bytes()[:_MOST_BYTES]
        return base64.b64decode(text.split()[1], validate=True)
    return None


def count(keys: Sequence[object]) -> str:
    """How many keys, in words."""
    return f"{len(keys)} key" + ("" if len(keys) == 1 else "s")
