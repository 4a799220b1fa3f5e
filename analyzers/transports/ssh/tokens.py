"""The `%` tokens, variables and tildes in values of the ssh configuration."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import UsageError
from ...install.names import printable

_TOKEN = re.compile(r"%(.)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|%$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tokens:
    """What each token stands for."""

    values: Mapping[str, str]

    @classmethod
    def of(
        cls,
        alias: str,
        host: str,
        port: int,
        remote: str,
        user: str,
        key_alias: str | None,
        jump: str | None,
    ) -> Tokens:
        """The tokens of one host; `remote` is the user there, and `user` the one here."""
        here = socket.gethostname()
        joined = f"{here}{host}{port}{remote}{jump or ''}".encode()
        return cls(
            {
                "%": "%",
                "C": hashlib.sha1(joined, usedforsecurity=False).hexdigest(),
                "d": home("~"),
                "h": host,
                "i": str(os.getuid()),
                "j": jump or "",
                "k": key_alias or alias,
                "L": here.partition(".")[0],
                "l": here,
                "n": alias,
                "p": str(port),
                "r": remote,
                "u": user,
            }
        )

    def expand(self, text: str) -> str:
        """The text with its tokens and variables replaced.

        Raises:
            UsageError: it holds an unknown token or variable.
        """
        return _TOKEN.sub(self._one, text)

    def _one(self, found: re.Match[str]) -> str:
        token, variable = found[1], found[2]
        value = os.environ.get(variable) if variable else self.values.get(token or "")
        if value is None:
            raise UsageError(
                f"the ssh configuration holds {printable(found[0])}, which stands for nothing here",
                expected="tokens and variables that ssh_config(5) lists",
                hint="man ssh_config",
            )
        return value


def home(path: str) -> str:
    """The path with a leading `~` replaced, by the account's home as ssh does it."""
    if path != "~" and not path.startswith("~/"):
        return str(Path(path).expanduser()) if path.startswith("~") else path
    try:
        folder = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        folder = os.environ.get("HOME", "/")
    return folder + path[1:]
