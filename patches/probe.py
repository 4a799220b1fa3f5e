"""Run inside the target's interpreter: compile edited files, import the runtime, try each hook.

    python -I -B probe.py SITE {"files": [...], "hooks": [...], "modules": [...], "points": [...]}

Prints one JSON object on the last line that begins with a brace: `failed` (a reason, empty if all
is well), `missing` (a module of the environment without which the runtime cannot be imported
there) and `note` (what works less well). `modules` are imported last; with `hooks` empty, the
runtime is left out. `points` are values of entry points that vLLM has to find.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

GROUP = "vllm.general_plugins"
UNREAD = (
    "where VLLM_PLUGINS leaves ddtree out, a server that is configured for trees starts without"
)


def probe(
    site: str, files: list[str], hooks: list[str], modules: list[str], points: list[str]
) -> dict[str, str]:
    """What went wrong, if anything."""
    # Before anything of the site is imported here.
    note = _unread(site, points)
    if site not in sys.path:
        sys.path.append(site)
    try:
        for file in files:
            with open(file, "rb") as handle:  # noqa: PTH123
                compile(handle.read(), file, "exec", dont_inherit=True)
        failed = _hooked(site, hooks) if hooks else ""
        failed = failed or _loaded(points) or _imported(site, modules) or _assigned(points)
        return {"failed": failed, "missing": "", "note": note}
    except ModuleNotFoundError as error:
        own = ("", "ddtree_runtime")
        foreign = not modules and (error.name or "").partition(".")[0] not in own
        reason = f"{type(error).__name__}: {error}"
        return {"failed": "" if foreign else reason, "missing": (error.name or "") * foreign}
    # Whatever a broken runtime raises is the answer.
    except BaseException as error:  # noqa: BLE001
        return {"failed": f"{type(error).__name__}: {error}", "missing": ""}


def _hooked(site: str, hooks: list[str]) -> str:
    from ddtree_runtime import hooks as runtime

    place = str(runtime.__file__)
    if not place.startswith(f"{site}/"):
        return f"ddtree_runtime is imported from {place}"
    for name in hooks:
        if not callable(runtime.hook(name)(lambda *_, **__: None)):
            return f"the hook {name} is nothing that can be called"
    unknown = getattr(runtime, "UNKNOWN", ())
    if unknown:
        return f"the runtime has no hook {', '.join(unknown)}"
    return ""


def _unread(site: str, points: list[str]) -> str:
    """Whether the interpreter reads the file that starts a plug-in with it."""
    unread = [point for point in points if point.partition(":")[0] not in sys.modules]
    return f"{sys.executable} reads no .pth files of {site}: {UNREAD}" if unread else ""


def _loaded(points: list[str]) -> str:
    """Why vLLM would not load the plug-ins, or why they would not hook into it."""
    if points:
        # Where no plug-in is asked for, none of what this loads is needed.
        from importlib.metadata import entry_points
    for value in points:
        found = [point for point in entry_points(group=GROUP) if point.value == value]
        if len(found) != 1:
            return f"{len(found)} entry points of {GROUP} are {value}"
        problems = list(_module(value, ".assign").problems())
        if problems:
            return "; ".join(problems)
        # What is imported from here on is hooked into.
        _module(value).register()
    return ""


def _assigned(points: list[str]) -> str:
    return "; ".join(filter(None, (_module(value).PLUGIN.problem for value in points)))


def _module(point: str, rest: str = "") -> Any:
    return importlib.import_module(point.partition(":")[0] + rest)


def _imported(site: str, modules: list[str]) -> str:
    for name in modules:
        place = str(importlib.import_module(name).__file__)
        if not place.startswith(f"{site}/"):
            return f"{name} is imported from {place}"
    return ""


if __name__ == "__main__":
    answer = probe(sys.argv[1], **json.loads(sys.argv[2]))
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
