"""Run a command in a container, through the program that manages it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from ..errors import TargetError, UnreachableError
from ..install.names import printable
from . import Running, Transport
from .address import ContainerAddress, PodAddress
from .explained import ExplainedRunning
from .local import LocalTransport

# What the programs say when it is not the command that failed, and what to look at then.
_REASONS = (
    ("no such container", "is no container here"),
    ("no container with name or id", "is no container here"),
    ("is not running", "is not running"),
    ("is paused", "is paused"),
    ("is restarting", "is restarting"),
    ("container state improper", "is not running"),
    ("can only create exec sessions on running containers", "is not running"),
    ("(notfound)", "is not there"),
    ("not found in pod", "is not there"),
    ("is not valid for pod", "is not there"),
    ("(forbidden)", "may not be entered"),
    ("container not found", "is not running"),
    ("cannot connect to the docker daemon", "cannot be looked for"),
    ("permission denied while trying to connect", "may not be entered"),
    ("cannot connect to podman", "cannot be looked for"),
    ("the connection to the server", "cannot be looked for"),
    ("unable to connect to the server", "cannot be looked for"),
    ("current-context is not set", "cannot be looked for"),
    ("error from server", "cannot be entered"),
    ("error response from daemon", "cannot be entered"),
)
# docker speaks with the daemon's voice too when a container lacks the command.
_COMMAND = ("oci runtime", "executable file not found", "no such file or directory")


class ContainerTransport:
    """Commands in a container or a pod."""

    def __init__(
        self, address: ContainerAddress | PodAddress, transport: Transport | None = None
    ) -> None:
        """Enter this container.

        Args:
            address: which one.
            transport: runs the program that manages it; on this machine when None.

        Raises:
            UnreachableError: that program is not installed.
        """
        self._address = address
        self._transport = transport or LocalTransport()
        engine = address.engine if isinstance(address, ContainerAddress) else "kubectl"
        if shutil.which(engine) is None:
            raise UnreachableError(
                f"there is no {engine} on this machine to reach {address} with",
                expected=f"the program {engine} on PATH",
                hint=f"command -v {engine}",
            )

    def start(self, command: Sequence[str], stdin: bytes) -> Running:
        """See `Transport`."""
        running = self._transport.start([*prefix(self._address), *command], stdin)
        return ExplainedRunning(running, self._explained)

    def _explained(self, _: int, log: tuple[str, ...]) -> TargetError | None:
        said = " ".join(log[-3:])
        low = said.lower()
        if any(words in low for words in _COMMAND):
            return None
        for words, meaning in _REASONS:
            if words in low:
                return UnreachableError(
                    f"{self._address} {meaning}: {printable(said[-300:])}",
                    expected="a running container that this user may enter",
                    hint=_listing(self._address),
                )
        return None


def prefix(address: ContainerAddress | PodAddress) -> tuple[str, ...]:
    """The words before a command that is to run in there."""
    if isinstance(address, ContainerAddress):
        return (address.engine, "exec", "-i", address.container)
    namespace = ("-n", address.namespace) if address.namespace else ()
    container = ("-c", address.container) if address.container else ()
    return ("kubectl", "exec", "-i", *namespace, address.pod, *container, "--")


def _listing(address: ContainerAddress | PodAddress) -> str:
    if isinstance(address, ContainerAddress):
        return f"{address.engine} ps --all"
    return "kubectl get pods" + (f" -n {address.namespace}" if address.namespace else "")
