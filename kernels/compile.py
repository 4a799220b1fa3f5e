"""Compile every kernel ahead of time, for every target, on a machine that has no GPU.

`python -m ddtree.kernels.compile` prints registers, shared memory and spills, and exits with 1
if a kernel does not compile, spills, or asks for more shared memory than its target has.
Every folder below `kernels/tree` that holds a `kernel.py` takes part: its `variants.py` holds
`VARIANTS`, a tuple of `Variant`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import io
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .usage import TARGETS, Compiled, Failed, Outcome, Target, read_amdgcn, read_ptxas
from .usage_table import arranged, as_json, as_text

# `__package__` also holds when this module runs as `__main__`.
TREE = f"{__package__}.tree"


@dataclass(frozen=True, slots=True)
class Variant:
    """One specialisation of a kernel, as a launch on a GPU would compile it.

    Pointers are compiled as aligned to 16 bytes, as those of freshly allocated tensors are.

    Attributes:
        kernel: the `triton.jit` function.
        signature: argument name to Triton type for every run-time argument, such as `"*i32"`,
            `"*bf16"`, `"i32"` or `"fp32"`.
        constexprs: argument name to value for every `tl.constexpr` argument, and for every
            argument whose value the launch specialises to a constant (`None`, 1).
        num_warps: warps per program.
        label: what tells the variant from its siblings, such as `"N=128 bf16"`.
        num_stages: the launch's `num_stages`, where it passes one.
    """

    kernel: Any
    signature: dict[str, str]
    constexprs: dict[str, object]
    num_warps: int
    label: str
    num_stages: int | None = None


def find_units(package: str, only: Iterable[str] | None = None) -> list[str]:
    """Names of the unit folders of `package` that hold a kernel, sorted.

    Raises:
        FileNotFoundError: if a folder does not say what to compile, or one of `only` is no unit.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"{package}: expected a package, found none")
    root = Path(spec.submodule_search_locations[0])
    names = sorted(kernel.parent.name for kernel in root.glob("*/kernel.py"))
    unknown = set(only or ()) - set(names)
    if unknown:
        raise FileNotFoundError(f"expected units among {names}, found {sorted(unknown)}")
    chosen = [name for name in names if only is None or name in only]
    for name in chosen:
        if not (root / name / "variants.py").is_file():
            raise FileNotFoundError(f"{root / name}: expected variants.py beside kernel.py")
    return chosen


def full_signature(variant: Variant) -> dict[str, str]:
    """The signature in the kernel's own order, with `"constexpr"` for compile-time arguments.

    Raises:
        ValueError: if an argument is missing, or named that the kernel does not have.
    """
    known = variant.signature | dict.fromkeys(variant.constexprs, "constexpr")
    names = list(variant.kernel.arg_names)
    if set(known) != set(names):
        wrong = sorted(set(known) ^ set(names))
        raise ValueError(f"{variant.label}: expected arguments {names}, mismatch in {wrong}")
    return {name: known[name] for name in names}


def compile_variant(variant: Variant, unit: str, target: Target) -> Outcome:
    """Compile one variant for one target; no GPU is touched."""
    # A unit's `variants.py` imports this module on machines without Triton, too.
    import triton

    head = (unit, variant.kernel.__name__, variant.label, variant.num_warps, target.name)
    log = io.StringIO()
    try:
        # `ptxas -v` reports on standard output, and a compiler that fails prints there as well.
        with redirect_stdout(log):
            binary = _triton_compile(triton, variant, target)
        usage = (
            read_ptxas(log.getvalue())
            if target.backend == "cuda"
            else read_amdgcn(binary.asm["amdgcn"])
        )
    # What the front end, the passes and the assemblers raise on a kernel they refuse.
    except (
        triton.errors.TritonError,
        RuntimeError,
        ValueError,
        TypeError,
        AssertionError,
    ) as error:
        return Failed(*head, f"{type(error).__name__}: {error}")
    return Compiled(*head, usage.registers, binary.metadata.shared, usage.spill_bytes)


