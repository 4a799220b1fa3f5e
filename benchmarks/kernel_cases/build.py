"""The level-wise build against the heap on the host; on a GPU, the kernel as well."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import torch

from ddtree.kernels.tree.build import Form, build
from ddtree.kernels.tree.candidates import candidates

from ..timing import Case

REQUESTS = (1, 8, 64)
NODES = (16, 64, 256)
POSITIONS = (7, 15)
MOST_CANDIDATES = 64
VOCABULARY = 4096
# The spread of a drafter's logits decides the shape of the trees: 3 gives both deep and wide ones.
SPREAD = 3.0


def cases() -> Iterator[Case]:
    """Every combination on the CPU, then on a GPU."""
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    for device, *sizes in itertools.product(devices, REQUESTS, NODES, POSITIONS):
        yield case(device, *sizes)


def case(device: str, requests: int, nodes: int, positions: int) -> Case:
    """One batch of random drafts, ranked as `candidates` leaves them.

    `auto` is what a call without a form gets; the forms with "any order" rank and filter first.
    """
    k = min(nodes, MOST_CANDIDATES)
    random = torch.Generator().manual_seed(nodes)
    logits = SPREAD * torch.randn(requests, positions, VOCABULARY, generator=random)
    ids, logp = (tensor.to(device) for tensor in candidates(logits, k))

    def form(name: Form, *, ranked: bool = True) -> Callable[[], object]:
        return partial(build, ids, logp, nodes, ranked=ranked, form=name)

    own: Form = "auto" if device == "cpu" else "kernel"
    forms = {
        "reference": form("reference"),
        "vectorised": form("vectorised"),
        own: form(own),
        "reference, any order": form("reference", ranked=False),
        "vectorised, any order": form("vectorised", ranked=False),
    }
    return Case("build", f"{device} R={requests} N={nodes} D={positions} K={k}", forms)
