"""A tokenizer for the tiny target, so that grammars can be asked for."""

from __future__ import annotations

import itertools
import json
import string
from pathlib import Path

from .runs import VOCABULARY

# Token number n is the n-th pair of letters; the first, "aa", is what pads chains.
PAIRS = ["".join(pair) for pair in itertools.product(string.ascii_lowercase, repeat=2)]
WORDS = [*PAIRS[: VOCABULARY - 1], "</s>"]


def tokenizer(folder: Path) -> str:
    """Write the tokenizer's files; the folder's name."""
    folder.mkdir()
    model = {
        "type": "WordLevel",
        "unk_token": WORDS[0],
        "vocab": {word: number for number, word in enumerate(WORDS)},
    }
    none = ("truncation", "padding", "normalizer", "post_processor", "decoder")
    made: dict[str, object] = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        **dict.fromkeys(none),
        "model": model,
    }
    (folder / "tokenizer.json").write_text(json.dumps(made))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": WORDS[-1]}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return str(folder)
