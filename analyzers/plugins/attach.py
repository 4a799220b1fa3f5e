"""What plug-ins put in the place of the engine's own code, made known to the analysis.

From then on a call of a replaced function leads to both: a plug-in may be switched off by
`VLLM_PLUGINS`. What cannot be followed is kept with its place, so that nothing that it replaces
counts as explained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..program.program import ClassRef, FunctionRef, ModuleRef, Program
from ..program.receivers import Receivers
from ..program.replacements import method_wrap
from ..program.values import Closure, Stored
from ..program.wrappers import Wrap
from ..result import Plugin
from ..ways.marks import Way
from ..ways.substitute import Substitute
from .platforms import Platform, Runner, started_platform
from .start import Binding, Started, start

_PLATFORMS = "vllm.platform_plugins"
_IMPORT = "__import__"
# Methods that Python asks before the ones that a class defines.
_INSTEAD = frozenset({"__call__", "__new__", "__getattribute__", "__getattr__"})


@dataclass(slots=True)
class Attached:
    """What plug-ins changed, and what is left open."""

    substitutes: list[Substitute] = field(default_factory=list)
    # What runs in place of functions.
    wraps: list[Wrap] = field(default_factory=list)
    runners: list[Runner] = field(default_factory=list)
    # Platforms whose runner could not be read: sentences.
    unread: list[str] = field(default_factory=list)
    started: dict[Plugin, Started] = field(default_factory=dict)
    # What each plug-in sets on the package's own and this vLLM does not have.
    missing: dict[Plugin, list[str]] = field(default_factory=dict)


def attach(
    program: Program, receivers: Receivers, plugins: Iterable[Plugin], package: str
) -> Attached:
    """Start every plug-in, and note in the program what it replaces."""
    attached = Attached()
    for plugin in plugins:
        started = start(program, plugin.value)
        attached.started[plugin] = started
        lacking: list[str] = []
        for binding in started.bindings:
            lacking += _apply(program, receivers, attached, binding, package)
        attached.missing[plugin] = list(dict.fromkeys(lacking))
        if plugin.group == _PLATFORMS:
            platform = started_platform(program, receivers, started)
            attached.runners += platform.runners
            attached.unread += _unread(plugin, platform, started)
    return attached


def _unread(plugin: Plugin, platform: Platform, started: Started) -> Iterator[str]:
    where = f"the platform plug-in {plugin.name} ({plugin.value})"
    for name in platform.unread:
        yield f"{where} names {name}, which is not there: the runner that it starts was not read"
    if not started.returned or not started.finished:
        yield f"{where} could not be followed to a platform: the runner that it starts was not read"


def _apply(
    program: Program, receivers: Receivers, attached: Attached, binding: Binding, package: str
) -> Iterator[str]:
    """Make one replacement known; the name of what it needs if that is not there."""
    stored = binding.stored
    holder, name = stored.holder, stored.name
    if not name and isinstance(holder, ClassRef | ModuleRef):
        way = _way(binding, "names, made at run time")
        attached.substitutes.append(Substitute(name, holder, way))
        return
    if isinstance(holder, ClassRef) and lies_in(holder.module.name, package):
        replaced: ClassRef | FunctionRef | None = program.method(holder, name)
        where = f"{holder.module.name}.{holder.node.name}.{name}"
    elif isinstance(holder, ModuleRef) and lies_in(holder.name, package):
        found = program.imported(holder.name, name)
        replaced = found if isinstance(found, ClassRef | FunctionRef) else None
        where = f"{holder.name}.{name}"
    else:
        if holder is None or _takes_over_imports(stored):
            said = name or "names, made at run time"
            attached.substitutes.append(Substitute(name, None, _way(binding, said)))
        return
    if replaced is None and isinstance(holder, ClassRef) and name in _INSTEAD:
        attached.substitutes.append(Substitute(name, holder, _way(binding, where)))
        return
    if replaced is None:
        made = isinstance(stored.value, Closure | ClassRef)
        if made and not _mentions(program, holder, name):
            yield where
        return
    value = stored.value
    if isinstance(replaced, FunctionRef) and isinstance(value, Closure):
        for wrap in _wraps(receivers, replaced, value):
            receivers.wrappers.put(replaced, wrap)
            attached.wraps.append(wrap)
    elif isinstance(replaced, ClassRef) and isinstance(value, ClassRef):
        program.put_beside(replaced, value)
    else:
        attached.substitutes.append(Substitute(name, replaced, _way(binding, where)))


def _takes_over_imports(stored: Stored) -> bool:
    """Whether what is imported from now on is what the plug-in likes."""
    holder = stored.holder
    return isinstance(holder, ModuleRef) and holder.name == "builtins" and stored.name == _IMPORT


def _wraps(receivers: Receivers, replaced: FunctionRef, value: Closure) -> Iterator[Wrap]:
    """What runs in a function's place: what was made of it, or something else."""
    held = [one for one in (*value.names.values(), *value.first) if isinstance(one, Closure)]
    if any(one.function.node is replaced.node for one in held):
        yield from receivers.wrappers.around(replaced, value)
    elif value.function.node is not replaced.node:
        yield method_wrap(value, replaced)


def _way(binding: Binding, name: str) -> Way:
    return Way(binding.module.path, binding.line, f"the plug-in's own {name}", opaque=True)


def _mentions(program: Program, holder: ClassRef | ModuleRef, name: str) -> bool:
    """Whether a module knows a name at all, though not as a definition."""
    module = holder.module if isinstance(holder, ClassRef) else program.module(holder.name)
    return module is not None and name.encode() in module.source


def lies_in(name: str, package: str) -> bool:
    """Whether a dotted name is that of a package or of something in it."""
    return f"{name}.".startswith(f"{package}.")
