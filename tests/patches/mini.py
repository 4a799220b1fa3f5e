"""A tiny vLLM with every seam of both recipes, a tiny runtime, and what a test asks of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import perform
from ddtree.patches.forms import forms_of
from ddtree.patches.perform import Options, Outcome
from ddtree.patches.place import Place
from ddtree.patches.plan import Plan
from ddtree.patches.recipe import all_recipes, choose
from ddtree.patches.status import Status
from ddtree.patches.way import Way
from tests.analyzers.targets import installs

RUNNER = "vllm/v1/worker/gpu_model_runner.py"
CONFIG = "vllm/config/vllm.py"
ARGUMENTS = "vllm/engine/arg_utils.py"
ATTENTION = "vllm/model_executor/layers/attention/attention.py"
SAMPLER = "vllm/v1/sample/rejection_sampler.py"
PROPOSER = "vllm/v1/spec_decode/llm_base_proposer.py"
V2_RUNNER = "vllm/v1/worker/gpu/model_runner.py"
V2_DRAFTS = "vllm/v1/worker/gpu/spec_decode"
V2_SAMPLER = f"{V2_DRAFTS}/rejection_sampler.py"
V2_SAMPLE = f"{V2_DRAFTS}/rejection_sampler_utils.py"
V2_SPECULATOR = f"{V2_DRAFTS}/speculator.py"
EDITED = (
    CONFIG,
    ARGUMENTS,
    ATTENTION,
    SAMPLER,
    PROPOSER,
    V2_RUNNER,
    V2_SAMPLER,
    V2_SAMPLE,
    V2_SPECULATOR,
    RUNNER,
)
VERSION = "0.32.0"

FILES = {
    "vllm/__init__.py": "",
    "vllm/config/__init__.py": "",
    "vllm/engine/__init__.py": "",
    "vllm/v1/__init__.py": "",
    "vllm/v1/worker/__init__.py": "",
    "vllm/v1/worker/gpu/__init__.py": "",
    f"{V2_DRAFTS}/__init__.py": "",
    "vllm/v1/sample/__init__.py": "",
    "vllm/v1/spec_decode/__init__.py": "",
    "vllm/model_executor/__init__.py": "",
    "vllm/model_executor/layers/__init__.py": "",
    "vllm/model_executor/layers/attention/__init__.py": "",
    "vllm/other.py": "VALUE = 1\n",
    RUNNER: '''# A header.
"""The runner."""

from __future__ import annotations

import os


class GPUModelRunner:
    def __init__(self, vllm_config, device=None):
        self.config = vllm_config

    def _prepare_inputs(self, scheduler_output, num_scheduled_tokens):
        return os.sep  # a comment

    def _sample(self, logits, spec_decode_metadata):
        return logits

    @staticmethod
    def helper():
        pass

    def initialize_kv_cache(self, kv_cache_config, is_profiling=False):
        return kv_cache_config

    def propose_draft_token_ids(self, scheduler_output, sampled_token_ids, *rest):
        return sampled_token_ids
''',
    SAMPLER: """import os


def rejection_sample(
    draft_token_ids, num_draft_tokens, max_spec_len, cu_num_draft_tokens, draft_probs,
    target_logits, bonus_token_ids, sampling_metadata,
):
    return draft_token_ids


def expand_batch_to_tokens(x, cu_num_tokens, num_tokens, replace_from=0, replace_to=0):
    return x
""",
    PROPOSER: """import os


class SpecDecodeBaseProposer:
    def _greedy_sample(self, hidden_states):
        return hidden_states
""",
    V2_RUNNER: """class GPUModelRunner:
    def __init__(self, vllm_config, device):
        self.device = device

    def initialize_kv_cache(self, kv_cache_config):
        return kv_cache_config

    def add_requests(self, scheduler_output):
        return scheduler_output

    def prepare_attn(self, input_batch):
        return input_batch
""",
    V2_SAMPLER: """class RejectionSampler:
    def __call__(self, logits, input_batch, draft_logits=None):
        return logits
""",
    V2_SAMPLE: """import os


def rejection_sample(
    target_logits, draft_logits, draft_sampled, cu_num_logits, pos, idx_mapping, seed=None
):
    return target_logits
""",
    V2_SPECULATOR: """class DraftModelSpeculator:
    def sample_draft(self, hidden_states, positions):
        return hidden_states
""",
    ARGUMENTS: """class EngineArgs:
    def create_engine_config(self, usage_context=None, headless=False):
        return self
""",
    CONFIG: '''import copy


class VllmConfig:
    speculative = copy.copy(3)

    @property
    def num_speculative_tokens(self) -> int:
        """How many."""
        return self.speculative
''',
    ATTENTION: """import functools


@functools.cache
def unified_attention_with_output(query, key, value, output, layer_name, scale=None):
    return output
