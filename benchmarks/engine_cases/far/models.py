"""Writes a Qwen3 of about 100 million random weights and a DFlash drafter of fitting shape.

Started by path in the engine environment: `models.py FOLDER` makes `FOLDER/target` and
`FOLDER/drafter`, the same bytes every time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

HIDDEN, INNER, HEADS, KV_HEADS, DIM, VOCABULARY = 768, 2304, 12, 4, 64, 12288
TARGET_LAYERS, DRAFTER_LAYERS, BLOCK, TAPPED = 12, 2, 8, (1, 5, 9)
STD = 0.02

SHAPE: dict[str, Any] = {
    "model_type": "qwen3",
    "attention_bias": False,
    "bos_token_id": 1,
    "dtype": "float32",
    "eos_token_id": 2,
    "head_dim": DIM,
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "max_position_embeddings": 2048,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "vocab_size": VOCABULARY,
}


def main() -> None:
    """Write both models."""
    folder = Path(sys.argv[1])
    torch.manual_seed(0)
    write(folder / "target", target_config(), target_weights())
    write(folder / "drafter", drafter_config(), drafter_weights())


def write(folder: Path, config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    """One model folder as vLLM loads it."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def target_config() -> dict[str, Any]:
    """Twelve layers of full attention."""
    architecture = {"architectures": ["Qwen3ForCausalLM"]}
    return {**SHAPE, **architecture, "num_hidden_layers": TARGET_LAYERS}


def drafter_config() -> dict[str, Any]:
    """Two layers, a block of eight, three of the target's layers as context."""
    return {
        **SHAPE,
        "architectures": ["DFlashDraftModel"],
        "num_hidden_layers": DRAFTER_LAYERS,
        "num_target_layers": TARGET_LAYERS,
        "layer_types": ["full_attention"] * DRAFTER_LAYERS,
        "block_size": BLOCK,
        "dflash_config": {
            "mask_token_id": VOCABULARY - 1,
            "target_layer_ids": list(TAPPED),
        },
    }


def target_weights() -> dict[str, torch.Tensor]:
    """The target's tensors by name, 101 million elements."""
    return {
        "model.embed_tokens.weight": drawn(VOCABULARY, HIDDEN),
        "lm_head.weight": drawn(VOCABULARY, HIDDEN),
        "model.norm.weight": torch.ones(HIDDEN),
        **layers("model.layers", TARGET_LAYERS),
    }


def drafter_weights() -> dict[str, torch.Tensor]:
    """The drafter's tensors by name; embeddings and head are the target's."""
    return {
        "fc.weight": drawn(HIDDEN, HIDDEN * len(TAPPED)),
        "hidden_norm.weight": torch.ones(HIDDEN),
        "norm.weight": torch.ones(HIDDEN),
        **layers("layers", DRAFTER_LAYERS),
    }


def layers(prefix: str, count: int) -> dict[str, torch.Tensor]:
    """The tensors of decoder layers."""
    shapes = {
        "self_attn.q_proj": (HEADS * DIM, HIDDEN),
        "self_attn.k_proj": (KV_HEADS * DIM, HIDDEN),
        "self_attn.v_proj": (KV_HEADS * DIM, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HEADS * DIM),
        "mlp.gate_proj": (INNER, HIDDEN),
        "mlp.up_proj": (INNER, HIDDEN),
        "mlp.down_proj": (HIDDEN, INNER),
    }
    norms = {
        "input_layernorm": HIDDEN,
        "post_attention_layernorm": HIDDEN,
        "self_attn.q_norm": DIM,
        "self_attn.k_norm": DIM,
    }
    made = {}
    for layer in range(count):
        for name, shape in shapes.items():
            made[f"{prefix}.{layer}.{name}.weight"] = drawn(*shape)
        for name, size in norms.items():
            made[f"{prefix}.{layer}.{name}.weight"] = torch.ones(size)
    return made


def drawn(*shape: int) -> torch.Tensor:
    """Normal weights of the usual initial size."""
    return torch.randn(*shape) * STD


if __name__ == "__main__":
    main()
