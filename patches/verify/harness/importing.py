"""Import every module that the patch hooks into, and see that the runtime's hook is in it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import sys
from pathlib import Path
from typing import Any

from . import events, plan


def run(job: dict[str, Any], folder: Path, part: str) -> bool:
    """Emit what is installed, and one check per hooked module; whether all can be imported."""
    del folder, part
    events.progress(f"importing the hooked modules; {plan.left(job, plan.IMPORTS)}")
    checks = [_imported(name) for name in job["modules"]]
    events.emit("facts", **_facts())
    events.emit("checks", part=plan.IMPORTS, checks=checks)
    return all(check["passed"] for check in checks)


def _imported(name: str) -> dict[str, Any]:
    try:
        module = importlib.import_module(name)
    # Whatever an edited module raises is the finding.
    except BaseException as failure:  # noqa: BLE001
        return {"name": name, "passed": False, "detail": f"{type(failure).__name__}: {failure}"}
    hook = getattr(module, "_ddtree_hook", None)
    if hook is None:
        reason = _not_assigned(name)
        detail = f"no hook in {module.__file__}: {reason}" if reason else str(module.__file__)
        return {"name": name, "passed": not reason, "detail": detail}
    if hook.__module__ != "ddtree_runtime.hooks":
        detail = "the runtime cannot be imported, so its hooks do nothing"
        return {"name": name, "passed": False, "detail": detail}
    return {"name": name, "passed": True, "detail": str(module.__file__)}


def _not_assigned(name: str) -> str:
    """Why no plug-in has hooked into a module; empty if one has."""
    if importlib.util.find_spec("ddtree_plugin") is None:
        return "its file was not edited"
    plugin = importlib.import_module("ddtree_plugin")
    # As every process of vLLM does when it starts.
    importlib.import_module("vllm.plugins").load_general_plugins()
    if not plugin.PLUGIN.registered:
        return str(plugin.why_not())
    hooked: dict[str, Any] = importlib.import_module("ddtree_plugin.hooked").MODULES
    return "" if name in hooked else "the plug-in assigns nothing in it"


def _facts() -> dict[str, Any]:
    import torch

    cuda = torch.cuda.is_available()
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "torch": torch.__version__,
        "triton": _version("triton"),
        "runtime": _version("ddtree-runtime"),
        # The near side cannot follow links of this machine.
        "location": os.path.realpath(Path(_file("vllm")).parent.parent),
        "device": torch.cuda.get_device_name(0) if cuda else "cpu",
        "cuda": cuda,
    }


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _file(name: str) -> str:
    spec = importlib.util.find_spec(name)
    return str(spec.origin) if spec else ""
