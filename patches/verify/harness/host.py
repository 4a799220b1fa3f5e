"""One engine of the target, with a watch in its runner."""

from __future__ import annotations

import gc
import time
from typing import Any

from . import events, worker
from .plan import Case

# Changes nothing and makes a request one that cannot take a tree: something reads its prefix.
TREE_FREE = {"frequency_penalty": 1e-30}


class Host:
    """An engine that runs."""

    def __init__(self, case: Case, runner: str) -> None:
        """Start it.

        Raises:
            Unable: it works with another model runner.
        """
        from vllm import LLM

        self.case = case
        before = time.perf_counter()
        self.llm: Any = LLM(**case.engine)
        self.start_seconds = time.perf_counter() - before
        self.cached = 0
        # What was counted before parts of the runtime were switched off.
        self.settled: dict[str, Any] | None = None
        self._steps: list[tuple[float, bool]] = []
        self._time_steps()
        works = self.call(worker.install)
        if works != runner:
            raise events.Unable(f"expected the {runner} model runner, vLLM took the {works} one")

    def call(self, function: Any, *args: Any, **named: Any) -> Any:
        """Run a function in the worker of the first rank."""
        return self.llm.collective_rpc(function, args=args, kwargs=named)[0]

    def generate(
        self, prompts: list[list[int]], tokens: int, extra: list[dict[str, Any]] | None = None
    ) -> list[list[int]]:
        """Greedy continuations of exactly `tokens` tokens."""
        from vllm import SamplingParams

        given = [
            SamplingParams(
                temperature=0.0, max_tokens=tokens, ignore_eos=True, detokenize=False, **more
            )
            for more in extra or [{}] * len(prompts)
        ]
        asked = [{"prompt_token_ids": tokens} for tokens in prompts]
        outputs = self.llm.generate(asked, given, use_tqdm=False)
        self.cached += sum(output.num_cached_tokens or 0 for output in outputs)
        return [list(output.outputs[0].token_ids) for output in outputs]

    def timed(self, prompts: list[list[int]], tokens: int) -> dict[str, Any]:
        """Continuations, and how long they took: in all, per step, and in how many steps.

        A step counts from the second to the last in which no request had ended, so that all of
        them have the whole batch and no prompt.
        """
        verified, accepted = self.verified()
        self._steps.clear()
        before = time.perf_counter()
        found = self.generate(prompts, tokens)
        seconds = time.perf_counter() - before
        whole = []
        for number, (duration, ended) in enumerate(self._steps):
            if ended:
                break
            if number:
                whole.append(duration)
        now = self.verified()
        return {
            "tokens": found,
            "seconds": seconds,
            "steps": len(self._steps),
            "step_seconds": sorted(whole)[len(whole) // 2] if whole else None,
            "verifications": now[0] - verified,
            "accepted": now[1] - accepted,
        }

    def verified(self) -> tuple[int, int]:
        """Verifications so far, and the draft tokens that they accepted."""
        return self.call(worker.seen, "verifications"), self.call(worker.seen, "accepted")

    def counted(self) -> dict[str, Any]:
        """What was counted: tokens from the prefix cache, mixed steps, the runtime's counters."""
        return self.settled or {
            "cached": self.cached,
            "mixed": self.call(worker.seen, "mixed"),
            "counters": self.call(worker.counters),
        }

    def settle(self) -> None:
        """Let what follows change nothing of what was counted."""
        self.settled = self.counted()

    def metric(self, name: str) -> float | None:
        """A counter of vLLM's own; of several engines in a process, the last one's."""
        found = (m for m in self.llm.get_metrics() if m.name == name)
        return getattr(next(found, None), "value", None)

    def forget(self) -> None:
        """Empty the prefix cache."""
        self.llm.reset_prefix_cache()

    def close(self) -> None:
        """End it, so that its memory is free."""
        from vllm.distributed import cleanup_dist_env_and_memory

        self.llm.llm_engine.engine_core.shutdown()
        del self.llm
        gc.collect()
        cleanup_dist_env_and_memory()

    def _time_steps(self) -> None:
        step = self.llm.llm_engine.step

        def timed() -> Any:
            before = time.perf_counter()
            outputs = step()
            ended = any(output.finished for output in outputs)
            self._steps.append((time.perf_counter() - before, ended))
            return outputs

        self.llm.llm_engine.step = timed
