"""Whether a release leaves the target of a DFlash drafter an attention backend for a GPU's trees.

A DFlash drafter attends without a causal mask. Releases whose selector asks for such a backend in
every layer, the target's too, while Triton's attention does not offer it, leave none in which a
tree's rows can be attended to.
"""

from __future__ import annotations

import ast
import importlib.util
import pathlib
from collections.abc import Iterator

SELECTOR = "vllm.v1.attention.selector"
TRITON = "vllm.v1.attention.backends.triton_attn"


def target_has_no_backend() -> bool:
    """What `leaves_no_backend` says of the vLLM that runs; its modules are not imported."""
    found = [_source(module) for module in (SELECTOR, TRITON)]
    return None not in found and leaves_no_backend(*(text for text in found if text is not None))


def leaves_no_backend(selector: bytes, triton: bytes) -> bool:
    """Whether every layer is asked for what Triton's attention does not have.

    Args:
        selector: source of the module that chooses the backend of a layer.
        triton: source of the module of Triton's backend.
    """
    is_asked_of_all = any(
        isinstance(node, ast.Constant) and node.value == "dflash" for node in _nodes(selector)
    )
    offers = any(
        isinstance(node, ast.FunctionDef) and node.name == "supports_non_causal"
        for node in _nodes(triton)
    )
    return is_asked_of_all and not offers


def _nodes(source: bytes) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(source))


def _source(module: str) -> bytes | None:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None:
        return None
    return pathlib.Path(spec.origin).read_bytes()
