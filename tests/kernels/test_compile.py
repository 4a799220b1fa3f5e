"""Every kernel compiles for every target without spilling, and the report can say otherwise.

Triton compiles nothing under its interpreter, which the kernel tests' own process runs under, so
each test runs the command in a process of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ddtree.kernels.usage import TARGETS, Compiled, Usage, read_amdgcn, read_ptxas

ROOT = Path(__file__).parents[2]
UNITS = sorted(kernel.parent.name for kernel in (ROOT / "kernels/tree").glob("*/kernel.py"))
NAMES = ("sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "gfx942")


def compile_report(
    *words: str, path: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command; `path` is where a package of probe units lies."""
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    search = [str(ROOT / ".src"), *([str(path)] if path else [])]
    return subprocess.run(
        [sys.executable, "-m", "ddtree.kernels.compile", *words],
        env=env | {"PYTHONPATH": os.pathsep.join(search)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("unit", UNITS)
def test_unit_compiles_for_every_target(unit: str) -> None:
    done = compile_report("--unit", unit, "--format", "json")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    kernels = report["kernels"]
    assert [kernel for kernel in kernels if kernel["problem"] is not None] == []
    assert {kernel["target"] for kernel in kernels} == set(NAMES)
    for kernel in kernels:
        assert kernel["unit"] == unit
        assert kernel["spill_bytes"] == 0
        assert 0 <= kernel["shared"] <= report["shared_limits"][kernel["target"]]
        assert kernel["registers"] > 0
    variants = {(kernel["kernel"], kernel["label"], kernel["num_warps"]) for kernel in kernels}
    assert len(kernels) == len(variants) * len(NAMES)
    assert done.returncode == 0


def test_targets_are_those_that_were_asked_for() -> None:
    assert tuple(TARGETS) == NAMES
    limits = {name: target.shared_limit // 1024 for name, target in TARGETS.items()}
    assert limits == dict(zip(NAMES, (163, 99, 227, 227, 99, 64), strict=True))


PROBE = '''"""A kernel that goes wrong in a way that depends on its constants."""

import triton
import triton.language as tl


@triton.jit
def probe_kernel(x_ptr, y_ptr, rows, SIZE: tl.constexpr, WORD: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    total = tl.load(x_ptr + offsets)
    held = tl.load(y_ptr + offsets)
    for row in range(rows):
        new = tl.load(x_ptr + row * SIZE + offsets)
        total += new * held
        held = tl.where(new > 0, held, total)
    tl.static_assert(WORD != "broken", "refused on purpose")
    tl.store(x_ptr + offsets, total)
    tl.store(y_ptr + offsets, held)
'''
VARIANTS = '''"""What the probe is compiled as."""

from ddtree.kernels.compile import Variant

from .kernel import probe_kernel

TYPES = {{"x_ptr": "*fp32", "y_ptr": "*fp32", "rows": "i32"}}
VARIANTS = ({variants},)
'''


def probe(folder: Path, unit: str, variants: str) -> None:
    """Write a unit into the package `probe_units` below `folder`."""
    home = folder / "probe_units" / unit
    home.mkdir(parents=True)
    (home.parent / "__init__.py").touch()
    (home / "__init__.py").touch()
    (home / "kernel.py").write_text(PROBE)
    (home / "variants.py").write_text(VARIANTS.format(variants=variants))


def variant(size: int, word: str, warps: int, types: str = "TYPES") -> str:
    """Source of one variant of the probe; it is labelled with its word."""
    constants = {"SIZE": size, "WORD": word}
    return f"Variant(probe_kernel, {types}, {constants}, {warps}, {word!r})"


def report_on(folder: Path, *targets: str) -> tuple[int, dict[tuple[str, str], Any]]:
    """Exit status, and the entries by label and target."""
    words = [word for name in targets for word in ("--target", name)]
    done = compile_report("--package", "probe_units", "--format", "json", *words, path=folder)
    kernels = json.loads(done.stdout)["kernels"]
    return done.returncode, {(kernel["label"], kernel["target"]): kernel for kernel in kernels}


def test_spills_are_reported(tmp_path: Path) -> None:
    # 2 x 128 values per thread do not fit into 255 registers.
    probe(tmp_path, "nvidia", variant(4096, "spills", 1))
    probe(tmp_path, "small", variant(128, "fits", 1))
    status, found = report_on(tmp_path, "sm_90")
    assert status == 1
    assert found["spills", "sm_90"]["spill_bytes"] > 0
    assert "bytes per thread spilled" in found["spills", "sm_90"]["problem"]
    assert found["fits", "sm_90"]["spill_bytes"] == 0
    assert found["fits", "sm_90"]["problem"] is None


def test_spills_are_reported_on_amd(tmp_path: Path) -> None:
    # 2 x 256 values per thread do not fit into 512 registers.
    probe(tmp_path, "amd", f"{variant(16384, 'spills', 1)}, {variant(128, 'fits', 1)}")
    status, found = report_on(tmp_path, "gfx942")
    assert status == 1
    assert found["spills", "gfx942"]["spill_bytes"] > 0
    assert found["fits", "gfx942"]["problem"] is None


@pytest.mark.parametrize("target", NAMES)
def test_shared_memory_beyond_the_limit_is_a_problem(target: str) -> None:
    limit = TARGETS[target].shared_limit
    at_most, beyond = (
        Compiled("unit", "kernel", "label", 4, target, 255, shared, 0)
        for shared in (limit, limit + 1)
    )
    assert at_most.problem() is None
    assert beyond.problem() == f"{limit + 1} bytes of shared memory, {limit} at most"


def test_a_kernel_that_does_not_compile_is_reported_beside_those_that_do(tmp_path: Path) -> None:
    fine = variant(128, "fine", 1)
    missing = variant(128, "missing", 1, types='{"x_ptr": "*fp32", "y_ptr": "*fp32"}')
    probe(tmp_path, "mixed", f"{variant(128, 'broken', 1)}, {missing}, {fine}")
    status, found = report_on(tmp_path, "sm_80", "gfx942")
    assert status == 1
    for target in ("sm_80", "gfx942"):
        assert "refused on purpose" in found["broken", target]["reason"]
        assert "mismatch in ['rows']" in found["missing", target]["reason"]
        assert found["fine", target]["problem"] is None


def test_text_report_fits_a_terminal(tmp_path: Path) -> None:
    probe(tmp_path, "mixed", f"{variant(128, 'broken', 1)}, {variant(128, 'fine', 1)}")
    done = compile_report("--package", "probe_units", path=tmp_path)
    assert done.returncode == 1
    assert "mixed: probe_kernel  fine  warps=1" in done.stdout
    assert "12 compilations, 6 with problems" in done.stdout
    tables = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    assert len([line for line in tables if all(name in line for name in NAMES)]) == 2
    assert max(len(line) for line in tables) <= 80


def test_a_unit_that_cannot_be_imported_is_reported(tmp_path: Path) -> None:
    probe(tmp_path, "typo", "Variant(undefined)")
    status, found = report_on(tmp_path, "sm_80")
    assert status == 1
    assert found["", "sm_80"]["reason"] == "NameError: name 'undefined' is not defined"


def test_a_unit_that_lists_nothing_is_reported(tmp_path: Path) -> None:
    probe(tmp_path, "empty", variant(128, "fine", 1))
    (tmp_path / "probe_units/empty/variants.py").write_text("VARIANTS = ()\n")
    status, found = report_on(tmp_path, "gfx942")
    assert status == 1
    assert found["", "gfx942"]["problem"] == "VARIANTS is empty"


def test_a_unit_without_variants_is_an_error(tmp_path: Path) -> None:
    probe(tmp_path, "silent", variant(128, "fine", 1))
    (tmp_path / "probe_units/silent/variants.py").unlink()
    done = compile_report("--package", "probe_units", path=tmp_path)
    assert done.returncode == 2
    assert "expected variants.py beside kernel.py" in done.stderr


def test_an_unknown_unit_is_an_error() -> None:
    done = compile_report("--unit", "no-such-unit")
    assert done.returncode == 2
    assert "found ['no-such-unit']" in done.stderr


def test_the_interpreter_is_refused() -> None:
    done = compile_report("--unit", UNITS[0], TRITON_INTERPRET="1")
    assert done.returncode == 2
    assert "TRITON_INTERPRET is set" in done.stderr
    assert done.stdout == ""


PTXAS = """ptxas info    : Function properties for kernel
    {frame} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers
"""


@pytest.mark.parametrize(
    ("frame", "stores", "loads", "spilled"),
    [(0, 0, 0, 0), (8, 0, 0, 0), (64, 48, 60, 60), (64, 60, 48, 60)],
)
def test_ptxas_log(frame: int, stores: int, loads: int, spilled: int) -> None:
    log = PTXAS.format(frame=frame, stores=stores, loads=loads, registers=40)
    assert read_ptxas(log) == Usage(40, spilled)


def test_ptxas_log_of_two_functions() -> None:
    one, two = (PTXAS.format(frame=8, stores=4, loads=4, registers=n) for n in (32, 64))
    assert read_ptxas(one + two) == Usage(64, 8)


def test_ptxas_log_without_figures() -> None:
    with pytest.raises(ValueError, match="expected registers and spills"):
        read_ptxas("ptxas info : 0 bytes gmem")


AMDGCN = """
  - .agpr_count:     0
    .sgpr_count:     18
    .sgpr_spill_count: {sgpr}
    .vgpr_count:     82
    .vgpr_spill_count: {vgpr}
"""


@pytest.mark.parametrize(("sgpr", "vgpr", "spilled"), [(0, 0, 0), (3, 0, 12), (0, 5, 20)])
def test_amdgcn_metadata(sgpr: int, vgpr: int, spilled: int) -> None:
    assert read_amdgcn(AMDGCN.format(sgpr=sgpr, vgpr=vgpr)) == Usage(82, spilled)


def test_amdgcn_metadata_without_a_field() -> None:
    with pytest.raises(ValueError, match=r"expected \.vgpr_count"):
        read_amdgcn(AMDGCN.format(sgpr=0, vgpr=0).replace(".vgpr_count", ".other_count"))
