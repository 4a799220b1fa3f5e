"""What the runtime keeps for one model runner."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import attention
from .cache import Caches
from .config import LOGGER, Settings
from .counters import Counters
from .eligibility import why_not
from .pending import Pending
from .refusals import check_layer
from .step import Step

ATTRIBUTE = "_ddtree"


@dataclass(slots=True)
class Engine:
    """State of one runner.

    Attributes:
        settings: what the user asked for.
        depth: tokens that the drafter drafts in a chain.
        counters: what happened so far.
        sampling_of: a request's `SamplingParams` by its name.
        caches: of the target's layers.
        pending: trees that wait for their verification.
        step: the step in progress, from the preparation of its inputs to its drafts.
        layers: attention layers of the target by KV cache group; None before the first step.
        changed_slots: of the requests that just came, those that a custom logits processor takes.
        announced: the log says that there are trees.
        longest: no sequence may be longer, for the drafter either, where the runtime sees to that.
        texts: what is known of a request's text by a drafter that looks for repetitions.
    """

    settings: Settings
    depth: int
    counters: Counters
    sampling_of: Callable[[str], Any]
    caches: Caches = field(default_factory=Caches)
    pending: Pending = field(default_factory=Pending)
    step: Step | None = None
    layers: list[dict[str, Any]] | None = None
    changed_slots: set[int] = field(default_factory=set)
    announced: bool = False
    longest: int = sys.maxsize
    texts: dict[str, Any] = field(default_factory=dict)
    # With the parameters that were judged: another request may come under a name that was used.
    _reasons: dict[str, tuple[Any, str | None]] = field(default_factory=dict)

    def reason(self, request: str) -> str | None:
        """Why a request cannot take a tree, or None; judged once per request."""
        sampling = self.sampling_of(request)
        known = self._reasons.get(request)
        if known is None or known[0] is not sampling:
            known = self._reasons[request] = (sampling, why_not(sampling))
        return known[1]

    def judge(self, request: str, sampling: Any) -> None:
        """Decide whether a request that arrives with these `SamplingParams` takes trees."""
        self._reasons[request] = (self.sampling_of(request), why_not(sampling))

    def refuse(self, request: str, reason: str) -> None:
        """Verify a request as a chain, for a reason that its `SamplingParams` do not tell."""
        sampling, known = self._reasons.get(request, (self.sampling_of(request), None))
        self._reasons[request] = (sampling, known or reason)

    def count(self, reason: str, requests: Iterable[str]) -> None:
        """Count requests that are verified without a tree; vLLM's own, by which it warms up, not.

        Args:
            reason: why.
            requests: names.
        """
        number = sum(not is_warm_up(request) for request in requests)
        if number:
            self.counters.fallbacks[reason] += number

    def announce(self, config: Any, runner: str) -> None:
        """Say once, in one process of the engine, that there are trees."""
        if not self.announced and config.parallel_config.rank == 0:
            LOGGER.info(
                "ddtree: trees are on: budget %d, shape %s, drafter %s of depth %d, %s runner",
                self.settings.budget,
                self.settings.shape,
                config.speculative_config.method,
                self.depth,
                runner,
            )
        self.announced = True

    def forget(self, finished: Iterable[str]) -> None:
        """Drop what is known of finished requests; their names may come again."""
        for known in (self._reasons, self.pending.rounds, self.texts):
            for request in finished:
                known.pop(request, None)

    def keep_only(self, alive: Container[str]) -> None:
        """Drop what is known of every request that is not alive."""
        for known in (self._reasons, self.pending.rounds, self.texts):
            for request in [request for request in known if request not in alive]:
                del known[request]

    def take_layers(
        self, groups: Iterable[Any], every: Mapping[str, Any], drafters: Container[str]
    ) -> None:
        """Know the target's layers from here on.

        Args:
            groups: vLLM's KV cache groups.
            every: all layers of the engine by name.
            drafters: names of the drafter's own.

        Raises:
            Refused: a layer's attention cannot be a tree's.
        """
        self.layers = [
            {name: every[name] for name in group.layer_names if name not in drafters}
            for group in groups
        ]
        for group in self.layers:
            for name, layer in group.items():
                check_layer(name, layer)
                if attention.through_layers:
                    attention.hook_into(name, layer)

    def expected_layers(self) -> set[str]:
        """Names of the target's layers, all of which have to attend with the tree's mask."""
        return {name for group in self.layers or [] for name in group}


def is_warm_up(request: str) -> bool:
    """Whether vLLM made the request itself, to run its kernels once before it serves."""
    # Names that come from outside have a prefix of vLLM's or a number.
    return request.startswith("_") and "warmup" in request


def engine_of(runner: Any) -> Engine | None:
    """The runner's state, or None where trees are not configured."""
    found: Engine | None = getattr(runner, ATTRIBUTE, None)
    return found
