"""Put the hooks on by assignment: all of them or none, wherever their modules are imported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .functions import changed

if TYPE_CHECKING:
    from . import Plugin

_AGAIN = "revert the patch and apply it again"


def start(
    plugin: Plugin, after_import: Callable[[str, Callable[[ModuleType], None]], None]
) -> None:
    """Hook into the modules that are imported, and into the others once they are."""
    problem = "; ".join(problems())
    if problem:
        plugin.failed(f"the plug-in was made for another vLLM: {problem}; {_AGAIN}")
        return
    from ddtree_plugin import hooked
    from ddtree_runtime import refusals

    refusals.ASSIGNED.update(hooked.MODULES)
    for module, put_on in hooked.MODULES.items():
        functions = hooked.FUNCTIONS[f"{module.replace('.', '/')}.py"]
        after_import(module, partial(_assign, plugin, put_on, functions))


def problems() -> Iterator[str]:
    """What is not as it was when the plug-in was planned."""
    from ddtree_plugin import hooked

    if hooked.DISTRIBUTION:
        version = _version(hooked.DISTRIBUTION)
        if version != hooked.VERSION:
            found = f"is {version} now" if version else "is not here"
            yield f"{hooked.DISTRIBUTION} was {hooked.VERSION}, and {found}"
            return
    # Known where vLLM is imported, and found where it is not.
    vllm = importlib.util.find_spec("vllm")
    if vllm is None or vllm.origin is None:
        yield "there is no vLLM"
        return
    yield from changed(Path(vllm.origin).parents[1], hooked.FUNCTIONS, hooked.FILES).values()


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _assign(
    plugin: Plugin, put_on: Callable[[], None], names: Iterable[str], module: ModuleType
) -> None:
    if plugin.problem:
        return
    before = {name: _attribute(module, name) for name in names}
    replaced = [name for name, found in before.items() if not _is_own(module, name, found)]
    if replaced:
        other = ", ".join(f"{name} is {_described(before[name])}" for name in replaced)
        plugin.failed(f"something else replaced what is hooked: {other}")
        return
    try:
        put_on()
    # Whatever a damaged runtime raises: vLLM is stock then.
    except Exception as error:  # noqa: BLE001
        plugin.failed(f"{module.__name__} cannot be hooked ({type(error).__name__}: {error})")
        return
    for name, found in before.items():
        if "." not in name:
            _replace(found, _attribute(module, name))


def _attribute(module: ModuleType, name: str) -> Any:
    *owner, last = name.split(".")
    found: Any = module
    for part in owner:
        found = getattr(found, part, None)
    # A property as it is, and no method of another class.
    return vars(found).get(last) if found is not None else None


def _plain(found: Any) -> Any:
    return found.fget if isinstance(found, property) else found


def _is_own(module: ModuleType, name: str, found: Any) -> bool:
    """Whether what a name means is the module's own function, decorated or not."""
    function = inspect.unwrap(_plain(found)) if found is not None else None
    where = (getattr(function, "__module__", None), getattr(function, "__qualname__", None))
    return where == (module.__name__, name)


def _described(found: Any) -> str:
    function = _plain(found)
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', function)}"


def _replace(old: Any, new: Any) -> None:
    """Put a hooked function in the place of the bare one wherever vLLM has imported it already."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "vllm":
            for key, value in list(vars(module).items()):
                if value is old:
                    setattr(module, key, new)
