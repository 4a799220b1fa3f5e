"""Commands of the other side, as they are typed here."""

from __future__ import annotations

import pytest

from ddtree.analyzers.remote.hints import local

SHELL = ("ssh", "box")
REACHED = ("--ssh-config", "cfg")


@pytest.mark.parametrize(
    ("hint", "python", "typed"),
    [
        ("ddtree inspect host /a/.venv", "/a", "inspect host u@box --python /a/.venv"),
        ("ddtree inspect host --python '/a b'", None, "inspect host u@box --python '/a b'"),
        ("ddtree inspect host --help", None, "inspect host u@box --help"),
        ("ddtree patch /a/site --status", "/a", "patch u@box --python /a --status"),
        ("ddtree patch /a --status", None, "patch u@box --python /a --status"),
        ("ddtree patch /a --bundle DIR", "/a", "patch u@box --python /a --bundle DIR"),
        ("ddtree patch --help", None, "patch u@box --help"),
    ],
)
def test_ours_name_the_address(hint: str, python: str | None, typed: str) -> None:
    """And the environment; other options and their values stay."""
    assert local(hint, "u@box", python, (), SHELL) == f"ddtree {typed}"


def test_what_reaches_the_other_side_is_kept() -> None:
    assert local("ddtree patch /a --apply", "u@box", None, REACHED, SHELL) == (
        "ddtree patch u@box --python /a --ssh-config cfg --apply"
    )


@pytest.mark.parametrize("hint", ["ps -fp 12", "mv '/a b' /c"])
def test_others_run_there(hint: str) -> None:
    """Quoted once more, for the shell there."""
    quoted = "'" + hint.replace("'", "'\"'\"'") + "'"
    assert local(hint, "u@box", None, (), SHELL) == f"ssh box {quoted}"
    assert local(hint, "u@box", None, (), ()) == hint


def test_what_is_no_command_stays() -> None:
    assert local("a 'b", "u@box", None, (), SHELL) == "a 'b"
