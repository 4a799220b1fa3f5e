"""Read what another process sent, and believe none of it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import FarSideError


def garbage(what: str) -> FarSideError:
    """The error for data that is not what was agreed on."""
    return FarSideError(
        f"the target sent {what}",
        expected="the events of ddtree's own harness",
        hint="ddtree patch TARGET --status",
    )


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object whose fields are read by type; a wrong one raises `FarSideError`."""

    data: Mapping[str, Any]

    @classmethod
    def parse(cls, line: bytes) -> Fields:
        """The object that a line holds."""
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            raise garbage(f"an event that is no JSON: {line[:80]!r}") from None
        if not isinstance(data, dict):
            raise garbage(f"an event that is no object: {line[:80]!r}")
        return cls(data)

    def text(self, name: str) -> str:
        """A string."""
        value = self._of(name)
        if not isinstance(value, str):
            raise self._wrong(name, "text")
        return value

    def maybe_text(self, name: str) -> str | None:
        """A string or null."""
        return None if self._of(name) is None else self.text(name)

    def whole(self, name: str) -> int:
        """A whole number of at least 0."""
        value = self._of(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._wrong(name, "a whole number")
        return value

    def maybe_whole(self, name: str) -> int | None:
        """A whole number or null."""
        return None if self._of(name) is None else self.whole(name)

    def number(self, name: str) -> float:
        """A finite number."""
        value = self._of(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self._wrong(name, "a number")
        return float(value) if math.isfinite(value) else math.inf

    def maybe_number(self, name: str) -> float | None:
        """A finite number or null."""
        return None if self._of(name) is None else self.number(name)

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._of(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def objects(self, name: str) -> list[Fields]:
        """A list of objects."""
        return [Fields(item) for item in self._list(name, dict)]

    def wholes(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        return tuple(self._list(name, int))

    def table(self, name: str) -> tuple[tuple[int, ...], ...]:
        """A list of lists of whole numbers."""
        lines = self._list(name, list)
        if not all(isinstance(item, int) for line in lines for item in line):
            raise self._wrong(name, "lists of whole numbers")
        return tuple(tuple(line) for line in lines)

    def counts(self, name: str) -> dict[str, int]:
        """Whole numbers by name."""
        value = self._of(name)
        if not isinstance(value, dict) or not all(isinstance(one, int) for one in value.values()):
            raise self._wrong(name, "counts by name")
        return {str(key): one for key, one in value.items()}

    def inner(self, name: str) -> Fields | None:
        """An object or null."""
        value = self._of(name)
        if value is not None and not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return None if value is None else Fields(value)

    def _list(self, name: str, kind: type) -> list[Any]:
        value = self._of(name)
        if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
            raise self._wrong(name, f"a list of {kind.__name__}")
        return value

    def _of(self, name: str) -> Any:
        if name not in self.data:
            raise garbage(f"an event of the kind {self.data.get('kind')!r:.40} without {name!r}")
        return self.data[name]

    def _wrong(self, name: str, expected: str) -> FarSideError:
        return garbage(f"{name!r} that is not {expected}: {self.data[name]!r:.80}")
