"""Argument checks shared by the public launchers; they raise `ValueError` and never synchronise."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def tensor(
    name: str,
    value: torch.Tensor,
    shape: Sequence[int | None],
    dtypes: Sequence[torch.dtype],
    device: torch.device | None = None,
    *,
    contiguous: bool = True,
) -> None:
    """Check one argument; `None` in `shape` admits any extent.

    Raises:
        ValueError: naming the argument, what was expected and what was found.
    """
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"{name}: expected a tensor, found {type(value).__name__}")
    fits = value.dim() == len(shape) and all(
        want is None or have == want for have, want in zip(value.shape, shape, strict=True)
    )
    if not fits:
        want = ", ".join("any" if extent is None else str(extent) for extent in shape)
        raise ValueError(f"{name}: expected shape [{want}], found {list(value.shape)}")
    if value.dtype not in dtypes:
        raise ValueError(f"{name}: expected dtype in {list(dtypes)}, found {value.dtype}")
    if device is not None and value.device != device:
        raise ValueError(f"{name}: expected device {device}, found {value.device}")
    if contiguous and not value.is_contiguous():
        raise ValueError(f"{name}: expected a contiguous tensor, found strides {value.stride()}")
