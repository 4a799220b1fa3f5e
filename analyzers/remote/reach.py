"""From an address to the install there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from ..errors import TargetError
from ..install.names import printable
from ..targets.source import Target
from ..transports.address import Address, ContainerAddress, SshAddress, parse_address
from ..transports.open import open_transport
from ..transports.settings import Settings
from .ask import RefusedError
from .exchange import PATIENCE_SECONDS
from .target import remote_target


def _silent(_: str) -> None:
    """Progress that nobody wants to see."""


def reached_target(
    address: str,
    settings: Settings,
    *,
    python: str | None = None,
    record: bool = False,
    progress: Callable[[str], None] = _silent,
) -> Target:
    """Look at the install on another machine or in a container; see `remote_target`.

    Raises:
        UsageError: the address makes no sense.
        UnreachableError: nothing can be run there.
        TargetError: there is no such install.
    """
    place = parse_address(address)
    shown = printable(address)
    patience = PATIENCE_SECONDS if settings.timeout is None else settings.timeout
    try:
        return remote_target(
            shown,
            lambda: open_transport(place, settings),
            python=python,
            record=record,
            patience=patience,
            progress=progress,
        )
    except RefusedError as error:
        hint = _local_hint(error.hint, shown, place)
        raise TargetError(error.found, expected=error.expected, hint=hint) from None


def _local_hint(hint: str, shown: str, place: Address) -> str:
    """A command that does here what a hint of the other side does there."""
    ours = re.match(r"ddtree inspect host\b", hint)
    if ours:
        rest = hint[ours.end() :].strip()
        # What is a target there is an environment of the target here.
        named = rest if not rest or rest.startswith("-") else f"--python {rest}"
        return f"ddtree inspect host {shlex.quote(shown)} {named}".rstrip()
    return shlex.join([*there(place), hint])


def there(place: Address) -> list[str]:
    """The words before a shell's line that is to run at an address."""
    if isinstance(place, SshAddress):
        port = ["-p", str(place.port)] if place.port else []
        return ["ssh", *port, f"{place.user}@{place.host}" if place.user else place.host]
    if isinstance(place, ContainerAddress):
        return [place.engine, "exec", place.container, "sh", "-c"]
    namespace = ["-n", place.namespace] if place.namespace else []
    container = ["-c", place.container] if place.container else []
    return ["kubectl", "exec", *namespace, place.pod, *container, "--", "sh", "-c"]
