"""What only a GPU can tell: time between events, kernel launches, copy bandwidth."""

from __future__ import annotations

import statistics

import torch
from torch.profiler import ProfilerActivity, profile

from .timing import Form

COPY_BYTES = 1 << 30


def event_clock(form: Form, calls: int) -> float:
    """Seconds between two events on the current stream.

    Work that a form does on the host delays the second event, so it counts as well.
    """
    start, stop = _event(), _event()
    torch.cuda.synchronize()
    start.record()
    for _ in range(calls):
        form()
    stop.record()
    stop.synchronize()
    return float(start.elapsed_time(stop)) / 1000


def _event() -> torch.cuda.Event:
    # torch leaves the constructor untyped.
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def count_launches(form: Form) -> int:
    """Kernels that one call launches; copies and fills by the driver do not count."""
    form()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        form()
        torch.cuda.synchronize()
    return sum(
        event.device_type.name == "CUDA" and not event.name.startswith(("Memcpy", "Memset"))
        for event in profiler.events() or ()
    )


def copy_bandwidth() -> float:
    """Bytes per second, read plus written, of a device-to-device copy of 1 GiB (median of 20)."""
    source = torch.empty(COPY_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    target.copy_(source)
    seconds = [event_clock(lambda: target.copy_(source), 1) for _ in range(20)]
    return 2 * COPY_BYTES / statistics.median(seconds)
