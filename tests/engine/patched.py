"""A vLLM whose functions call the runtime, in front of the engine environment's own.

The files of the package are links to the environment's, except those that are decorated.
"""

from __future__ import annotations

import ast
import os
import shutil
from pathlib import Path

from ..checkout import ROOT

RUNNER = "v1/worker/gpu_model_runner.py"
SAMPLER = "v1/sample/rejection_sampler.py"
# File below `vllm`, qualified name, hook.
ANCHORS = (
    ("config/vllm.py", "VllmConfig.num_speculative_tokens", "config.num_speculative_tokens"),
    (
        "model_executor/layers/attention/attention.py",
        "unified_attention_with_output",
        "attention.forward",
    ),
    (RUNNER, "GPUModelRunner.__init__", "v1.init"),
    (RUNNER, "GPUModelRunner.initialize_kv_cache", "v1.initialize_kv_cache"),
    (RUNNER, "GPUModelRunner._prepare_inputs", "v1.prepare_inputs"),
    (RUNNER, "GPUModelRunner._sample", "v1.sample"),
    (RUNNER, "GPUModelRunner.propose_draft_token_ids", "v1.propose"),
    (SAMPLER, "rejection_sample", "v1.rejection_sample"),
    (SAMPLER, "expand_batch_to_tokens", "v1.expand_batch_to_tokens"),
    (
        "v1/spec_decode/llm_base_proposer.py",
        "SpecDecodeBaseProposer._greedy_sample",
        "v1.draft_logits",
    ),
)
IMPORT = """\
try:
    from ddtree_runtime.hooks import hook as _ddtree_hook
except ImportError:
    def _ddtree_hook(name):
        return lambda function: function
"""


def patched_site(packages: Path, folder: Path) -> Path:
    """A folder with the decorated `vllm` and the runtime, to be put before `packages`."""
    _link_tree(packages / "vllm", folder / "vllm")
    (folder / "ddtree_runtime").symlink_to(ROOT / "patches" / "runtime")
    for file in sorted({file for file, _, _ in ANCHORS}):
        hooks = {name: hook for anchored, name, hook in ANCHORS if anchored == file}
        path = folder / "vllm" / file
        text = path.read_text()
        path.unlink()
        path.write_text(decorated(text, hooks))
    return folder


def decorated(text: str, hooks: dict[str, str]) -> str:
    """The module with one guarded import, and the innermost decorator on each named function.

    Raises:
        LookupError: a function is not there exactly once.
    """
    tree = ast.parse(text)
    found = [
        (node.lineno - 1, " " * node.col_offset + f'@_ddtree_hook("{hooks[name]}")\n')
        for name, node in _functions(tree)
        if name in hooks
    ]
    if len(found) != len(hooks):
        raise LookupError(f"expected {sorted(hooks)} once each, found {len(found)} functions")
    lines = text.splitlines(keepends=True)
    for line, addition in [*sorted(found, reverse=True), (_first_import(tree), IMPORT)]:
        lines.insert(line, addition)
    return "".join(lines)


def _functions(tree: ast.Module) -> list[tuple[str, ast.FunctionDef]]:
    found = [(node.name, node) for node in tree.body if isinstance(node, ast.FunctionDef)]
    for outer in tree.body:
        if isinstance(outer, ast.ClassDef):
            inner = [node for node in outer.body if isinstance(node, ast.FunctionDef)]
            found += [(f"{outer.name}.{node.name}", node) for node in inner]
    return found


def _first_import(tree: ast.Module) -> int:
    for node in tree.body:
        docstring = isinstance(node, ast.Expr)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not docstring and not future:
            return node.lineno - 1
    raise LookupError("expected a statement, found none")


def _link_tree(source: Path, target: Path) -> None:
    for folder, _, files in os.walk(source):
        place = target / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for file in files:
            _link(Path(folder) / file, place / file)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        # The cache and the temporary folders are on different disks.
        shutil.copy2(source, target)