def _triton_compile(triton: Any, variant: Variant, target: Target) -> Any:
    signature = full_signature(variant)
    aligned = {
        (position,): [["tt.divisibility", 16]]
        for position, kind in enumerate(signature.values())
        if kind.startswith("*")
    }
    options: dict[str, object] = {"num_warps": variant.num_warps}
    if variant.num_stages is not None:
        options["num_stages"] = variant.num_stages
    # A binary from the cache would come without the assembler's log.
    triton.knobs.compilation.always_compile = True
    triton.knobs.nvidia.dump_ptxas_log = True
    return triton.compile(
        triton.compiler.ASTSource(variant.kernel, signature, variant.constexprs, aligned),
        target=triton.backends.compiler.GPUTarget(target.backend, target.arch, target.warp_size),
        options=options,
    )


def compile_unit(package: str, unit: str, target: str) -> list[Outcome]:
    """Compile all variants of one unit for one target (runs in a worker process)."""
    # Triton 3.9 announces a change of default in 3.10; the default is what a launch gets.
    warnings.filterwarnings("ignore", message="TRITON_DEFAULT_FP_FUSION")
    module = importlib.import_module(f"{package}.{unit}.variants")
    outcomes = [compile_variant(variant, unit, TARGETS[target]) for variant in module.VARIANTS]
    return outcomes or [Failed(unit, "*", "", 0, target, "VARIANTS is empty")]


@contextmanager
def private_cache() -> Iterator[None]:
    """Let Triton write into a temporary folder, unless the environment names its cache."""
    if "TRITON_CACHE_DIR" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="ddtree-triton-") as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        try:
            yield
        finally:
            del os.environ["TRITON_CACHE_DIR"]


def compile_all(package: str, units: Iterable[str], targets: Iterable[str]) -> list[Outcome]:
    """Compile every variant of `units` for `targets`, in one process per core.

    Raises:
        RuntimeError: under `TRITON_INTERPRET`, where there is nothing to compile.
    """
    if os.environ.get("TRITON_INTERPRET", "0") not in {"", "0"}:
        raise RuntimeError("TRITON_INTERPRET is set, so nothing compiles; unset it and run again")
    tasks = [(package, unit, target) for unit in units for target in targets]
    outcomes: list[Outcome] = []
    # A forked copy of a process with threads may hang, so each worker starts afresh.
    fresh = multiprocessing.get_context("spawn")
    with private_cache(), ProcessPoolExecutor(min(8, os.cpu_count() or 1), fresh) as pool:
        start = time.monotonic()
        futures = [pool.submit(compile_unit, *task) for task in tasks]
        of = dict(zip(futures, tasks, strict=True))
        # Without a sign of life, a kernel that keeps an assembler busy for minutes looks like none.
        for done, future in enumerate(as_completed(futures), 1):
            _, unit, target = of[future]
            seconds = time.monotonic() - start
            sys.stderr.write(f"{done}/{len(tasks)} {unit} {target} after {seconds:.0f} s\n")
        for future, (_, unit, target) in of.items():
            error = future.exception()
            outcomes += (
                future.result()
                if error is None
                else [Failed(unit, "*", "", 0, target, f"{type(error).__name__}: {error}")]
            )
    return arranged(outcomes)


def main(argv: list[str] | None = None) -> int:
    """Parse, compile, print; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m ddtree.kernels.compile", description=__doc__)
    parser.add_argument("--unit", action="append", help="only this unit (repeatable)")
    parser.add_argument("--target", action="append", choices=list(TARGETS))
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--package", default=TREE, help="the package whose units are compiled")
    options = parser.parse_args(argv)
    try:
        units = find_units(options.package, options.unit)
        outcomes = compile_all(options.package, units, options.target or TARGETS)
    except (FileNotFoundError, RuntimeError) as error:
        parser.error(str(error))
    sys.stdout.write((as_json if options.format == "json" else as_text)(outcomes))
    return 1 if any(outcome.problem() is not None for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
