"""A device that is not the host: tensors that claim to be elsewhere, and refuse to be waited for.

Their memory is the host's, so that every operator can run, but reading a value, asking for a shape
that values decide, or copying to or from the host without `non_blocking` raises.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from ..kernels.no_sync import FORBIDDEN, HostSyncError

# A kind of device that every torch knows, and that needs no driver.
DEVICE = torch.device("meta")


class Far(torch.Tensor):
    """A tensor of the device; `near` holds its values."""

    near: torch.Tensor

    @staticmethod
    def __new__(cls, near: torch.Tensor) -> Far:
        """Wrap a tensor of the host."""
        made: Far = torch.Tensor._make_wrapper_subclass(
            cls,
            near.shape,
            strides=near.stride(),
            storage_offset=near.storage_offset(),
            dtype=near.dtype,
            device=DEVICE,
        )
        made.near = near
        return made

    def __repr__(self, **named: Any) -> str:  # type: ignore[override]  # torch types it anew
        """Without values, which would have to be waited for."""
        return f"Far({list(self.shape)}, {self.dtype})"

    def tolist(self) -> Any:
        """Refuse: torch reads the memory here without any operator."""
        raise HostSyncError("tolist reads device values on the host")

    def data_ptr(self) -> int:
        """The address of the values."""
        return self.near.data_ptr()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch's type is that of an instance
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Operators run only inside `device()`."""
        raise HostSyncError(f"{func} outside of the device")


class _Device(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        given = [*_tensors(args), *_tensors(kwargs)]
        far = [one for one in given if isinstance(one, Far)]
        made_there = kwargs.get("device") is not None and _is_far(kwargs["device"])
        if not far and not made_there:
            return func(*args, **kwargs)
        _refuse_waiting(func, args, kwargs, given)
        if kwargs.get("device") is not None:
            kwargs["device"] = "cpu"
        result = func(*tree_map(_near, args), **tree_map(_near, kwargs))
        # An operator that writes gives back the tensor that it was given.
        known = {id(one.near): one for one in far}
        return tree_map(functools.partial(_far, known), result)


def _far(known: dict[int, Far], value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return known[id(value)] if id(value) in known else Far(value)


class _Making(TorchFunctionMode):
    """`torch.tensor(values, device=...)` copies from memory that the device cannot read itself."""

    def __init__(self, once: bool) -> None:
        super().__init__()
        self.once = once

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is not torch.tensor or not _is_far(kwargs.get("device") or "cpu"):
            return func(*args, **kwargs)
        if not self.once:
            raise HostSyncError("torch.tensor copies to the device, and the host waits for it")
        return Far(func(*args, **{**kwargs, "device": "cpu"}))


@contextmanager
def device(*, once: bool = False) -> Iterator[None]:
    """Operators on far tensors run; whatever would make the host wait raises `HostSyncError`.

    Args:
        once: tables that are made once for an engine may be copied here.
    """
    with _Device(), _Making(once):  # type: ignore[no-untyped-call]  # as above
        yield


def _refuse_waiting(func: Any, args: Any, kwargs: Any, given: list[torch.Tensor]) -> None:
    name, overload = func._schema.name, func._schema.overload_name
    if name in FORBIDDEN or f"{name}.{overload}" in FORBIDDEN:
        raise HostSyncError(f"{name} reads device values on the host")
    if name in {"aten::index", "aten::index_put", "aten::index_put_"}:
        masks = [one for one in args[1] if one is not None and one.dtype == torch.bool]
        if masks:
            raise HostSyncError(f"{name} with a boolean mask hides a nonzero")
    if name == "aten::copy_" and isinstance(args[0], Far) != isinstance(args[1], Far):
        raise HostSyncError("copy_ between host and device")
    if name == "aten::_to_copy" and kwargs.get("device") is not None:
        if not _is_far(kwargs["device"]):
            raise HostSyncError("a copy to the host")
        if not isinstance(args[0], Far) and not kwargs.get("non_blocking"):
            raise HostSyncError("a copy to the device that the host waits for")
    # A number may take part wherever it is; anything larger would have to be copied.
    near = [one for one in given if not isinstance(one, Far) and one.dim()]
    if near and name != "aten::_to_copy":
        raise HostSyncError(f"{name} mixes host and device")


def _tensors(values: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    tree_map(lambda one: found.append(one) if isinstance(one, torch.Tensor) else None, values)
    return found


def _near(value: Any) -> Any:
    return value.near if isinstance(value, Far) else value


def _is_far(where: Any) -> bool:
    return bool(torch.device(where).type == DEVICE.type)
