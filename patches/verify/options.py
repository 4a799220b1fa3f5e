"""What a verification is asked to do, checked."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...analyzers.errors import UsageError
from ..runtime.config import MAX_BUDGET

LEVELS = ("L1", "L2", "L3", "L4", "L5")
METHODS = ("dflash", "draft_model", "eagle", "eagle3", "mtp", "ngram")
# These draft with the target itself, or with its text.
WITHOUT_DRAFTER = ("mtp", "ngram")
RUNNERS = ("v1", "v2")
DTYPES = ("float32", "float16", "bfloat16", "auto")
TINY_BUDGETS = (7, 32)
BUDGETS = (32,)
HELP = "ddtree verify --help"


@dataclass(frozen=True, slots=True)
class Options:
    """What all parts of a verification take.

    Attributes:
        target: as `open_target` takes it.
        python: the interpreter to verify with; that of the target's environment when None.
        model: of the target; the tiny one that comes with ddtree when None.
        drafter: a model that drafts for it.
        method: vLLM's name for the kind of drafter.
        budgets: nodes per tree, one engine each.
        depth: tokens that the drafter drafts in a chain; its own number when None.
        tokens: that every request generates.
        prompts: a file of prompts; those that come with ddtree when None.
        dtype: of the target; float32 for the tiny one, else the model's own.
        levels: which levels to run.
        runner: which of vLLM's model runners, of `RUNNERS`; the one that vLLM takes when None.
        engine: further arguments of vLLM's `LLM`.
        timeout: seconds that all of it may take.
    """

    target: str | None = None
    python: Path | None = None
    model: str | None = None
    drafter: str | None = None
    method: str | None = None
    budgets: tuple[int, ...] = ()
    depth: int | None = None
    tokens: int = 96
    prompts: Path | None = None
    dtype: str | None = None
    levels: tuple[str, ...] = LEVELS
    seed: int = 1
    runner: str | None = None
    engine: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 1800.0

    def __post_init__(self) -> None:
        """Check what belongs together; raises UsageError."""
        if self.model is None and (self.drafter or self.method or self.depth):
            raise _wrong(
                "--drafter, --method and --depth are for a --model of your own",
                "none of them, or a --model too",
            )
        if self.model is not None and not self.drafter and self.method not in WITHOUT_DRAFTER:
            raise _wrong(
                f"a --model without a --drafter{f' for {self.method}' if self.method else ''}",
                f"a --drafter, or --method {' or '.join(WITHOUT_DRAFTER)}",
            )
        for budget in self.budgets:
            if not 1 <= budget <= MAX_BUDGET:
                raise _wrong(f"--budget {budget}", f"a whole number from 1 to {MAX_BUDGET}")
        if self.tokens < 16:
            raise _wrong(
                f"--tokens {self.tokens}", "at least 16, or nothing is crossed or continued"
            )

    def at_home(self) -> Options:
        """With models that are folders here by their whole paths: the harness works elsewhere."""
        return replace(self, model=_whole(self.model), drafter=_whole(self.drafter))

    def job(self, modules: Sequence[str]) -> dict[str, Any]:
        """What the harness is told.

        Args:
            modules: the edited modules, by their import names.

        Raises:
            UsageError: the prompts cannot be read.
        """
        tiny = self.model is None
        prompts = None if self.prompts is None else read_prompts(self.prompts)
        if tiny and any("text" in prompt for prompt in prompts or ()):
            raise _wrong("the tiny model has no tokenizer for text", "prompts as token ids")
        return {
            "levels": sorted(set(self.levels)),
            "modules": list(modules),
            "model": self.model,
            "drafter": self.drafter,
            "method": "dflash" if tiny else self.method,
            "budgets": sorted(set(self.budgets or (TINY_BUDGETS if tiny else BUDGETS))),
            "depth": self.depth,
            "tokens": self.tokens,
            "prompts": prompts,
            "dtype": self.dtype or ("float32" if tiny else "auto"),
            "seed": self.seed,
            "runner": self.runner,
            "engine": dict(self.engine),
        }


def _whole(name: str | None) -> str | None:
    if name is None:
        return None
    path = Path(name).expanduser()
    return str(path.absolute()) if path.exists() else name


def read_prompts(path: Path) -> list[dict[str, Any]]:
    """The prompts of a file: a line of text each, or a line of JSON each.

    A line of JSON is a string, a list of token ids, or an object with `prompt` or
    `prompt_token_ids`.

    Raises:
        UsageError: the file cannot be read, holds nothing, or a line is none of these.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise UsageError(
            f"--prompts {path} cannot be read: {words}",
            expected="a file of prompts, one a line",
            hint=shlex.join(["ls", "-l", str(path)]),
        ) from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise _wrong(f"{path} holds no prompt", "a prompt on every line")
    if any(line[0] not in '{["' for line in lines):
        return [{"text": line} for line in lines]
    return [_prompt(path, number, line) for number, line in enumerate(lines, start=1)]


def _prompt(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        found = found.get("prompt", found.get("prompt_token_ids"))
    if isinstance(found, str) and found:
        return {"text": found}
    ids = isinstance(found, list) and all(type(item) is int and item >= 0 for item in found)
    if found and ids:
        return {"tokens": found}
    raise _wrong(
        f"line {number} of {path} is no prompt",
        'a JSON string, a list of token ids, or {"prompt": ...} or {"prompt_token_ids": ...}',
    )


def _wrong(found: str, expected: str) -> UsageError:
    return UsageError(found, expected=expected, hint=HELP)
