"""Commands of the other side as commands that can be typed here."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ..transports.address import Address, ContainerAddress, SshAddress


def local(
    hint: str, target: str, python: str | None, options: Sequence[str], shell: Sequence[str]
) -> str:
    """What does here what a hint of the other side does there.

    Args:
        hint: the command; what names an install in it is a path there.
        target: what the user called the other side.
        python: what the user called the environment there, if anything.
        options: with these the other side is reached.
        shell: the words before a command that is to run there.
    """
    try:
        program, *words = shlex.split(hint)
    except ValueError:
        return hint
    if program != "ddtree":
        return shlex.join([*shell, hint]) if shell else hint
    command, words = _split(words)
    found, words = _named(words)
    # An inspection points at what to look at; all else means the install that was named.
    named = found or python if command[0] == "inspect" else python or found
    place = ["--python", named] if named else []
    return shlex.join(["ddtree", *command, target, *place, *options, *words])


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The words of the command, and those behind it."""
    count = 2 if words[:1] == ["inspect"] else 1
    return words[:count], words[count:]


def _named(words: list[str]) -> tuple[str | None, list[str]]:
    """What names the install, as a target or after --python, and the words that do not."""
    if words and not words[0].startswith("-"):
        return words[0], words[1:]
    if "--python" not in words[:-1]:
        return None, words
    place = words.index("--python")
    return words[place + 1], words[:place] + words[place + 2 :]


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
