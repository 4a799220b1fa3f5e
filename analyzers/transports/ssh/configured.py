"""What the ssh program says that the configuration says: `ssh -G`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ...errors import UnreachableError, UsageError
from ...install.names import printable
from ..address import SshAddress
from .options import Raw

_SECONDS = 10


def available() -> str | None:
    """The ssh program, if there is one."""
    return shutil.which("ssh")


def ask(ssh: str, address: SshAddress, config: Path | None) -> Raw:
    """Everything that holds for a host.

    Raises:
        UsageError: the configuration cannot be read.
        UnreachableError: a command in it does not end.
    """
    command = [ssh, *arguments(address, config), "-G", "--", address.host]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnreachableError(
            f"the ssh configuration of {printable(address.host)} took more than {_SECONDS} seconds",
            expected="commands in `Match exec` that end",
            hint=f"ssh -G {printable(address.host)}",
        ) from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"]
        raise UsageError(
            f"ssh cannot read its configuration: {printable(said[0])}",
            expected="a configuration that ssh understands",
            hint=f"ssh -G {printable(address.host)}",
        )
    return _parsed(done.stdout.decode("utf-8", "surrogateescape").splitlines())


def arguments(address: SshAddress, config: Path | None) -> list[str]:
    """The options of the ssh program for this address, without the host."""
    chosen = ["-F", str(config)] if config else []
    user = ["-l", address.user] if address.user else []
    port = ["-p", str(address.port)] if address.port else []
    return [*chosen, *user, *port]


def _parsed(lines: Sequence[str]) -> Raw:
    found: dict[str, list[str]] = {}
    for line in lines:
        keyword, _, value = line.partition(" ")
        found.setdefault(keyword.lower(), []).append(value)
    return found
