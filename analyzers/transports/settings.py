"""How a user wants other machines to be reached."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..progress import Say, silent

_OPENSSH = ("--transport", "openssh")


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for every address of a run.

    Args:
        transport: who speaks ssh: the library, or the ssh program.
        accept_new: trust the key of a host that is not known yet, and remember it.
        sudo: run everything as root, through `sudo -n`.
        timeout: seconds from the first byte until the last command has to be done; None for no
            such limit. Each step of a connection has limits of its own.
        ssh_config: the only ssh configuration to read; the user's and the machine's when None.
        say: takes sentences that a user should see, such as which key was accepted.
    """

    transport: Literal["paramiko", "openssh"] = "paramiko"
    accept_new: bool = False
    sudo: bool = False
    timeout: float | None = None
    ssh_config: Path | None = None
    say: Say = silent

    def command(self, address: object, *more: str) -> str:
        """The command that looks at an address in the same way, with more options."""
        config = ("--ssh-config", str(self.ssh_config)) if self.ssh_config else ()
        other = () if self.transport == "paramiko" or "--transport" in more else _OPENSSH
        return shlex.join(["ddtree", "inspect", "host", str(address), *more, *other, *config])
