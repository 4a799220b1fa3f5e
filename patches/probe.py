"""Run inside the target's interpreter: compile edited files, import the runtime, try each hook.

    python -I -B probe.py SITE {"files": [...], "hooks": [...], "modules": [...]}

Prints one JSON object on the last line that begins with a brace: `failed` (a reason, empty if all
is well) and `missing` (a module of the environment without which the runtime cannot be imported
there). `modules` are imported last; with `hooks` empty, the runtime is left out.
"""

from __future__ import annotations

import importlib
import json
import sys


def probe(site: str, files: list[str], hooks: list[str], modules: list[str]) -> dict[str, str]:
    """What went wrong, if anything."""
    if site not in sys.path:
        sys.path.append(site)
    try:
        for file in files:
            with open(file, "rb") as handle:  # noqa: PTH123
                compile(handle.read(), file, "exec", dont_inherit=True)
        failed = _hooked(site, hooks) if hooks else ""
        return {"failed": failed or _imported(site, modules), "missing": ""}
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


def _imported(site: str, modules: list[str]) -> str:
    for name in modules:
        place = str(importlib.import_module(name).__file__)
        if not place.startswith(f"{site}/"):
            return f"{name} is imported from {place}"
    return ""


if __name__ == "__main__":
    answer = probe(sys.argv[1], **json.loads(sys.argv[2]))
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
