"""Bring numbers that the host knows to the device, without waiting for the device."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def to_device(
    values: Sequence[int] | Sequence[bool] | Sequence[list[int]],
    device: torch.device,
    dtype: torch.dtype = torch.int64,
) -> torch.Tensor:
    """The values as a tensor on the device; lists have to be of one length.

    `torch.tensor(values, device=...)` copies from pageable memory, which makes the host wait for
    everything that a GPU has in its queue; a copy from pinned memory does not.
    """
    if device.type == "cpu":
        return torch.tensor(values, dtype=dtype)
    host = torch.tensor(values, dtype=dtype, pin_memory=device.type == "cuda")
    return host.to(device, non_blocking=True)


class Arriving:
    """Numbers on their way from the device to the host, which does not wait for them."""

    def __init__(self, numbers: torch.Tensor) -> None:
        """Start the copy; what is written to `numbers` later is not in it."""
        self._done: torch.Event | None = None
        if numbers.device.type != "cuda":
            self._host = numbers.clone()
            return
        self._host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
        self._host.copy_(numbers, non_blocking=True)
        self._done = torch.Event(numbers.device)
        self._done.record()

    @property
    def there(self) -> bool:
        """Whether `values` can be read without waiting."""
        return self._done is None or bool(self._done.query())

    @property
    def values(self) -> list[int]:
        """The numbers, once they are there."""
        found: list[int] = self._host.tolist()
        return found
