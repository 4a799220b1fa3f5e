"""The V1 model runner before 0.24.0: the seams of later releases, and the scheduler's width.

There the scheduler reads the drafter's depth where later ones read a width that is hooked, the CPU
backend writes its cache while it attends, and a step does not say how many tokens are drafted: the
runtime asks for each of these, not for the version. vLLM's own TREE_ATTN (until 0.20.2) is not
touched, and refused together with trees.
"""

from __future__ import annotations

from ..recipe import Anchor, Recipe
from .v1 import RECIPE as LATER

RECIPE = Recipe(
    name="v1_0_20",
    runner="v1-runner",
    lower="0.20.1",
    upper="0.24.0",
    anchors=(
        *LATER.anchors,
        Anchor(
            "vllm/v1/core/sched/scheduler.py",
            "Scheduler.__init__",
            "v1.scheduler_init",
            ("self", "vllm_config", "kv_cache_config"),
        ),
    ),
)
