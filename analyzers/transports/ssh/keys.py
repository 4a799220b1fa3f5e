"""The private keys that may open a host: the agent's, and files."""

from __future__ import annotations

import base64
import binascii
import contextlib
import io
import re
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from paramiko.agent import AgentSSH

from ...install.names import printable
from .options import HostOptions
from .prompt import Secret

_AGENT_SECONDS = 10.0
# The agent's protocol: a question, and its answer.
_LIST_KEYS = b"\x0b"
_KEYS = 12
_MOST_KEYS = 1024
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
        certificate = self.path.with_name(self.path.name + "-cert.pub")
        # Whatever the libraries say about a damaged key; their words may hold parts of it.
        with contextlib.suppress(
            paramiko.SSHException, UnsupportedAlgorithm, ValueError, TypeError, OSError
        ):
            key = _loaded(self.path.read_bytes(), word)
            if key is not None and certificate.is_file():
                key.load_certificate(str(certificate))
            return key
        return None


@dataclass(frozen=True, slots=True)
class Keys:
    """Everything that may be tried, in this order."""

    agent: tuple[paramiko.AgentKey, ...]
    files: tuple[KeyFile, ...]


class Agent(AgentSSH):
    """The keys of the agent behind a socket."""

    def __init__(self, path: str) -> None:
        """Ask for its keys; it has none if it does not answer as an agent does."""
        super().__init__()
        self.held: tuple[paramiko.AgentKey, ...] = ()
        self._conn = socket.socket(socket.AF_UNIX)
        self._conn.settimeout(_AGENT_SECONDS)
        # What it sends is cut off, or longer than it says, if it is none.
        with contextlib.suppress(OSError, paramiko.SSHException, struct.error, ValueError):
            self._conn.connect(path)
            self.held = self._listed()

    def close(self) -> None:
        """Let go of the agent."""
        self._conn.close()

    def _listed(self) -> tuple[paramiko.AgentKey, ...]:
        ask: Any = self._send_message  # type: ignore[attr-defined]  # the stubs hide it
        kind, answer = ask(_LIST_KEYS)
        count = answer.get_int()
        if kind != _KEYS or count > _MOST_KEYS:
            return ()
        found = []
        for _ in range(count):
            found.append(paramiko.AgentKey(self, answer.get_binary()))
            answer.get_binary()
        return tuple(found)


def keys_of(options: HostOptions, agent: Agent | None) -> Keys:
    """The keys of a host's options: those that it names first, the agent's before files.

    With `IdentitiesOnly` an agent serves only keys that the options name, since a server counts
    every key that it is shown.
    """
    files = tuple(filter(None, map(_key_file, options.identities)))
    held = agent.held if agent else ()
    named = {file.public: place for place, file in enumerate(files) if file.public}
    first = sorted((key for key in held if key.blob in named), key=lambda key: named[key.blob])
    others = () if options.identities_only else (key for key in held if key.blob not in named)
    served = {key.blob for key in first}
    return Keys((*first, *others), tuple(file for file in files if file.public not in served))


def shown(file: KeyFile) -> str:
    """The file in messages."""
    return printable(str(file.path))


def _loaded(data: bytes, word: bytes | None) -> paramiko.PKey | None:
    """The key in a file of any form.

    The library's own reader takes the end of some keys without a comment for padding, so that it
    gets them as it likes them best.
    """
    try:
        opened = serialization.load_ssh_private_key(data, word)
    except ValueError:
        # More kinds of keys come out of it than ssh knows; what is done with them refuses those.
        opened = serialization.load_pem_private_key(data, word)  # type: ignore[assignment]
    for kind, loader, form in (
        (RSAPrivateKey, paramiko.RSAKey, PrivateFormat.TraditionalOpenSSL),
        (EllipticCurvePrivateKey, paramiko.ECDSAKey, PrivateFormat.TraditionalOpenSSL),
        (Ed25519PrivateKey, paramiko.Ed25519Key, PrivateFormat.OpenSSH),
    ):
        if isinstance(opened, kind):
            text = opened.private_bytes(Encoding.PEM, form, NoEncryption()).decode()
            return loader.from_private_key(io.StringIO(text))
    return None


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
