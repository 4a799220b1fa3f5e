"""The runtime as a distribution of its own, ready to lie beside vLLM.

It has a package `ddtree_runtime` and a `*.dist-info` whose RECORD lists every file, so that pip
lists it, checks it and removes it like any other.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path

from .. import __version__
from ..analyzers.errors import DdtreeError

PACKAGE = "ddtree_runtime"
DIST_INFO = f"{PACKAGE}-{__version__}.dist-info"
# What a complete install consists of, in the order in which it may appear: imports find nothing
# until the package itself is there.
TOPS = (DIST_INFO, PACKAGE)

_HERE = Path(__file__).resolve().parent
RUNTIME = _HERE / "runtime"
KERNELS = _HERE.parent / "kernels"

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
