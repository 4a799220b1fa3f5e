"""Why a request cannot take a tree: something reads the preceding rows as its prefix.

`min_p` and `logit_bias` are no reasons: vLLM refuses requests with them beside speculation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

REASONS: dict[str, Callable[[Any], object]] = {
    "presence penalty": lambda sampling: sampling.presence_penalty,
    "frequency penalty": lambda sampling: sampling.frequency_penalty,
    "repetition penalty": lambda sampling: sampling.repetition_penalty != 1.0,
    "bad words": lambda sampling: sampling.bad_words or sampling.bad_words_token_ids,
    "allowed token ids": lambda sampling: sampling.allowed_token_ids,
    "min_tokens": lambda sampling: sampling.min_tokens,
    "structured output": lambda sampling: sampling.structured_outputs,
    "thinking budget": lambda sampling: getattr(sampling, "thinking_token_budget", None),
}


def why_not(sampling: Any) -> str | None:
    """Why a request with these `SamplingParams` is verified as a chain; None if it takes a tree."""
    if sampling is None:
        return "no sampling parameters"
    for reason, holds in REASONS.items():
        if holds(sampling):
            return reason
    return None
