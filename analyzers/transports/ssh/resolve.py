"""The options of a host, from whoever can read the ssh configuration best."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

from ..address import SshAddress
from . import configured
from .options import HostOptions, options_of


def resolve(address: SshAddress, config: Path | None) -> HostOptions:
    """How this host is reached and trusted.

    Args:
        address: what the user named.
        config: the only configuration to read; the user's and the machine's when None.

    Raises:
        UsageError: the configuration cannot be read, or makes no sense.
    """
    ssh = configured.available()
    if ssh is not None:
        raw = configured.ask(ssh, address, config)
    else:
        # Only a machine without the program needs the second best reader.
        from .read import read

        raw = read(address, config)
    return options_of(address.host, raw, _local_user())


def _local_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
