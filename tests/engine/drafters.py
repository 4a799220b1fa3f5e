"""Drafters, and a target for some of them, made by the engine environment's own interpreter."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

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

# A target of random weights with a head of its own for multi-token prediction. Embeddings leave
# some dimensions to what the layers add, which changes slowly along a text. Heads that take a
# token's embedding, and what was added at the token before, are therefore often right, not always.
TARGET = """
import json, sys, torch
from pathlib import Path
from safetensors.torch import save_file
target, vocabulary, hidden, heads, kept, dim, inner = Path(sys.argv[2]), 512, 128, 4, 2, 32, 256
free = 32
added = torch.cat([torch.zeros(hidden - free), torch.ones(free)])
torch.manual_seed(0)
weights = {}
def linear(name, rows, columns, bias=False):
    weights[name + ".weight"] = torch.randn(rows, columns) * columns ** -0.5
    if bias:
        weights[name + ".bias"] = torch.randn(rows) * 0.1
def block(name, scale):
    for part, rows in (("q", heads * dim), ("k", kept * dim), ("v", kept * dim)):
        linear(f"{name}.self_attn.{part}_proj", rows, hidden, bias=True)
    linear(f"{name}.self_attn.o_proj", hidden, heads * dim)
    linear(f"{name}.mlp.gate_proj", inner, hidden)
    linear(f"{name}.mlp.up_proj", inner, hidden)
    weights[f"{name}.self_attn.o_proj.weight"] *= scale * added[:, None]
    weights[f"{name}.self_attn.q_proj.weight"] *= 0.1
    weights[f"{name}.mlp.down_proj.weight"] = torch.zeros(hidden, inner)
    for part in ("input", "post_attention"):
        weights[f"{name}.{part}_layernorm.weight"] = torch.ones(hidden)
weights["model.embed_tokens.weight"] = torch.randn(vocabulary, hidden) * (1 - added)
linear("lm_head", vocabulary, hidden)
weights["model.norm.weight"] = torch.ones(hidden)
for number in range(2):
    block(f"model.layers.{number}", 4)
head = "model.mtp_layers.0"
block(head, 0.0)
for part in ("token", "hidden", "final"):
    weights[f"{head}.{part}_layernorm.weight"] = torch.ones(hidden)
weights[f"{head}.input_proj.weight"] = torch.cat([torch.diag(added), torch.eye(hidden)], 1)
target.mkdir()
save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
(target / "config.json").write_text(json.dumps({
    "architectures": ["MiMoForCausalLM"], "model_type": "qwen2", "dtype": "float32",
    "vocab_size": vocabulary, "hidden_size": hidden, "intermediate_size": inner,
    "num_attention_heads": heads, "num_key_value_heads": kept, "num_hidden_layers": 2,
    "num_nextn_predict_layers": 1, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0, "tie_word_embeddings": False, "use_sliding_window": False,
}))
"""


# An EAGLE head for such a target; its own layer adds nothing.
EAGLE = """
import json, sys, torch
from pathlib import Path
from safetensors.torch import save_file
source, target = Path(sys.argv[1]), Path(sys.argv[2])
config = json.loads((source / "config.json").read_text())
hidden, inner = config["hidden_size"], config["intermediate_size"]
heads, kept = config["num_attention_heads"], config["num_key_value_heads"]
dim = hidden // heads
torch.manual_seed(0)
shapes = {
    "self_attn.q_proj": (heads * dim, hidden),
    "self_attn.k_proj": (kept * dim, hidden),
    "self_attn.v_proj": (kept * dim, hidden),
    "mlp.gate_proj": (inner, hidden),
    "mlp.up_proj": (inner, hidden),
}
weights = {key: torch.randn(shape) * shape[1] ** -0.5 for key, shape in shapes.items()}
weights["self_attn.o_proj"] = torch.zeros(hidden, heads * dim)
weights["mlp.down_proj"] = torch.zeros(hidden, inner)
weights["post_attention_layernorm"] = torch.ones(hidden)
weights = {f"layers.0.{key}.weight": weight for key, weight in weights.items()}
added = torch.cat([torch.zeros(hidden - 32), torch.ones(32)])
weights["fc.weight"] = torch.cat([torch.eye(hidden), torch.diag(added)], 1)
target.mkdir()
save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
wanted = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads",
          "vocab_size", "max_position_embeddings", "rms_norm_eps", "rope_theta", "dtype")
(target / "config.json").write_text(json.dumps({
    **{key: config[key] for key in wanted},
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 1,
    "tie_word_embeddings": False,
}))
"""


def perturbed(python: Path, folder: Path) -> str:
    """A noisy copy of the tiny target in a new folder."""
    return _made(PERTURB, python, runs.TARGET, folder)


def heads(python: Path, folder: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    """A target below a new folder, and speculative configurations with a head that fits it."""
    folder.mkdir()
    target = _made(TARGET, python, "", folder / "target")
    eagle = _made(EAGLE, python, target, folder / "eagle")
    given: dict[str, dict[str, Any]] = {"eagle": {"model": eagle}, "mtp": {}}
    return target, {
        name: {"method": name, **own, "num_speculative_tokens": 3} for name, own in given.items()
    }


def _made(program: str, python: Path, source: str, folder: Path) -> str:
    subprocess.run([str(python), "-c", program, source, str(folder)], check=True)
    return str(folder)
