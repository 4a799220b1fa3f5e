"""Engines whose verifier is one of the positives, changed in one thing, with what is then true."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ddtree.analyzers.result import StageVerdict

from . import inputs, mini, overlay, plugins

ACCEPT = "vllm/v1/sample/accept.py"
_WALK = "vllm/v1/sample/walk.py"
_CHAIN = inputs.LINEAR["product_along_positions"]
_SAMPLER = "vllm/v1/sample/rejection_sampler.py"

Files = Mapping[str, str]


def _plain(module: str) -> Files:
    return mini.files(module)


def _gone(module: str) -> Files:
    """The verifier is imported from a package that is not there."""
    return mini.files(module) | {ACCEPT: "from gone.accept import verify\n"}


def _handed_to_gone(module: str) -> Files:
    """The verifier hands what it gets to a package that is not there."""
    names = ", ".join(overlay.parameters(module))
    return mini.files(module) | {
        ACCEPT: f"import gone\n\n\ndef verify({names}):\n    return gone.decide({names})\n"
    }


def _beside_chain(files: Files, module: str) -> Files:
    """A chain decides where no topology was put up."""
    walk = overlay.call_of(module).replace(f"{overlay.ENTRY}(", "walk(", 1)
    sampler = files[_SAMPLER].replace(
        "        return ",
        f"        if current() is not None:\n            return {walk}\n        return ",
    )
    decided = sampler.rpartition("        return ")[0] + "        return verify(tokens, target)\n"
    moved = "from vllm.v1.sample.walk import verify as walk\n"
    return dict(files) | {
        ACCEPT: _CHAIN,
        _WALK: files[ACCEPT],
        _SAMPLER: decided.replace(
            "from vllm.v1.sample.topology", moved + "from vllm.v1.sample.topology"
        ),
    }


def _dead(module: str) -> Files:
    """The walk is imported, and nothing calls it."""
    files = dict(_beside_chain(mini.files(module), module))
    walk = overlay.call_of(module).replace(f"{overlay.ENTRY}(", "walk(", 1)
    branch = f"        if current() is not None:\n            return {walk}\n"
    if branch not in files[_SAMPLER]:
        raise ValueError("the branch into the walk is not where it was put")
    return files | {_SAMPLER: files[_SAMPLER].replace(branch, "")}


def _plugin(module: str, *, replaces: bool, there: bool) -> Files:
    """A plug-in that brings the walk for a stock chain."""
    call = overlay.call_of(module).replace(f"{overlay.ENTRY}(", "accept(", 1)
    put = "    RejectionSampler.forward = forward\n" if replaces else "    return forward\n"
    register = (
        "def register():\n"
        "    from vllm.v1.sample.rejection_sampler import RejectionSampler\n"
        "    from vllm.v1.sample.topology import current\n"
        "    from walker.accept import verify as accept\n\n"
        "    def forward(self, metadata, logits):\n"
        "        tokens = metadata.draft_token_ids\n"
        "        target = logits.argmax(dim=-1)\n"
        f"        return {call}\n\n{put}"
    )
    walk = module if there else _handed_to_gone(module)[ACCEPT]
    brought = plugins.plugin("vllm.general_plugins", {"walker/__init__.py": register}, walk)
    return mini.files(_CHAIN) | brought


TREE, LINEAR, UNKNOWN = StageVerdict.TREE, StageVerdict.LINEAR, StageVerdict.UNKNOWN
# What is done to an engine that walks, and what its verification then is.
MUTATIONS: dict[str, tuple[Callable[[str], Files], StageVerdict]] = {
    "as it is": (_plain, TREE),
    "verifier in a package that is gone": (_gone, UNKNOWN),
    "verifier that hands on to one": (_handed_to_gone, UNKNOWN),
    "a chain beside the walk": (lambda m: _beside_chain(mini.files(m), m), TREE),
    "a chain beside what is gone": (lambda m: _beside_chain(_handed_to_gone(m), m), UNKNOWN),
    "the branch into the walk removed": (_dead, LINEAR),
    "in a plug-in": (lambda m: _plugin(m, replaces=True, there=True), TREE),
    "in a plug-in, the walk gone": (lambda m: _plugin(m, replaces=True, there=False), UNKNOWN),
    "in a plug-in that replaces nothing": (
        lambda m: _plugin(m, replaces=False, there=True),
        LINEAR,
    ),
}


def every() -> Iterator[tuple[str, str]]:
    """The names of all inputs with those of what is done to them."""
    for name in inputs.POSITIVES:
        for mutation in MUTATIONS:
            yield name, mutation
