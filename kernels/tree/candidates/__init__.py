"""The most probable tokens of every drafted position, with their log-probabilities."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch

from .. import checks
from . import reference, vectorised

__all__ = ["Candidates", "Form", "candidates"]

Form = Literal["auto", "reference", "vectorised"]
FORMS = ("auto", "reference", "vectorised")
FLOATS = (torch.float32, torch.float16, torch.bfloat16)


class Candidates(NamedTuple):
    """What `build` takes, best first at every position.

    Attributes:
        ids: [R, D, K] int32, distinct tokens.
        logp: [R, D, K] float32, natural log-probabilities under the whole vocabulary, never NaN.
    """

    ids: torch.Tensor
    logp: torch.Tensor


def candidates(
    logits: torch.Tensor,
    k: int,
    *,
    temperature: torch.Tensor | float | None = None,
    form: Form = "auto",
) -> Candidates:
    """Take the `k` best tokens of each position, without a log-softmax of the vocabulary.

    NaN counts as -inf and +inf as the largest float32. Tokens with equal logits are in the order
    of their ids; which of those that tie for the last place get in is not specified.

    Args:
        logits: [R, D, V] float32, float16 or bfloat16 of any strides.
        k: K, 1 to V.
        temperature: divides the logits; a number or [R] float32. A request whose temperature is
            0 (greedy) or no positive finite number gets the logits as they are, because a tree
            needs a second choice.
        form: "auto" is "vectorised" on every device.

    Raises:
        ValueError: an argument's shape, dtype or device is not as above, or `k` is out of range.

    Source: DDTree, Ringel & Romano 2026, arXiv 2604.12989, per-position distributions.
    """
    if form not in FORMS:
        raise ValueError(f"form: expected one of {', '.join(FORMS)}, found {form!r}")
    checks.tensor("logits", logits, (None, None, None), FLOATS, contiguous=False)
    if not 1 <= k <= logits.shape[-1]:
        raise ValueError(f"k: expected 1 to {logits.shape[-1]}, found {k}")
    if isinstance(temperature, torch.Tensor):
        float32 = (torch.float32,)
        checks.tensor("temperature", temperature, (len(logits),), float32, logits.device)
    elif temperature is not None:
        temperature = torch.full(
            (len(logits),), temperature, dtype=torch.float32, device=logits.device
        )
    chosen = reference if form == "reference" else vectorised
    return Candidates(*chosen.candidates(logits, k, temperature))
