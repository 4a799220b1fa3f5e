"""Real releases that call a `verify` of ours where they decide on acceptance."""

from __future__ import annotations

from pathlib import Path

from . import overlay

# Where each real release keeps the function that decides on acceptance, and what it calls things.
_V0 = "vllm/model_executor/layers/spec_decode_base_sampler.py"
_V1 = "vllm/v1/sample/rejection_sampler.py"
_V2 = "vllm/v1/worker/gpu/spec_decode/rejection_sampler_utils.py"
_TARGETS = {"target": "target_logits.argmax(dim=-1)", "probs": "target_logits.softmax(dim=-1)"}
_V1_NAMES = _TARGETS | {"tokens": "draft_token_ids"}
_V2_NAMES = _TARGETS | {"tokens": "draft_sampled"}
# Each runner's own step, what is at hand there, and how the walk's result reaches the sampler.
_RUNNERS = {
    "vllm/v1/worker/gpu_model_runner.py": (
        "GPUModelRunner._sample",
        {
            "tokens": "spec_decode_metadata.draft_token_ids",
            "target": "logits.argmax(dim=-1)",
        },
        "spec_decode_metadata.draft_token_ids = current().reorder(rows)",
    ),
    "vllm/v1/worker/gpu/model_runner.py": (
        "GPUModelRunner.sample",
        {
            "tokens": "input_batch.input_ids",
            "target": "self.model.compute_logits(hidden_states).argmax(dim=-1)",
        },
        "input_batch.input_ids = current().reorder(rows)",
    ),
}


def in_release(base: Path, root: Path, module: str, place: str, *, keep: bool = False) -> Path:
    """The release `base` whose every runner decides with the `verify` of `module`.

    Args:
        place: the new module's path, such as `vllm/v1/sample/accept.py`.
        keep: leave the stock code behind the call, as a fork with a fallback does.
    """
    calls = {_V1: _v1_call(module), _V2: _v2_call(module)}
    files = overlay.topology_file() | {place: module}
    for path, body in calls.items():
        if (base / path).is_file():
            hook = _imports(place) + (_guarded(body) if keep else body)
            source = (base / path).read_text()
            files[path] = overlay.with_body(source, "rejection_sample", hook, keep=keep)
    return overlay.overlay(base, root, files)


def verifiers() -> tuple[str, ...]:
    """The files in which the releases with two runners decide on acceptance."""
    return _V1, _V2


def in_runner(base: Path, root: Path, module: str, place: str) -> Path:
    """The release `base` whose runners walk first and hand the rest to the stock sampler."""
    files = overlay.topology_file() | {place: module}
    for path, (function, names, sort) in _RUNNERS.items():
        body = f"{_imports(place)}rows = {overlay.call_of(module, names)}\n{sort}\n"
        source = (base / path).read_text()
        files[path] = overlay.with_body(source, function, body, keep=True)
    return overlay.overlay(base, root, files)


def in_v0(base: Path, root: Path, module: str, place: str) -> Path:
    """The release `base` whose V0 engine decides with the `verify` of `module`."""
    names = {"tokens": "draft_token_ids", "target": "substitute_token_ids"}
    body = f"{_imports(place)}return {overlay.call_of(module, names)}\n"
    source = (base / _V0).read_text()
    hooked = overlay.with_body(source, "SpecDecodeBaseSampler._create_output", body)
    return overlay.overlay(base, root, overlay.topology_file() | {place: module, _V0: hooked})


def _v1_call(module: str) -> str:
    return f"return {overlay.call_of(module, _V1_NAMES)}\n"


def _v2_call(module: str) -> str:
    call = overlay.call_of(module, _V2_NAMES)
    return f"output = {call}\nreturn output, (output >= 0).sum(dim=-1)\n"


def _imports(place: str) -> str:
    dotted = place.removesuffix(".py").replace("/", ".")
    lines = ("from vllm.v1.sample.topology import current", f"from {dotted} import {overlay.ENTRY}")
    return "\n".join(lines) + "\n"


def _guarded(body: str) -> str:
    inner = "".join(f"    {line}\n" for line in body.splitlines())
    return f"if current() is not None:\n{inner}"
