"""The ssh configuration, where there is no ssh program to ask.

The library's reader does not follow `Include`, and takes a condition that it does not know for one
that holds. So includes are followed here, and what would be read wrongly is refused.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from pathlib import Path

import paramiko

from ...errors import UsageError
from ...install.names import printable
from ..address import SshAddress
from .options import Raw
from .tokens import home

USER = "~/.ssh/config"
MACHINE = "/etc/ssh/ssh_config"
_DEEPEST = 16
_MOST_BYTES = 4 << 20
_LINE = re.compile(r"^\s*([A-Za-z][A-Za-z0-9]*)(?:\s*=\s*|\s+)(.*?)\s*$")
_CRITERIA = {"all", "host", "originalhost", "user", "localuser"}
_VALUED = _CRITERIA - {"all"}
# Keywords of which every line counts.
_LISTS = {"identityfile"}


def read(address: SshAddress, config: Path | None) -> Raw:
    """Everything that holds for a host.

    Raises:
        UsageError: the configuration cannot be read, or holds what only ssh understands.
    """
    files = [config] if config else [Path(home(USER)), Path(MACHINE)]
    found: dict[str, list[str]] = {}
    if address.user:
        found["user"] = [address.user]
    if address.port:
        found["port"] = [str(address.port)]
    for file in files:
        text = "\n".join(_lines(file, 0, required=config is not None))
        for keyword, value in _looked_up(address, text, file).items():
            values = [value] if isinstance(value, str) else list(value)
            if keyword in _LISTS:
                found.setdefault(keyword, []).extend(values)
            else:
                found.setdefault(keyword, values)
    return found


def _looked_up(address: SshAddress, text: str, file: Path) -> dict[str, str]:
    try:
        # The user's name decides in `Match user`.
        chosen = f"Host *\nUser {address.user}\n" if address.user else ""
        return dict(paramiko.SSHConfig.from_text(chosen + text).lookup(address.host))
    except (paramiko.SSHException, ValueError, KeyError) as error:
        raise _refused(file, printable(str(error))[:300]) from error


def _lines(file: Path, depth: int, *, required: bool = False) -> Iterator[str]:
    if depth > _DEEPEST:
        raise _refused(file, f"files include each other more than {_DEEPEST} deep")
    block = "Host *"
    for number, line in enumerate(_text(file, required=required).splitlines(), 1):
        parsed = _LINE.match(line)
        keyword = parsed[1].lower() if parsed else ""
        value = parsed[2] if parsed else ""
        if keyword == "match":
            _check_match(file, number, value)
        if keyword in {"host", "match"}:
            block = line
        if keyword != "include":
            yield line
            continue
        included = [found for name in _names(value) for found in _lines(name, depth + 1)]
        everything = block.split()[1:] in (["*"], ["all"])
        if not everything and any(_opens_a_block(found) for found in included):
            raise _refused(file, f"line {number} includes blocks inside of a block")
        yield from included
        # The lines that follow belong to where the file was, not to the included end.
        yield block


def _text(file: Path, *, required: bool) -> str:
    try:
        if file.is_file() and file.stat().st_size <= _MOST_BYTES:
            return file.read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise _refused(file, error.strerror or "it cannot be read") from error
    if required:
        raise _refused(file, "there is no such file")
    return ""


def _names(value: str) -> Iterator[Path]:
    for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', value):
        pattern = home(quoted or plain)
        if not pattern.startswith("/"):
            pattern = f"{home('~')}/.ssh/{pattern}"
        yield from map(Path, sorted(glob.glob(pattern)))  # noqa: PTH207  # an absolute pattern


def _opens_a_block(line: str) -> bool:
    parsed = _LINE.match(line)
    return (
        bool(parsed) and line.split()[:2] != ["Host", "*"] and _keyword(line) in {"host", "match"}
    )


def _keyword(line: str) -> str:
    parsed = _LINE.match(line)
    return parsed[1].lower() if parsed else ""


def _check_match(file: Path, number: int, value: str) -> None:
    words = iter(value.split())
    for word in words:
        criterion = word.removeprefix("!").lower()
        if criterion not in _CRITERIA:
            raise _refused(file, f"line {number} holds `Match {criterion}`, which only ssh decides")
        if criterion in _VALUED:
            next(words, None)


def _refused(file: Path, why: str) -> UsageError:
    return UsageError(
        f"the ssh configuration {printable(str(file))} cannot be read without ssh: {why}",
        expected="the ssh program, which reads all of it, or a simpler configuration",
        hint="apt-get install openssh-client",
    )
