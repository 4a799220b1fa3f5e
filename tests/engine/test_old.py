"""What releases before 0.24.0 need of the runtime, where no engine is needed.

The cache operator is a stand-in that packs keys; see `stand_ins`.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ddtree.patches.runtime import update
from ddtree.patches.runtime.cache import Caches, Packed, look_at
from ddtree.patches.runtime.config import Settings
from ddtree.patches.runtime.refusals import Refused, check_config, check_layer
from ddtree.patches.runtime.v1 import width

from .test_settings import config, layer

HEADS, BLOCK, DIM = 2, 32, 8


def operators() -> Any:
    """The stand-ins, which are no package's."""
    path = Path(__file__).with_name("stand_ins") / "ddtree_operators.py"
    spec = importlib.util.spec_from_file_location("ddtree_operators", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# What the runtime looks for in the module of a CPU layer's attention.
ops = SimpleNamespace(cpu_attn_reshape_and_cache=operators().reshape_and_cache)


def _get_attn_isa(dtype: torch.dtype, block: int, dim: int) -> str:
    assert (dtype, block, dim) == (torch.float32, BLOCK, DIM)
    return "vec"


class Attention:
    """An attention that writes its cache while it attends."""


def cpu_layer(shape: tuple[int, ...]) -> Any:
    """A layer whose cache holds noise."""
    backend = SimpleNamespace(get_name=lambda: "CPU_ATTN")
    return SimpleNamespace(impl=Attention(), attn_backend=backend, kv_cache=torch.randn(shape))


SHAPES = [(2, 6, HEADS, BLOCK, DIM), (6, HEADS, BLOCK, 2 * DIM)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_places_of_an_older_cache_are_learned(shape: tuple[int, ...]) -> None:
    """Rows that the layer's operator wrote are found again, in both layouts."""
    one = cpu_layer(shape)
    assert update.is_known(one)
    assert not update.is_apart(one)
    cache = look_at(one)
    assert isinstance(cache, Packed)
    key, value = torch.randn(40, HEADS, DIM), torch.randn(40, HEADS, DIM)
    slots = torch.arange(3 * BLOCK, 3 * BLOCK + 40)
    update.write(one, key, value, one.kv_cache, slots)
    table = torch.tensor([[3, 4]], dtype=torch.int32)
    keys, values, dense = cache.of_blocks(table, [40])
    assert torch.equal(keys[dense[0].long()].flatten(0, 1)[:40], key)
    assert torch.equal(values[dense[0].long()].flatten(0, 1)[:40], value)


@pytest.mark.parametrize("shape", SHAPES)
def test_accepted_rows_move_in_an_older_cache(shape: tuple[int, ...]) -> None:
    """The path 0, 2, 3 of four rows lies in the first three slots afterwards."""
    one = cpu_layer(shape)
    key, value = torch.randn(4, HEADS, DIM), torch.randn(4, HEADS, DIM)
    slots = torch.tensor([30, 31, 64, 65])
    update.write(one, key, value, one.kv_cache, slots)
    perm = torch.tensor([[0, 2, 3, 1]], dtype=torch.int32)
    accepted, start = torch.tensor([2], dtype=torch.int32), torch.tensor([0], dtype=torch.int32)
    caches = Caches()
    caches.commit({"layer": one}, slots, perm, accepted, start, 3)
    cache = caches.of("layer", one)
    keys, values, dense = cache.of_blocks(torch.tensor([[0, 2]], dtype=torch.int32), [2 * BLOCK])
    rows, blocks = [30, 31, 32], dense[0].long()
    assert torch.equal(keys[blocks].flatten(0, 1)[rows], key[[0, 2, 3]])
    assert torch.equal(values[blocks].flatten(0, 1)[rows], value[[0, 2, 3]])


@dataclass(frozen=True)
class Later:
    """A step of a release that says how many tokens are drafted."""

    num_spec_tokens_to_schedule: int = 16


@pytest.mark.parametrize(("ahead", "expected"), [(0, 0), (7, 16), (8, 17)])
def test_the_scheduler_reserves_the_budget(ahead: int, expected: int) -> None:
    """Slots ahead only where the drafter writes some; nothing where trees are not configured."""

    def init(scheduler: Any, vllm_config: Any, *, log_stats: bool) -> None:
        assert log_stats
        scheduler.vllm_config = vllm_config
        scheduler.num_spec_tokens, scheduler.num_lookahead_tokens = 7, ahead

    made = SimpleNamespace()
    width.scheduler_init(init, made, config(), log_stats=True)
    assert (made.num_spec_tokens, made.num_lookahead_tokens) == (16, expected)
    width.scheduler_init(init, made, config(additional_config={}), log_stats=True)
    assert (made.num_spec_tokens, made.num_lookahead_tokens) == (7, ahead)
    with pytest.raises(Refused, match="only the V1 model runner is hooked"):
        width.scheduler_init(init, made, config(use_v2_model_runner=True), log_stats=True)


def test_a_step_that_has_no_width_is_left_alone() -> None:
    """The drafter's depth is told only where it is asked for."""
    assert width.for_drafter(Later(), 7) == Later(7)
    before = SimpleNamespace()
    assert width.for_drafter(before, 7) is before


def test_drafts_of_another_width_go_as_lists() -> None:
    """The runner's buffer is as wide as the budget; a tree's tensor fits and is handed on."""
    chain, tree = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 2, 3]])
    for step in (SimpleNamespace(), Later()):
        assert width.for_scheduler(step, chain, 3) == [[1, 2], [3, 4]]
        assert width.for_scheduler(step, tree, 3) is tree
        assert width.for_scheduler(step, [[1]], 3) == [[1]]
    far = chain.to("meta")
    assert width.for_scheduler(Later(), far, 3) is far


def test_vllms_own_tree_is_refused() -> None:
    """Its static tree and the backend that masks it stay as they are, but not beside trees."""
    chain, tree = "[(0,), (0, 0), (0, 0, 0)]", "[(0,), (1,), (0, 0)]"
    check_config(Settings(16), config(speculative_config__speculative_token_tree=chain))
    with pytest.raises(Refused, match='remove "speculative_token_tree"'):
        check_config(Settings(16), config(speculative_config__speculative_token_tree=tree))
    static = SimpleNamespace(get_name=lambda: "TREE_ATTN")
    with pytest.raises(Refused, match="--attention-backend TRITON_ATTN"):
        check_layer("layers.0", layer(attn_backend=static))


@pytest.mark.parametrize("v2", [True, False])
def test_the_runner_that_the_environment_asks_for(
    v2: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before 0.22.0 the configuration does not say which runner is taken."""
    envs = SimpleNamespace(VLLM_USE_V2_MODEL_RUNNER=v2)
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(envs=envs))
    asked = config()
    del asked.use_v2_model_runner
    if not v2:
        check_config(Settings(16), asked)
        return
    with pytest.raises(Refused, match="VLLM_USE_V2_MODEL_RUNNER=0"):
        check_config(Settings(16), asked)
