"""Drafters for the tiny target, made by the engine environment's own interpreter."""

from __future__ import annotations

import subprocess
from pathlib import Path

from . import runs

# Adds noise to the target's weights, so that the drafter is often but not always right.
PERTURB = """
import shutil, sys, torch
from pathlib import Path
from safetensors.torch import load_file, save_file
source, target = Path(sys.argv[1]), Path(sys.argv[2])
shutil.copytree(source, target)
torch.manual_seed(0)
weights = load_file(source / "model.safetensors")
noisy = {name: w + torch.randn_like(w) * w.std() * 0.15 for name, w in weights.items()}
save_file(noisy, target / "model.safetensors", metadata={"format": "pt"})
"""

# A head of random weights: it drafts by the rules of an EAGLE head, and is right by chance.
EAGLE = """
import json, sys, torch
from pathlib import Path
from safetensors.torch import save_file
source, target = Path(sys.argv[1]), Path(sys.argv[2])
config = json.loads((source / "config.json").read_text())
hidden, inner, dim = (config[key] for key in ("hidden_size", "intermediate_size", "head_dim"))
heads, kept = config["num_attention_heads"], config["num_key_value_heads"]
torch.manual_seed(0)
shapes = {
    "fc": (hidden, 2 * hidden),
    "layers.0.self_attn.q_proj": (heads * dim, hidden),
    "layers.0.self_attn.k_proj": (kept * dim, hidden),
    "layers.0.self_attn.v_proj": (kept * dim, hidden),
    "layers.0.self_attn.o_proj": (hidden, heads * dim),
    "layers.0.mlp.gate_proj": (inner, hidden),
    "layers.0.mlp.up_proj": (inner, hidden),
    "layers.0.mlp.down_proj": (hidden, inner),
}
weights = {f"{key}.weight": torch.randn(shape) * shape[1] ** -0.5 for key, shape in shapes.items()}
weights["layers.0.post_attention_layernorm.weight"] = torch.ones(hidden)
target.mkdir()
save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
wanted = ("hidden_size", "intermediate_size", "head_dim", "num_attention_heads", "vocab_size",
          "num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "dtype")
(target / "config.json").write_text(json.dumps({
    **{key: config[key] for key in wanted},
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 1,
    "rope_theta": 10000.0, "tie_word_embeddings": False,
}))
"""


def perturbed(python: Path, folder: Path) -> str:
    """A noisy copy of the target in a new folder."""
    return _made(PERTURB, python, folder)


def eagle(python: Path, folder: Path) -> str:
    """An EAGLE head in a new folder."""
    return _made(EAGLE, python, folder)


def _made(program: str, python: Path, folder: Path) -> str:
    subprocess.run([str(python), "-c", program, runs.TARGET, str(folder)], check=True)
    return str(folder)
