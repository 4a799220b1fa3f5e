"""The prompts of a verification as token ids."""

from __future__ import annotations

import random
from typing import Any

from . import events, plan

LENGTHS = (5, 20, 33, 47, 64, 90, 31, 100)
# So many of these where Triton's interpreter takes its time with every request.
INTERPRETED = 4
# The tiny target's vocabulary, less what its drafter uses as a mask.
TINY_VOCABULARY = 500
TEXTS = (
    "List the planets of the solar system with one sentence about each of them.",
    "Write a Python function that merges two sorted lists, and explain how it works.",
    "A train leaves at 9:40 and arrives at 13:05. How long does it travel? Show the steps.",
    "Translate into French: the harbour was quiet, and the boats did not move.",
    "Give the SQL statement that creates a table of books with title, author and year.",
    "Explain to a child why the sky is blue.",
    "Continue: one, two, three, four, five, six, seven,",
    "Write a short letter that asks a neighbour to keep the gate closed.",
)


def of(job: dict[str, Any]) -> list[list[int]]:
    """Token ids of every prompt.

    Raises:
        OSError: a prompt is text, and the model has no tokenizer.
        ValueError: as before, or a prompt is empty.
    """
    source = random.Random(job["seed"])
    given = job["prompts"]
    if given is None and job["model"] is None:
        lengths = LENGTHS[:INTERPRETED] if plan.interpreted(job) else LENGTHS
        events.emit("prompts", about=f"{len(lengths)} random prompts")
        return [[source.randrange(TINY_VOCABULARY) for _ in range(n)] for n in lengths]
    if given is None:
        events.emit("prompts", about=f"{len(TEXTS)} prompts that come with ddtree")
        given = [{"text": text} for text in TEXTS]
    else:
        events.emit("prompts", about=f"{len(given)} given prompts")
    encode = _encoder(job) if any("text" in one for one in given) else None
    found = [
        one["tokens"] if encode is None or "tokens" in one else encode(one["text"]) for one in given
    ]
    if not all(found):
        raise ValueError("a prompt has no tokens")
    return found


def _encoder(job: dict[str, Any]) -> Any:
    from transformers import AutoTokenizer

    engine = job["engine"]
    named = engine.get("tokenizer") or job["model"]
    trusted = bool(engine.get("trust_remote_code"))
    return AutoTokenizer.from_pretrained(named, trust_remote_code=trusted).encode
