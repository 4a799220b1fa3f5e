"""The float64 logits of a Qwen3 whose weights are rounded to bfloat16, for given texts.

Started by path in the engine environment: `exact.py MODEL TEXTS LOGITS`. TEXTS is a JSON list of
token lists, LOGITS becomes a list of float64 tensors [tokens, V], row by row what follows a token.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM


def main() -> None:
    """Read, compute, write."""
    model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16)
    model = model.double().eval()
    texts = json.loads(Path(sys.argv[2]).read_text())
    with torch.inference_mode():
        logits = [model(torch.tensor([text])).logits[0].clone() for text in texts]
    torch.save(logits, sys.argv[3])


if __name__ == "__main__":
    main()
