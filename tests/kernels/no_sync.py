"""A dispatch mode that fails on any operator which makes the device wait for the host."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# The operators that read device values on the host, or whose output shape depends on them.
FORBIDDEN = frozenset(
    {
        "aten::_local_scalar_dense",
        "aten::item",
        "aten::nonzero",
        "aten::masked_select",
        "aten::unique_dim",
        "aten::_unique2",
        "aten::unique_consecutive",
        "aten::is_nonzero",
        "aten::equal",
        "aten::repeat_interleave.Tensor",
    }
)


class HostSyncError(AssertionError):
    """An operator of the hot path would have synchronised with the host."""


class _NoHostSync(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        overload = func._schema.overload_name
        if name in FORBIDDEN or f"{name}.{overload}" in FORBIDDEN:
            raise HostSyncError(f"{name} reads device values on the host")
        if _indexes_by_mask(name, args):
            raise HostSyncError(f"{name} with a boolean mask hides a nonzero")
        if name in {"aten::_to_copy", "aten::copy_"} and _leaves_the_device(name, args, kwargs):
            raise HostSyncError(f"{name} copies to the host")
        return func(*args, **(kwargs or {}))


def _indexes_by_mask(name: str, args: Any) -> bool:
    if name not in {"aten::index", "aten::index_put", "aten::index_put_"}:
        return False
    return any(i is not None and i.dtype in {torch.bool, torch.uint8} for i in args[1])


def _leaves_the_device(name: str, args: Any, kwargs: Any) -> bool:
    if name == "aten::copy_":
        return bool(args[0].device.type == "cpu" and args[1].device.type != "cpu")
    target = (kwargs or {}).get("device")
    return target is not None and torch.device(target).type == "cpu" != args[0].device.type


@contextmanager
def no_host_sync() -> Iterator[None]:
    """Fail with `HostSyncError` on a hidden host synchronisation inside the block.

    On a GPU the driver itself is asked to refuse as well.
    """
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_sync_debug_mode("error")
    try:
        with _NoHostSync():  # type: ignore[no-untyped-call]  # as above
            yield
    finally:
        if gpu:
            torch.cuda.set_sync_debug_mode("default")
