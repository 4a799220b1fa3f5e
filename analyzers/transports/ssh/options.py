"""What the ssh configuration says about one host."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import UsageError
from ...install.names import printable
from .tokens import Tokens, home

# Keywords in lower case, each with its values in the order of the configuration.
Raw = Mapping[str, Sequence[str]]

IDENTITIES = ("~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519")
USER_KNOWN_HOSTS = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
GLOBAL_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
_YES = {"yes", "true"}


@dataclass(frozen=True, slots=True)
class HostOptions:
    """How one host is reached and trusted.

    Args:
        alias: the name that the user gave.
        host: the name or address to connect to.
        identities: private key files, the first to be tried first; they need not exist.
        agent: the socket of the agent; None for no agent.
        known_hosts: files of trusted keys; a new key goes into the first.
        jumps: hosts to go through, the nearest first.
        proxy: a shell command whose stdin and stdout lead to the host.
        connect_seconds: None for the usual time limit.
        ask: whether a person may be asked for words.
    """

    alias: str
    host: str
    port: int
    user: str
    identities: tuple[Path, ...]
    identities_only: bool
    agent: str | None
    known_hosts: tuple[Path, ...]
    key_alias: str | None
    hash_known_hosts: bool
    jumps: tuple[str, ...]
    proxy: str | None
    connect_seconds: float | None
    methods: frozenset[str]
    ask: bool
    prompts: int

    @property
    def known_as(self) -> str:
        """The name under which known_hosts files list it."""
        if self.key_alias:
            return self.key_alias.lower()
        host = self.host.lower()
        return host if self.port == 22 else f"[{host}]:{self.port}"

    @property
    def known_elsewhere_as(self) -> str:
        """The name that files list for the usual port; ssh takes its key on any other, too."""
        return (self.key_alias or self.host).lower()

    @property
    def shown(self) -> str:
        """The host in messages."""
        host = printable(self.host)
        place = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        return place if self.alias == self.host else f"{printable(self.alias)} ({place})"


def options_of(alias: str, raw: Raw, user: str) -> HostOptions:
    """The options of a host from what the configuration says.

    Args:
        alias: the name that the user gave.
        raw: the keywords and values.
        user: the name of the user on this machine.

    Raises:
        UsageError: a value makes no sense.
    """
    say = _Words(raw)
    host = say.one("hostname") or alias
    port = _port(alias, say.one("port") or "22")
    remote = say.one("user") or user
    expand = Tokens.of(
        alias, host, port, remote, user, say.one("hostkeyalias"), say.one("proxyjump")
    ).expand
    return HostOptions(
        alias=alias,
        host=host,
        port=port,
        user=remote,
        identities=_identities(raw, expand),
        identities_only=say.yes("identitiesonly"),
        agent=_agent(next(iter(raw.get("identityagent", ())), "").strip(), expand),
        known_hosts=_known_hosts(say, expand),
        key_alias=say.one("hostkeyalias"),
        hash_known_hosts=say.yes("hashknownhosts"),
        jumps=tuple(filter(None, (say.one("proxyjump") or "").split(","))),
        proxy=expand(command) if (command := say.one("proxycommand")) else None,
        connect_seconds=_seconds(say.one("connecttimeout")),
        methods=_methods(say),
        ask=not say.yes("batchmode"),
        prompts=_number(say.one("numberofpasswordprompts"), 3),
    )


class _Words:
    def __init__(self, raw: Raw) -> None:
        self._raw = raw

    def one(self, keyword: str) -> str | None:
        """The first value of a keyword; None if it has none, or says that it is none."""
        value = next(iter(self._raw.get(keyword, ())), "").strip()
        return None if not value or value.lower() == "none" else value

    def yes(self, keyword: str, default: str = "no") -> bool:
        return (self.one(keyword) or default).lower() in _YES


def _identities(raw: Raw, expand: Callable[[str], str]) -> tuple[Path, ...]:
    named = raw.get("identityfile") or IDENTITIES
    return tuple(
        dict.fromkeys(
            Path(home(expand(_unquoted(name)))) for name in named if name.lower() != "none"
        )
    )


def _agent(named: str, expand: Callable[[str], str]) -> str | None:
    if named.lower() == "none":
        return None
    if named in {"", "SSH_AUTH_SOCK"}:
        return os.environ.get("SSH_AUTH_SOCK") or None
    if named.startswith("$") and not named.startswith("${"):
        return os.environ.get(named[1:]) or None
    return home(expand(_unquoted(named)))


def _known_hosts(say: _Words, expand: Callable[[str], str]) -> tuple[Path, ...]:
    ours = say.one("userknownhostsfile") or USER_KNOWN_HOSTS
    theirs = say.one("globalknownhostsfile") or GLOBAL_KNOWN_HOSTS
    names = [*_several(ours), *_several(theirs)]
    return tuple(Path(home(expand(name))) for name in names)


def _several(value: str) -> list[str]:
    """The names in a list; ssh says it without quotes, so that names with blanks are looked for."""
    words = re.findall(r'"[^"]*"|\S+', value)
    found: list[str] = []
    while words:
        joined = (" ".join(words[:count]) for count in range(len(words), 1, -1))
        name = next((name for name in joined if Path(home(name)).is_file()), words[0])
        found.append(_unquoted(name))
        words = words[name.count(" ") + 1 :] if name is not words[0] else words[1:]
    return found


def _unquoted(name: str) -> str:
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' else name


def _methods(say: _Words) -> frozenset[str]:
    wanted = {
        "publickey": "pubkeyauthentication",
        "keyboard-interactive": "kbdinteractiveauthentication",
        "password": "passwordauthentication",
    }
    # ssh answers with the kind of key exchange here, any of which allows keys.
    refused = {"no", "false"}
    return frozenset(
        name
        for name, keyword in wanted.items()
        if (say.one(keyword) or "yes").lower() not in refused
    )


def _port(alias: str, text: str) -> int:
    port = _number(text, 0)
    if 0 < port < 65536:
        return port
    raise UsageError(
        f"the ssh configuration gives {printable(alias)} the port {printable(text)}",
        expected="a port from 1 to 65535",
        hint=f"ssh -G {printable(alias)}",
    )


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 7 else default


def _seconds(text: str | None) -> float | None:
    number = _number(text, 0)
    return float(number) if number else None
