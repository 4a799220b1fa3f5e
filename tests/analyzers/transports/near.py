"""The near side of a test: an ssh configuration and known hosts of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ddtree.analyzers.transports import Running, Transport
from ddtree.analyzers.transports.open import Settings

from .sshd import Sshd

# Nothing of the user's or the machine's is read.
_EVERYWHERE = """
Host *
    GlobalKnownHostsFile /dev/null
    UserKnownHostsFile {known}
    IdentityAgent none
    IdentitiesOnly no
    User {user}
"""


def settings(
    folder: Path, server: Sshd, *, known: str | None = None, lines: Sequence[str] = (), **more: Any
) -> Settings:
    """Settings with which the host `box` is the server.

    Args:
        folder: where the near side's files lie.
        server: the other side.
        known: what the known_hosts file holds; the server's key when None.
        lines: more of the configuration of `box`, before everything else.
        more: fields of the settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "known_hosts").write_text(server.known if known is None else known)
    own = "".join(f"    {line}\n" for line in lines)
    named = "" if any(line.lower().startswith("identityfile") for line in lines) else server.key
    identity = f"    IdentityFile {named}\n" if named else ""
    everywhere = _EVERYWHERE.format(known=folder / "known_hosts", user=server.user)
    config = folder / "config"
    config.write_text(
        f"Host box\n{own}    HostName 127.0.0.1\n    Port {server.port}\n{identity}{everywhere}"
    )
    return Settings(ssh_config=config, **more)


def python(code: str) -> list[str]:
    """The command that runs this code over there."""
    return [sys.executable, "-I", "-c", code]


def output(running: Running, seconds: float = 60.0) -> bytes:
    """All that a command prints."""
    found = b""
    while (chunk := running.chunk(seconds)) is not None:
        found += chunk
    return found


def answer(transport: Transport, code: str, stdin: bytes = b"") -> str:
    """What some code prints over there, which ends well."""
    running = transport.start(python(code), stdin)
    try:
        found = output(running)
    finally:
        ended = running.close()
    assert ended == 0, running.log()
    return found.decode()
