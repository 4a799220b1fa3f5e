"""What a compiled kernel takes from a GPU, read from what the assemblers themselves report."""

from __future__ import annotations

import re
from dataclasses import dataclass

KIB = 1024


@dataclass(frozen=True, slots=True)
class Target:
    """One GPU architecture.

    Attributes:
        name: as the vendor writes it.
        backend: Triton's backend.
        arch: the architecture as that backend takes it.
        warp_size: threads per warp (wavefront).
        shared_limit: most bytes of shared memory (LDS) that one block may ask for.
    """

    name: str
    backend: str
    arch: int | str
    warp_size: int
    shared_limit: int


# Source of the limits: CUDA C++ programming guide, "Technical specifications per compute
# capability" (shared memory per block); AMD CDNA 3 instruction set, "LDS".
TARGETS = {
    target.name: target
    for target in (
        Target("sm_80", "cuda", 80, 32, 163 * KIB),
        Target("sm_86", "cuda", 86, 32, 99 * KIB),
        Target("sm_90", "cuda", 90, 32, 227 * KIB),
        Target("sm_100", "cuda", 100, 32, 227 * KIB),
        Target("sm_120", "cuda", 120, 32, 99 * KIB),
        Target("gfx942", "hip", "gfx942", 64, 64 * KIB),
    )
}


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources of one kernel.

    Attributes:
        registers: vector registers per thread.
        spill_bytes: bytes per thread that go through memory because registers ran out.
    """

    registers: int
    spill_bytes: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """A variant that compiles; `shared` is in bytes per block."""

    unit: str
    kernel: str
    label: str
    num_warps: int
    target: str
    registers: int
    shared: int
    spill_bytes: int

    def problem(self) -> str | None:
        """What would hurt or stop a launch, or None."""
        limit = TARGETS[self.target].shared_limit
        if self.shared > limit:
            return f"{self.shared} bytes of shared memory, {limit} at most"
        if self.spill_bytes:
            return f"{self.spill_bytes} bytes per thread spilled"
        return None


@dataclass(frozen=True, slots=True)
class Failed:
    """A variant, or with `kernel` `*` a whole unit, that does not compile."""

    unit: str
    kernel: str
    label: str
    num_warps: int
    target: str
    reason: str

    def problem(self) -> str:
        """Why it does not compile."""
        return self.reason


Outcome = Compiled | Failed


def read_ptxas(log: str) -> Usage:
    """Usage from the log of `ptxas -v`; several functions of one module are added up.

    Spills are counted from "spill stores" and "spill loads" and not from the stack frame: on
    sm_100 a kernel has a stack frame of a few bytes without spilling anything.

    Raises:
        ValueError: if the log holds no figures.
    """
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", log)]
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    if not registers or not spills:
        raise ValueError(f"ptxas -v: expected registers and spills, found {log!r}")
    return Usage(max(registers), sum(max(int(stores), int(loads)) for stores, loads in spills))


def read_amdgcn(assembly: str) -> Usage:
    """Usage from the metadata section of an AMD code object's assembly.

    Spilled scalar registers count as much as vector ones.

    Raises:
        ValueError: if a field is missing.
    """

    def field(name: str) -> int:
        found = re.search(rf"^\s*(?:- )?\.{name}:\s+(\d+)\s*$", assembly, re.MULTILINE)
        if found is None:
            raise ValueError(f"amdgcn metadata: expected .{name}, found none")
        return int(found.group(1))

    spilled = field("vgpr_spill_count") + field("sgpr_spill_count")
    return Usage(field("vgpr_count"), 4 * spilled)
