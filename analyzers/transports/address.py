"""Where another machine or a container is: what a user names, taken apart and checked."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from ..errors import UsageError
from ..install.names import printable

KINDS = (
    "ssh://[user@]host[:port], user@host, docker://container, podman://container, "
    "or kubectl://[namespace/]pod[/container]"
)
_SCHEME = re.compile(r"(ssh|docker|podman|kubectl)://(.*)", re.IGNORECASE | re.DOTALL)
# A requirement may hold an `@` too, but then a URL follows.
_AT = re.compile(r"[^\s/]+@(?:\[[^\]/]*\]|[^\s/:@]+)?(?::(?!//).*)?|[^\s/]+@[^\s/]+", re.DOTALL)
# No `-` at the front, or a program would take it for an option.
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@$\\-]*")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_CONTAINER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_KUBERNETES = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_ZONE = re.compile(r"[A-Za-z0-9_.-]+")
_LONGEST = 253


@dataclass(frozen=True, slots=True)
class SshAddress:
    """A host behind ssh; what is None is left to the ssh configuration."""

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        """As a user would write it."""
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"ssh://{user}{host}" + (f":{self.port}" if self.port else "")


@dataclass(frozen=True, slots=True)
class ContainerAddress:
    """A container of this machine's engine."""

    engine: Literal["docker", "podman"]
    container: str

    def __str__(self) -> str:
        """As a user would write it."""
        return f"{self.engine}://{self.container}"


@dataclass(frozen=True, slots=True)
class PodAddress:
    """A container of a Kubernetes pod; what is None is left to kubectl."""

    pod: str
    namespace: str | None = None
    container: str | None = None

    def __str__(self) -> str:
        """As a user would write it."""
        namespace = f"{self.namespace}/" if self.namespace else ""
        return f"kubectl://{namespace}{self.pod}" + (f"/{self.container}" if self.container else "")


Address = SshAddress | ContainerAddress | PodAddress


def is_address(text: str) -> bool:
    """Whether a user means another machine or a container, be it well-formed or not."""
    return bool(_SCHEME.match(text) or _AT.fullmatch(text))


def parse_address(text: str) -> Address:
    """Take an address apart.

    Raises:
        UsageError: it is none that ddtree knows, or no safe one.
    """
    named = _SCHEME.fullmatch(text)
    if named is None:
        if not _AT.fullmatch(text):
            raise _wrong(text, "is no address")
        return parse_host(text)
    scheme, rest = named[1].lower(), named[2]
    if scheme == "ssh":
        return parse_host(rest.removesuffix("/"), uri=True)
    if scheme == "kubectl":
        return _pod(text, rest)
    if not _CONTAINER.fullmatch(rest):
        raise _wrong(text, "names no container")
    return ContainerAddress("docker" if scheme == "docker" else "podman", rest)


def parse_host(text: str, *, uri: bool = False) -> SshAddress:
    """Take `[user@]host[:port]` apart, as it stands in a URI or in a list of jump hosts.

    Raises:
        UsageError: it is malformed, or holds a password.
    """
    user, at, place = text.rpartition("@")
    if uri:
        user = unquote(user, errors="strict" if "%" in user else "replace")
    if ":" in user:
        # The word behind the colon is not repeated, since it may be a secret.
        raise _wrong(user.partition(":")[0] + ":...", "holds a password")
    if at and not _USER.fullmatch(user):
        raise _wrong(text, "names no user that can be one")
    host, port = _split(text, place)
    return SshAddress(_checked_host(text, host), user or None, port)


def _split(text: str, place: str) -> tuple[str, int | None]:
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::(.*))?", place, re.DOTALL)
    if bracketed:
        host, port = bracketed[1], bracketed[2]
        if ":" not in host:
            raise _wrong(text, "has brackets around what is no IPv6 address")
    elif place.count(":") > 1:
        host, port = place, None
    else:
        host, colon, rest = place.partition(":")
        port = rest if colon else None
    if port is None:
        return host, None
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        what = "holds a path; name one with --python" if "/" in port else "has no such port"
        raise _wrong(text, what)
    return host, int(port)


def _checked_host(text: str, host: str) -> str:
    if "/" in host:
        raise _wrong(text, "holds a path; name one with --python")
    if ":" in host:
        address, percent, zone = host.partition("%")
        try:
            ipaddress.IPv6Address(address)
        except ValueError:
            raise _wrong(text, "holds no IPv6 address") from None
        if percent and not _ZONE.fullmatch(zone):
            raise _wrong(text, "holds no IPv6 zone")
        return host
    if not _HOST.fullmatch(host) or ".." in host or len(host) > _LONGEST:
        raise _wrong(text, "names no host that can be one")
    return host


def _pod(text: str, rest: str) -> PodAddress:
    parts = rest.split("/")
    if not 1 <= len(parts) <= 3 or not all(map(_KUBERNETES.fullmatch, parts)):
        raise _wrong(text, "names no pod")
    if len(parts) == 1:
        return PodAddress(parts[0])
    return PodAddress(parts[1], parts[0], parts[2] if len(parts) == 3 else None)


def _wrong(text: str, what: str) -> UsageError:
    return UsageError(
        f"{printable(text[:300])} {what}", expected=KINDS, hint="ddtree inspect host --help"
    )
