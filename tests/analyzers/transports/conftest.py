"""One server for all tests that need no special one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .sshd import Sshd, serve


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A server that lets one key in."""
    with serve(tmp_path_factory.mktemp("sshd") / "server") as running:
        yield running


@pytest.fixture(autouse=True)
def nobodys_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test uses the agent of whoever runs it."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
