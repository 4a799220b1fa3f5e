"""Run inside the target's interpreter: compile edited files, import the runtime, try each hook.

    python -I -B probe.py SITE {"files": [...], "hooks": [...]}

Prints one JSON object: `failed` (a reason, empty if all is well) and `missing` (a module of the
environment without which the runtime cannot be imported there).
"""

from __future__ import annotations

import json
import sys


def probe(site: str, files: list[str], hooks: list[str]) -> dict[str, str]:
    """What went wrong, if anything."""
    if site not in sys.path:
        sys.path.append(site)
    try:
        for file in files:
            with open(file, "rb") as handle:  # noqa: PTH123
                compile(handle.read(), file, "exec", dont_inherit=True)
        return _hooked(site, hooks)
    except ModuleNotFoundError as error:
        foreign = (error.name or "").partition(".")[0] not in ("", "ddtree_runtime")
        reason = f"{type(error).__name__}: {error}"
        return {"failed": "" if foreign else reason, "missing": (error.name or "") * foreign}
    # Whatever a broken runtime raises is the answer.
    except BaseException as error:  # noqa: BLE001
        return {"failed": f"{type(error).__name__}: {error}", "missing": ""}


def _hooked(site: str, hooks: list[str]) -> dict[str, str]:
    from ddtree_runtime import hooks as runtime

    place = str(runtime.__file__)
    if not place.startswith(f"{site}/"):
        return {"failed": f"ddtree_runtime is imported from {place}", "missing": ""}
    for name in hooks:
        if not callable(runtime.hook(name)(lambda *_, **__: None)):
            return {"failed": f"the hook {name} is nothing that can be called", "missing": ""}
    return {"failed": "", "missing": ""}


if __name__ == "__main__":
    wanted = json.loads(sys.argv[2])
    sys.stdout.write("\n" + json.dumps(probe(sys.argv[1], wanted["files"], wanted["hooks"])))
