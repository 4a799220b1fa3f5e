"""Bring numbers that the host knows to the device, without waiting for the device."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def to_device(
    values: Sequence[int] | Sequence[bool], device: torch.device, dtype: torch.dtype = torch.int64
) -> torch.Tensor:
    """The values as a tensor [len(values)] on the device.

    `torch.tensor(values, device=...)` copies from pageable memory, which makes the host wait for
    everything that a GPU has in its queue; a copy from pinned memory does not.
    """
    if device.type == "cpu":
        return torch.tensor(values, dtype=dtype)
    host = torch.tensor(values, dtype=dtype, pin_memory=device.type == "cuda")
    return host.to(device, non_blocking=True)
