"""What is taken out of walks and of the fork around them, and which stages are then lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import fork, inputs, mini

_RUNNERS = ("vllm/v1/worker/gpu_model_runner.py", "vllm/v1/worker/gpu/model_runner.py")
_BACKEND = "vllm/v1/attention/backends/masked.py"
_KEEP = "keep_path(self.kv_caches, metadata.slots, metadata.path, output.shape[1])"
_WALK = "vllm/v1/sample/accept.py"

# For each walk, how it compares tokens, and the same without that.
EQUALITY: dict[str, tuple[str, str]] = {
    "alive_if_parent": ("tokens[node] == target[above]", "tokens[node] >= 0"),
    "ancestor_matrix": ("tokens == target.gather(1, above)", "target.gather(1, above) >= 0"),
    "child_map": ("predicted[path[-1]])", "len(predicted))"),
    "child_map_cursor": ("int(target[row, node])\n            out", "depth\n            out"),
    "child_table_gather": (
        "tokens.gather(1, options.clamp(min=0)) == want[:, None]",
        "options > want[:, None]",
    ),
    "coin_among_siblings": ("< float(residual[token])", "< 0.5"),
    "gather_by_depth": ("(tokens == wanted)", "(tokens >= wanted)"),
    "matches_first": ("tokens == target.gather", "tokens <= target.gather"),
    "missed_ancestors": ("tokens != target.gather(1, above)", "target.gather(1, above) < 0"),
    "nested_tries": ("level.get(int(sampled))", "level.get(depth)"),
    "node_objects": ("node.children.get(token)", "node.children.get(node.row)"),
    "numba_sibling_walk": ("tokens[row, child] == target[row, here]", "tokens[row, child] > 3"),
    "numpy_parent_walk": ("(tokens == target[node])", "(tokens > 0)"),
    "one_hot_links": ("(token == asked)", "(token >= 0)"),
    "one_hot_sum": ("(drawn == word)", "(drawn >= 0)"),
    "path_enumeration": (
        "(candidates[:, 1:] == predicted[:, :-1]) & (paths",
        "(predicted[:, :-1] >= 0) & (paths",
    ),
    "pointer_doubling": (
        "tokens == torch.gather(target, 1, above)",
        "torch.gather(target, 1, above) >= 0",
    ),
    "propagate_ok": ("tokens == target.gather(1, above)", "tokens <= target.gather(1, above)"),
    "recursive_descent": ("tokens[child] == predicted[node]", "tokens[child] != 0"),
    "torch_parent_items": ("(tokens[row] == chosen)", "(tokens[row] >= 0)"),
    "triton_child_table": ("(token == sampled)", "(token >= 0)"),
    "triton_nested_siblings": ("tl.load(tokens_ptr + base + cursor) == wanted", "cursor < nodes"),
    "triton_parent_scan": ("(token == wanted)", "(token >= 0)"),
    "triton_parent_while": ("(tok == want)", "(tok >= 0)"),
    "triton_sibling_walk": ("tl.load(token_ptr + start + candidate) == want", "candidate < width"),
}
# Compared with something else than what the target said at the parent.
ELSEWHERE: dict[str, tuple[str, str]] = {
    "child_table_gather": ("== want[:, None]\n", "== tokens[:, :1]\n"),
    "gather_by_depth": ("(tokens == wanted)", "(tokens == tokens.gather(1, current))"),
    "numpy_parent_walk": ("(tokens == target[node])", "(tokens == tokens[node])"),
    "one_hot_sum": ("tl.where(lanes == here, said, 0)", "tl.where(lanes == here, drawn, 0)"),
    "propagate_ok": ("tokens == target.gather", "tokens == tokens.gather"),
    "triton_parent_scan": ("(token == wanted)", "(token == parent)"),
    "triton_parent_while": ("(tok == want)", "(up == want)"),
}


@dataclass(frozen=True)
class Cut:
    """One thing that is taken out of a fork: which stage loses its tree."""

    stage: str
    files: tuple[str, ...]
    old: str
    new: str


# The mask's way to scores.
_SUM = "scores + metadata.bias"
_HANDED = "positions, attention)"
FORK: dict[str, Cut] = {
    "mask-not-added": Cut("attention", (_BACKEND,), _SUM, "scores"),
    "mask-only-its-form": Cut(
        "attention", (_BACKEND,), _SUM, "scores + torch.zeros_like(metadata.bias)"
    ),
    "mask-not-in-metadata": Cut(
        "attention", (_BACKEND,), "common.slots, visible(common.parents)", "common.slots, None"
    ),
    "mask-not-kept": Cut("attention", (_BACKEND,), "self.bias = bias", "self.bias = None"),
    "metadata-not-handed-on": Cut("attention", _RUNNERS, _HANDED, "positions)"),
    "mask-is-causal": Cut(
        "attention",
        ("vllm/v1/attention/mask.py",),
        "seen[each, parents[:, node]]",
        "seen[:, node - 1]",
    ),
    "no-commit": Cut("commit", _RUNNERS, _KEEP, "self.last = output"),
    "commit-of-hidden-rows": Cut(
        "commit", _RUNNERS, "keep_path(self.kv_caches,", "keep_path([hidden_states],"
    ),
    "commit-of-logits": Cut("commit", _RUNNERS, "keep_path(self.kv_caches,", "keep_path([logits],"),
    "commit-of-ids": Cut(
        "commit", _RUNNERS, "keep_path(self.kv_caches,", "keep_path([metadata.draft_token_ids],"
    ),
    "commit-of-masks": Cut(
        "commit", _RUNNERS, "keep_path(self.kv_caches,", "keep_path([metadata.mask],"
    ),
    "commit-undecided": Cut("commit", _RUNNERS, "output.shape[1])", "metadata.width)"),
    "commit-moves-nothing": Cut(
        "commit", ("vllm/v1/core/commit.py",), "cache[:, source].clone()", "cache[:, destination]"
    ),
    "drafts-dropped": Cut(
        "drafting",
        _RUNNERS,
        "return output, self.drafter.propose(hidden_states, output)",
        "self.drafter.propose(hidden_states, output)\n        return output",
    ),
    "one-candidate": Cut(
        "drafting", ("vllm/v1/spec_decode/drafter.py",), "(logits, self.width,", "(logits, 1,"
    ),
}


def forked(walk: str, cut: Cut | None = None) -> dict[str, str]:
    """The files of the fork that does all four stages with a walk, less what is cut out of it.

    Raises:
        ValueError: what is cut out is not there exactly once.
    """
    files = mini.files(inputs.POSITIVES[walk]) | fork.files(commits=True)
    for file in cut.files if cut else ():
        files[file] = _swapped(files[file], cut.old, cut.new) if cut else ""
    return files


def mutated(walk: str, changes: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """The files of the fork whose walk compares tokens in another way."""
    return forked(walk) | {_WALK: _swapped(inputs.POSITIVES[walk], *changes[walk])}


def _swapped(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise ValueError(f"{old!r} is there {text.count(old)} times, expected once")
    return text.replace(old, new)
