"""The server of the transports' tests, and nobody's agent."""

from tests.analyzers.transports.conftest import nobodys_agent, server

__all__ = ["nobodys_agent", "server"]
