"""The runtime's settings: `--additional-config '{"ddtree": {"budget": 32}}'`."""

from __future__ import annotations

import functools
import logging
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from .misspelt import mistake, nearest

KEY = "ddtree"
# The setting that is never left out.
NEEDED = "budget"
SHAPES = ("auto", "spine_first", "siblings")
PARTS = ("mask", "positions", "commit")
# The one setting that makes output wrong on purpose, and the variable that has to allow it: nobody
# sets that by accident, and a configuration that is copied does not bring it along.
CONTROL = "without"
CONTROLS = "DDTREE_CONTROLS"
# A child of vLLM's logger, so that its handlers and its format apply.
LOGGER = logging.getLogger("vllm.ddtree_runtime")
# `MAX_SPEC_LEN` of vllm/v1/sample/rejection_sampler.py.
MAX_BUDGET = 128


class SettingsError(ValueError):
    """The settings under `ddtree` cannot be used; the message names the one that is wrong."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How trees are made and verified.

    Attributes:
        budget: drafted nodes that the target scores per request and step, 1 to 128.
        shape: "auto" takes what the drafter gives: the most probable prefixes of a block drafter,
            the chain and its siblings of an autoregressive one. "spine_first" puts a block
            drafter's own chain before all else; "siblings" hangs only leaves beside the chain.
        max_siblings: the most children of a node; unbounded when None.
        temperature: divides the drafter's logits before its candidates are compared.
        allow_untested_device: start on a device on which the runtime has not been tested.
        without: parts that are left out, of mask, positions and commit. The output is then wrong:
            this is for proving that a comparison with greedy decoding would notice, and is refused
            unless the environment variable `CONTROLS` is 1.
    """

    budget: int
    shape: str = "auto"
    max_siblings: int | None = None
    temperature: float = 1.0
    allow_untested_device: bool = False
    without: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check every value; raises SettingsError."""
        _require_int("budget", self.budget, 1, MAX_BUDGET)
        if self.shape not in SHAPES:
            raise SettingsError(
                f"ddtree.shape: expected one of {', '.join(SHAPES)}, found {self.shape!r}"
            )
        if self.max_siblings is not None:
            _require_int("max_siblings", self.max_siblings, 1, MAX_BUDGET)
        number = isinstance(self.temperature, int | float) and self.temperature is not True
        if not (number and self.temperature > 0 and math.isfinite(self.temperature)):
            raise SettingsError(
                f"ddtree.temperature: expected a positive number, found {self.temperature!r}"
            )
        if not isinstance(self.allow_untested_device, bool):
            raise SettingsError(
                "ddtree.allow_untested_device: expected true or false, "
                f"found {self.allow_untested_device!r}"
            )
        if isinstance(self.without, str) or any(part not in PARTS for part in self.without):
            raise SettingsError(
                f"ddtree.without: expected a list of {', '.join(PARTS)}, found {self.without!r}"
            )
        if self.without:
            _require_controls(self.without)


def settings_of(additional_config: object) -> Settings | None:
    """The settings in vLLM's `additional_config`, or None where there are none.

    Raises:
        SettingsError: what is under `ddtree` is no mapping, a key or a value is wrong, or settings
            are there under a name or in a place where nobody reads them.
    """
    if not isinstance(additional_config, Mapping):
        return None
    known = [field.name for field in fields(Settings) if field.name != CONTROL]
    found = mistake(additional_config, KEY, NEEDED, known)
    if found is not None:
        raise SettingsError(f"ddtree: in --additional-config, {found}")
    if KEY not in additional_config:
        return None
    given: Any = additional_config[KEY]
    if not isinstance(given, Mapping):
        raise SettingsError(
            f'ddtree: expected settings such as {{"budget": 32}}, found {type(given).__name__}'
        )
    unknown = [str(key) for key in given if key not in (*known, CONTROL)]
    if unknown:
        raise SettingsError(f"ddtree: {_unknown(unknown, known)}")
    if NEEDED not in given:
        raise SettingsError(f'ddtree: "{NEEDED}" is missing; for example {{"{NEEDED}": 32}}')
    return Settings(**given)


def settings_for(owner: object) -> Settings | None:
    """The settings in the `vllm_config` of a runner or a scheduler, or None where there are none.

    Raises:
        SettingsError: as `settings_of`.
    """
    config = getattr(owner, "vllm_config", None)
    return settings_of(getattr(config, "additional_config", None))


def _unknown(names: list[str], known: list[str]) -> str:
    """Which settings there are none of, and which were probably meant."""
    meant = [
        f'"{right}" in the place of "{name}"' for name in names if (right := nearest(name, known))
    ]
    told = f"; expected {' and '.join(meant)}" if meant else ""
    return f"unknown setting {', '.join(names)}{told}; known are {', '.join(known)}"


def _require_controls(parts: Sequence[str]) -> None:
    named = ", ".join(parts)
    if os.environ.get(CONTROLS) != "1":
        raise SettingsError(
            f"ddtree.{CONTROL}: leaving out {named} makes the output wrong on purpose, which only "
            f"`ddtree verify` needs; take it out (or set {CONTROLS}=1 where that is what you want)"
        )
    _warn(named)


@functools.cache
def _warn(parts: str) -> None:
    """Once per process and parts: settings are read with every step."""
    LOGGER.warning(
        "ddtree: %s is left out on purpose (%s=1): THE OUTPUT OF THIS ENGINE IS WRONG",
        parts,
        CONTROLS,
    )


def _require_int(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise SettingsError(
            f"ddtree.{name}: expected a whole number from {low} to {high}, found {value!r}"
        )
