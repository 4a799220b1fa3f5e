"""vLLM's plug-in `ddtree`: hooks trees into vLLM and leaves its files as they are.

vLLM calls `register` in every process that it starts, unless VLLM_PLUGINS leaves it out. Whatever
keeps the hooks from being put on is noticed by `watch`, which the interpreter calls when it starts:
a vLLM whose configuration asks for trees ends with the reason, any other one runs as stock.

Every start of an interpreter in this environment loads this file, so it imports nothing by then. It
needs nothing of the rest, which may be damaged.
"""

from __future__ import annotations

import sys

# What type checkers take for `typing.TYPE_CHECKING`, whose module takes long to import.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Action = Callable[[ModuleType], None]

# The name of the entry point, and the key of the settings in `--additional-config`.
NAME = "ddtree"
STATUS = "run `ddtree patch --status` on this environment"
# Where every process is handed the configuration: the first one makes it, the others are sent it.
GUARDED = {
    "vllm.config.vllm": ("VllmConfig", "__post_init__"),
    "vllm.v1.executor.abstract": ("Executor", "__init__"),
    "vllm.v1.worker.worker_base": ("WorkerBase", "__init__"),
}


class Refused(RuntimeError):
    """Trees are configured, and not hooked in; says why, and what helps."""


class Plugin:
    """What has become of the plug-in in this process.

    Attributes:
        registered: the hooks are put on, or will be when their modules are imported.
        configured: a configuration with trees was seen.
        problem: why the hooks are not put on; empty if there is no reason.
    """

    def __init__(self) -> None:
        """Start with nothing done."""
        self.registered = self.configured = self.watching = False
        self.problem = ""

    def failed(self, problem: str) -> None:
        """Know a problem from here on; it ends this process if trees are configured in it.

        Raises:
            Refused: they are.
        """
        self.registered, self.problem = False, problem
        if self.configured:
            raise _refusal()
        # With a name of vLLM's, so that its own handler shows it.
        import logging

        words = "ddtree: %s; this vLLM runs as stock, and does not start with trees; %s"
        logging.getLogger("vllm.ddtree_plugin").warning(words, problem, STATUS)


PLUGIN = Plugin()


def register() -> None:
    """Put the hooks on; what vLLM calls, once or more often."""
    watch()
    if PLUGIN.registered or PLUGIN.problem:
        return
    try:
        from .assign import start

        PLUGIN.registered = True
        start(PLUGIN, after_import)
    # Whatever a damaged file raises when it is imported.
    except Exception as error:
        if PLUGIN.configured:
            raise
        PLUGIN.failed(f"what belongs to it is damaged ({type(error).__name__}: {error})")


def watch() -> None:
    """From here on, notice a configuration that asks for trees where they are not hooked in."""
    if not PLUGIN.watching:
        PLUGIN.watching = True
        for module in GUARDED:
            after_import(module, _guard)


def after_import(name: str, action: Action) -> None:
    """Run an action on a module: now if it is imported, else once it is."""
    module = sys.modules.get(name)
    if module is not None:
        action(module)
    if not _IMPORTS.actions:
        sys.meta_path.insert(0, _IMPORTS)
    _IMPORTS.actions.setdefault(name, []).append(action)


class _Imports:
    """A finder that finds what the others find, and acts on some of it after it is imported."""

    def __init__(self) -> None:
        self.actions: dict[str, list[Action]] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self.actions:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            found: ModuleSpec | None = find(name, path, target) if find and finder != self else None
            if found is not None:
                self._act_after(found)
                return found
        return None

    def _act_after(self, spec: ModuleSpec) -> None:
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            # Most loaders are made for one module, and some for many.
            for action in self.actions[spec.name] if module.__name__ == spec.name else ():
                action(module)

        loader.exec_module = exec_module


_IMPORTS = _Imports()


def _guard(module: ModuleType) -> None:
    """Look at the configuration wherever a method of the module is handed one."""
    owner, name = GUARDED[module.__name__]
    cls = getattr(module, owner, None)
    method = vars(cls).get(name) if cls else None
    if method is None:
        # A release that does it elsewhere is none that the plug-in was made for.
        return

    def guarded(self: Any, *args: Any, **named: Any) -> Any:
        own = name == "__post_init__"
        refuse_without_hooks(self if own else args[0] if args else named.get("vllm_config"))
        return method(self, *args, **named)

    guarded.__name__, guarded.__qualname__ = method.__name__, method.__qualname__
    guarded.__dict__["__wrapped__"] = method
    setattr(cls, name, guarded)


def refuse_without_hooks(config: Any) -> None:
    """End a start whose configuration asks for trees that are not hooked in.

    Raises:
        Refused: it does.
    """
    given = getattr(config, "additional_config", None)
    if not isinstance(given, dict) or NAME not in given:
        return
    PLUGIN.configured = True
    if not (PLUGIN.registered or PLUGIN.problem):
        # Whoever makes a configuration by hand may not have come by it yet.
        from vllm.plugins import load_general_plugins

        load_general_plugins()
    if not PLUGIN.registered:
        raise _refusal()


def why_not() -> str:
    """Why the hooks are not put on in this process, and what helps."""
    if PLUGIN.problem:
        return f"{PLUGIN.problem}; {STATUS}"
    from vllm import envs

    allowed = envs.VLLM_PLUGINS
    if allowed is not None and NAME not in allowed:
        names = ",".join([*filter(None, allowed), NAME])
        return (
            f"VLLM_PLUGINS={','.join(allowed)} leaves out the plug-in that brings them; to start, "
            f"set VLLM_PLUGINS={names}"
        )
    return f"vLLM did not load the plug-in that brings them; {STATUS}"


def _refusal() -> Refused:
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        # Where nobody catches it, the message is enough: it needs no look at vLLM's code.
        if isinstance(error, Refused):
            sys.stderr.write(f"{error}\n")
        else:
            before(kind, error, trace)

    sys.excepthook = hook
    return Refused(f"ddtree: trees are configured, and {why_not()}")