""",
}

HOOKS = '''"""Hooks that do nothing but count."""

CALLS = []


def hook(name):
    def decorate(function):
        CALLS.append(name)
        return function

    return decorate
'''
# What a plug-in asks of the runtime besides.
RUNTIME = {
    "hooks.py": HOOKS,
    "__init__.py": "",
    "attention.py": "through_layers = False\n",
    "refusals.py": "ASSIGNED = set()\n",
}


@dataclass(frozen=True, slots=True)
class Mini:
    """An install in a temporary folder with its own state; `site` is what the command is given."""

    root: Path
    site: Path
    way: Way | None = None

    @property
    def state(self) -> Path:
        """The folder that `DDTREE_STATE` has to name."""
        return self.root / "state"

    @property
    def options(self) -> Options:
        """What every function of `perform` takes."""
        runtime, kernels = self.root / "runtime", self.root / "kernels"
        return Options(str(self.site), runtime=runtime, kernels=kernels, way=self.way)

    def plan(self, **changes: object) -> Plan:
        """The plan of the unpatched install."""
        outcome = perform.plan(self.with_(**changes))
        assert isinstance(outcome, perform.Planned)
        return outcome.plan

    def apply(self, **changes: object) -> Outcome:
        """Patch it."""
        return perform.apply(self.with_(**changes))

    def revert(self, **changes: object) -> Outcome:
        """Give the bytes back."""
        return perform.revert(self.with_(**changes))

    def status(self) -> Status:
        """What a status command finds, after any recovery."""
        outcome = perform.status(self.options)
        assert isinstance(outcome, Status)
        return outcome

    def with_(self, **changes: object) -> Options:
        """The options, some of them others."""
        return replace(self.options, **changes)  # type: ignore[arg-type]  # any field

    def edit(self, file: str, change: Callable[[str], str]) -> None:
        """Change a file as an operator would, by writing another one in its place."""
        path = self.site / file
        text = change(path.read_text())
        path.unlink()
        path.write_text(text)


def make(root: Path, version: str = VERSION, site: Path | None = None) -> Mini:
    """An installed tiny vLLM below `root`; the site is one of no environment unless given."""
    place = site or root / "site-packages"
    installs.installed(place, "vllm", version, FILES)
    beside(root)
    return Mini(root, place)


def beside(root: Path) -> tuple[Path, Path]:
    """A tiny runtime and tiny kernels below `root`."""
    runtime = installs.write(root / "runtime", RUNTIME)
    kernels = {"__init__.py": "", "tree/__init__.py": "SIZE = 1\n", "other.py": ""}
    return runtime, installs.write(root / "kernels", kernels)


# Kind and mode, owner and group, content or where a link leads, extended attributes.
Facts = tuple[int, tuple[int, int], bytes | str, dict[str, bytes]]


def snapshot(root: Path) -> dict[str, Facts]:
    """What there is to know of every path; bytecode is left out."""
    found: dict[str, Facts] = {}
    for path in sorted(root.rglob("*")):
        if "__pycache__" in path.parts:
            continue
        stated = path.lstat()
        mode, owner = stated.st_mode, (stated.st_uid, stated.st_gid)
        content: bytes | str = b""
        if stat.S_ISLNK(mode):
            content = str(path.readlink())
        elif stat.S_ISREG(mode):
            content = path.read_bytes()
        names = os.listxattr(path, follow_symlinks=False)
        xattrs = {name: os.getxattr(path, name, follow_symlinks=False) for name in names}
        found[path.relative_to(root).as_posix()] = (mode, owner, content, xattrs)
    return found


def looked(notes: tuple[str, ...]) -> tuple[str, ...]:
    """The notes of an apply, but for those about processes that this user may not look at."""
    return tuple(note for note in notes if not note.endswith("could not be looked at."))


def place_of(install: Mini, prefix: Path | None = None) -> Place:
    """The place of an install, without an interpreter."""
    return Place(install.site, install.site, install.site / "vllm", prefix, None)


def applied(install: Mini) -> Mini:
    """The install, after it was patched."""
    assert isinstance(install.apply(), perform.Applied)
    return install


def forms() -> dict[str, frozenset[str]]:
    """The forms of the functions that get hooked, as if the tiny vLLM were a release."""
    recipe, _ = choose(VERSION, all_recipes())
    return {
        anchor.hook: frozenset(forms_of(FILES[anchor.file].encode(), anchor.name))
        for anchor in recipe.anchors
    }


def refused(install: Mini, match: str, **changes: object) -> None:
    """Check that it is refused with such a message, and that nothing was written."""
    before = installs.snapshot(install.site)
    with pytest.raises(ConflictError, match=match):
        install.apply(**changes)
    assert installs.snapshot(install.site) == before
    assert not list(install.state.rglob("*.json"))
