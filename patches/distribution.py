"""The runtime as a distribution of its own, ready to lie beside vLLM.

It has a package `ddtree_runtime` and a `*.dist-info` whose RECORD lists every file, so that pip
lists it, checks it and removes it like any other. Where no file of vLLM is edited, there is also a
package `ddtree_plugin`, which an entry point has vLLM load.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from .. import __version__
from ..analyzers.errors import DdtreeError
from . import plugin
from .way import Way

PACKAGE = "ddtree_runtime"
PLUGIN = "ddtree_plugin"
DIST_INFO = f"{PACKAGE}-{__version__}.dist-info"
# Made for one install: what is hooked in it, and how that looked.
HOOKED = f"{PLUGIN}/hooked.py"
# Read by the environment's interpreter whenever it starts.
START = f"{PLUGIN}.pth"

_HERE = Path(__file__).resolve().parent
RUNTIME = _HERE / "runtime"
KERNELS = _HERE.parent / "kernels"

# What vLLM loads: the entry point's value.
POINT = f"{PLUGIN}:register"
_ENTRY_POINTS = f"[vllm.general_plugins]\n{plugin.NAME} = {POINT}\n"
# A line that begins so is run. Without the package, as after half a removal, it does nothing.
_LINE = (
    f"import sys; exec('try:\\n from {PLUGIN} import watch\\nexcept ImportError:\\n watch = int\\n"
    "watch()')\n"
)
_METADATA = f"""\
Metadata-Version: 2.1
Name: ddtree-runtime
Version: {__version__}
Summary: What ddtree's hooks in an installed vLLM call; remove it with `ddtree patch --revert`
"""
_WHEEL = "Wheel-Version: 1.0\nGenerator: ddtree\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def distribution(runtime: Path = RUNTIME, kernels: Path = KERNELS) -> dict[str, bytes]:
    """Every file of the distribution by its path relative to the site, sorted.

    Args:
        runtime: the folder that becomes the package; it holds `hooks.py`.
        kernels: the folder whose `tree` the runtime imports as `.kernels.tree`.

    Raises:
        DdtreeError: the runtime is not there, so that this ddtree is damaged.
    """
    if not (runtime / "hooks.py").is_file():
        raise DdtreeError(
            f"{runtime} holds no hooks.py",
            expected="the runtime that comes with ddtree",
            hint="python -m pip install --force-reinstall ddtree",
        )
    files = {f"{PACKAGE}/{path}": data for path, data in _code(runtime).items()}
    files.setdefault(f"{PACKAGE}/__init__.py", b"")
    for path, data in _code(kernels).items():
        if path == "__init__.py" or path.startswith("tree/"):
            files[f"{PACKAGE}/kernels/{path}"] = data
    files |= {
        f"{DIST_INFO}/INSTALLER": b"ddtree\n",
        f"{DIST_INFO}/METADATA": _METADATA.encode(),
        f"{DIST_INFO}/WHEEL": _WHEEL.encode(),
        f"{DIST_INFO}/top_level.txt": f"{PACKAGE}\n".encode(),
    }
    files[f"{DIST_INFO}/RECORD"] = _record(files)
    return dict(sorted(files.items()))


def way_of(installed: Iterable[str]) -> Way:
    """The way in which a patch was made, by the paths of what was laid beside vLLM."""
    return Way.PLUGIN if any(path.startswith(f"{PLUGIN}/") for path in installed) else Way.EDITS


def tops(installed: Iterable[str]) -> tuple[str, ...]:
    """What is laid beside vLLM, in the order in which it may appear.

    The last one brings it to life. An edit's hooks find nothing until the package itself is there;
    a plug-in is found by its metadata.
    """
    found = {path.partition("/")[0] for path in installed}
    order = (PACKAGE, PLUGIN, START) if way_of(installed) == Way.PLUGIN else ()
    return (*order, *sorted(found - {*order, PACKAGE}), *(() if order else (PACKAGE,)))


def found_beside(site: Path) -> tuple[Path, ...]:
    """What of ddtree's lies in a site, by the names that it is laid there under."""
    tops = [site / name for name in (PACKAGE, PLUGIN, START)]
    tops += sorted(site.glob(f"{PACKAGE}-*.dist-info"))
    return tuple(path for path in tops if os.path.lexists(path))


def with_plugin(installed: Mapping[str, bytes], hooked: bytes) -> dict[str, bytes]:
    """The distribution with the plug-in, sorted.

    Args:
        installed: what `distribution` gives.
        hooked: the plug-in's module for one install, from `assignments`.
    """
    files = {path: data for path, data in installed.items() if path != f"{DIST_INFO}/RECORD"}
    for name in ("__init__", "assign", "functions"):
        module = plugin.__name__ if name == "__init__" else f"{plugin.__name__}.{name}"
        files[f"{PLUGIN}/{name}.py"] = source_of(module).encode()
    files |= {
        HOOKED: hooked,
        START: _LINE.encode(),
        f"{DIST_INFO}/entry_points.txt": _ENTRY_POINTS.encode(),
        f"{DIST_INFO}/top_level.txt": f"{PACKAGE}\n{PLUGIN}\n".encode(),
    }
    files[f"{DIST_INFO}/RECORD"] = _record(files)
    return dict(sorted(files.items()))


def source_of(module: str) -> str:
    """The text of a module of this package, which may have come here without files."""
    spec = importlib.util.find_spec(module)
    # Typing knows no loader that gives texts, and all that load this package do.
    return str(spec.loader.get_source(module))  # type: ignore[union-attr]


def _code(folder: Path) -> dict[str, bytes]:
    # A link to the kernels makes relative imports work in the checkout; they are added by name.
    found = sorted(path for path in folder.rglob("*.py") if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in found}
    linked = [path.name for path in folder.iterdir() if path.is_symlink()]
    return {
        name: path.read_bytes()
        for name, path in names.items()
        if name.partition("/")[0] not in linked
    }


def _record(files: Mapping[str, bytes]) -> bytes:
    lines = [f"{path},sha256={_encoded(data)},{len(data)}" for path, data in sorted(files.items())]
    return "\n".join([*lines, f"{DIST_INFO}/RECORD,,", ""]).encode()


def _encoded(data: bytes) -> str:
    digest = hashlib.sha256(data).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
