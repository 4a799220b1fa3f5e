"""Look at the models and the prompts that the user named, before anything that takes long.

Runs where the models are, and imports nothing heavy unless a name of the hub or a text asks for it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from . import events, plan, prompts

Job = dict[str, Any]

TARGET, USAGE = "target", "usage"
A_MODEL = "a folder with a model, or the name of one that vLLM can fetch"
TOKENIZERS = ("tokenizer*", "*.model", "vocab.*", "tekken.json", "*.tiktoken")
TOKEN_IDS = "--prompts FILE with token ids: a list of numbers on every line"


class Wrong(Exception):
    """What the user named cannot be used.

    Attributes:
        kind: whether it is missing (`TARGET`) or does not fit (`USAGE`).
        found: what is wrong.
        expected: what would be right.
    """

    def __init__(self, kind: str, found: str, expected: str) -> None:
        """See the attributes."""
        super().__init__(found)
        self.kind, self.found, self.expected = kind, found, expected


def run(job: Job, folder: Path, part: str) -> None:
    """Emit what is wrong, and leave a mark that ends the verification; else do nothing."""
    del part
    events.progress("looking at models and prompts")
    try:
        _look(job, folder)
    except Wrong as wrong:
        (folder / plan.REFUSED).touch()
        events.emit("refused", what=wrong.kind, found=wrong.found, expected=wrong.expected)


def _look(job: Job, folder: Path) -> None:
    target, drafter = plan.models(job, folder)
    config = configuration("--model", target, job["engine"])
    if drafter is not None:
        configuration("--drafter", drafter, {})
    given = job["prompts"]
    if given is None or any("text" in one for one in given):
        _encoded(job, target)
    _refuse_unknown(given or [], config, job["model"] or "the tiny model")


def configuration(option: str, name: str, engine: dict[str, Any]) -> dict[str, Any] | None:
    """The configuration of a model; None where it has none that can be read here.

    Raises:
        Wrong: there is no such model.
    """
    path = Path(name)
    if path.is_dir():
        return _read(option, path)
    # A single file is a format of its own; an address is for vLLM to resolve.
    if path.is_file() or "://" in name or os.environ.get("VLLM_USE_MODELSCOPE"):
        return None
    if is_path(name):
        raise Wrong(TARGET, f"{option} {name}: there is no such folder", A_MODEL)
    return _fetched(option, name, engine)


def is_path(name: str) -> bool:
    """Whether a model's name can only be a path: the hub's names have one slash at most."""
    return name.startswith(("/", ".", "~")) or name.count("/") > 1 or name.endswith("/")


def _read(option: str, path: Path) -> dict[str, Any] | None:
    file = path / "config.json"
    if not file.is_file():
        if (path / "params.json").is_file():
            return None
        raise Wrong(TARGET, f"{option} {path}: holds no config.json", A_MODEL)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Wrong(
            TARGET, f"{option} {path}: config.json cannot be read: {error}", A_MODEL
        ) from None
    return found if isinstance(found, dict) else None


def _fetched(option: str, name: str, engine: dict[str, Any]) -> dict[str, Any] | None:
    if {"hf_config_path", "config_format"} & set(engine):
        return None
    from transformers import PretrainedConfig

    try:
        found, _ = PretrainedConfig.get_config_dict(name, revision=engine.get("revision"))
    except OSError as error:
        # The hub knows it, and it is configured in another way.
        if type(error.__cause__).__name__ in ("EntryNotFoundError", "RemoteEntryNotFoundError"):
            return None
        words = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise Wrong(TARGET, f"{option} {name}: {words}", A_MODEL) from None
    return found if isinstance(found, dict) else None


def _encoded(job: Job, target: str) -> None:
    folder = Path(target)
    # Some versions of transformers make an empty tokenizer of nothing.
    if folder.is_dir() and not job["engine"].get("tokenizer") and not _tokenizers(folder):
        found = f"--model {target} has no tokenizer, which prompts that are text need"
        raise Wrong(USAGE, found, TOKEN_IDS)
    try:
        prompts.of(job)
    # Whatever a tokenizer raises, there is none that can be used.
    except Exception as failure:  # noqa: BLE001
        words = next(iter(str(failure).strip().splitlines()), type(failure).__name__)
        found = f"--model {target} has no tokenizer for prompts that are text: {words}"
        raise Wrong(USAGE, found[:500], TOKEN_IDS) from None


def _tokenizers(folder: Path) -> list[Path]:
    """Files that a tokenizer is made of."""
    return [path for pattern in TOKENIZERS for path in folder.glob(pattern)]


def _refuse_unknown(given: list[dict[str, Any]], config: dict[str, Any] | None, name: str) -> None:
    size = vocabulary(config or {})
    for number, one in enumerate(given, start=1):
        largest = max(one.get("tokens", ()), default=0)
        if size is not None and largest >= size:
            raise Wrong(
                USAGE,
                f"prompt {number} of --prompts holds the token {largest}, and {name} has {size}",
                f"token ids from 0 to {size - 1}",
            )


def vocabulary(config: dict[str, Any]) -> int | None:
    """How many tokens a model knows; None if its configuration does not say."""
    inner = config.get("text_config")
    nested = inner if isinstance(inner, dict) else {}
    size = config.get("vocab_size", nested.get("vocab_size"))
    return size if isinstance(size, int) and size > 0 else None
