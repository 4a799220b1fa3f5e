"""The two ways in which hooks get into an installed vLLM."""

from __future__ import annotations

import enum


class Way(enum.StrEnum):
    """How the hooks get into vLLM."""

    EDITS = "edits"
    PLUGIN = "plugin"

    @property
    def options(self) -> tuple[str, ...]:
        """What asks for it on a command line; nothing for the usual one."""
        return () if self == Way.EDITS else ("--as", self.value)

    @property
    def words(self) -> str:
        """What a patch was made by, in a sentence."""
        return (
            "edits of its files" if self == Way.EDITS else "a plug-in that leaves its files alone"
        )
