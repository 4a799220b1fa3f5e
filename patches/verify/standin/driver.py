"""The stand-in's driver: active, and of a target that no compiler knows."""

from __future__ import annotations

from typing import Any

import torch
import triton
from triton.backends import driver
from triton.backends.compiler import GPUTarget


# triton is untyped.
class StandInDriver(driver.DriverBase):  # type: ignore[misc]
    """Answers what is asked before a kernel runs, and launches none."""

    @classmethod
    def is_active(cls) -> bool:
        """Whether this device is there: only for the interpreter."""
        return bool(triton.knobs.runtime.interpret)

    def map_python_to_cpp_type(self, name: str) -> str:
        """The C type of an argument; no launcher is ever built."""
        return name

    def get_current_target(self) -> GPUTarget:
        """The target that the stand-in's compiler accepts."""
        return GPUTarget("cpu", "x86", 1)

    def get_active_torch_device(self) -> torch.device:
        """Where tensors are."""
        return torch.device("cpu")

    def get_current_device(self) -> int:
        """The only device there is."""
        return 0

    def get_benchmarker(self) -> Any:
        """Nothing is timed, since nothing is compiled."""
        raise NotImplementedError("the stand-in runs no kernel that could be timed")
