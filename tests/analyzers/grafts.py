"""Packages beside a tiny vLLM whose decorators wrap its runner, each laid out in another way."""

from __future__ import annotations

from pathlib import Path

from . import inputs, mini, overlay
from .targets import installs

RUNNER = "vllm/v1/worker/gpu_model_runner.py"
V2_RUNNER = "vllm/v1/worker/gpu/model_runner.py"
CHAIN = inputs.LINEAR["product_along_positions"]

_GUARD = """
try:
    from graft.seams import seam as _seam
except ImportError:

    def _seam(name):
        return lambda function: function
"""

_DECIDE = """
from graft.accept import accept


def decide(stock, runner, logits, metadata):
    if metadata is None:
        return stock(runner, logits, metadata)
    return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))


def nothing(stock, *arguments):
    return stock(*arguments)
"""
_TABLE = """
import functools

from graft import decide as ways

WAYS = {"decide": ways.decide, "nothing": ways.nothing}


def seam(name):
    way = WAYS[name]

    def decorate(function):
        @functools.wraps(function)
        def seamed(*args, **kwargs):
            return way(function, *args, **kwargs)

        return seamed

    return decorate
"""
_GOTTEN = _TABLE.replace("WAYS[name]", "WAYS.get(name, ways.nothing)")
_PARTIAL = """
import functools

from graft import decide as ways

WAYS = {"decide": ways.decide, "nothing": ways.nothing}


def seam(name):
    return lambda function: functools.partial(WAYS[name], function)
"""
_BRANCHES = """
def seam(name):
    from graft.decide import decide, nothing

    if name == "decide":
        way = decide
    elif name == "nothing":
        way = nothing
    else:
        raise LookupError(name)

    def decorate(function):
        return lambda *args, **kwargs: way(function, *args, **kwargs)

    return decorate
"""
_EARLY = """
from graft.decide import decide, nothing


def seam(name):
    if name == "decide":
        return lambda function: lambda *args: decide(function, *args)
    return lambda function: lambda *args: nothing(function, *args)
"""
_MATCHED = """
from graft.decide import decide, nothing


def seam(name):
    match name:
        case "decide" | "other":
            way = decide
        case _:
            way = nothing
    return lambda function: lambda *args: way(function, *args)
"""
_REGISTERED_DECIDE = _DECIDE.replace("def decide", '@register("decide")\ndef decide').replace(
    "def nothing", '@register("nothing")\ndef nothing'
)
_REGISTERED = """
WAYS = {}


def register(name):
    def keep(function):
        WAYS[name] = function
        return function

    return keep


def seam(name):
    def decorate(function):
        def seamed(*args, **kwargs):
            return WAYS[name](function, *args, **kwargs)

        return seamed

    return decorate
"""
_REGISTRY = """
class Registry:
    def __init__(self):
        self.ways = {}

    def register(self, name):
        def keep(function):
            self.ways[name] = function
            return function

        return keep

    def find(self, name):
        return self.ways[name]


REGISTRY = Registry()
register = REGISTRY.register


def seam(name):
    way = REGISTRY.find(name)

    def decorate(function):
        def seamed(*args, **kwargs):
            return way(function, *args, **kwargs)

        return seamed

    return decorate
"""
_CLASS = """
from graft import decide as ways

WAYS = {"decide": ways.decide, "nothing": ways.nothing}


class seam:
    def __init__(self, name):
        self.way = WAYS[name]

    def __call__(self, function):
        def seamed(*args, **kwargs):
            return self.way(function, *args, **kwargs)

        return seamed
"""
_OBJECT = """
from graft import decide as ways

WAYS = {"decide": ways.decide, "nothing": ways.nothing}


class Seamed:
    def __init__(self, function, way):
        self.function = function
        self.way = way

    def __get__(self, instance, owner):
        return lambda *args: self(instance, *args)

    def __call__(self, *args):
        return self.way(self.function, *args)


def seam(name):
    return lambda function: Seamed(function, WAYS[name])
"""
_INLINE = """
from graft.accept import accept


def seam(name):
    def decorate(function):
        def seamed(runner, logits, metadata):
            if name == "nothing" or metadata is None:
                return function(runner, logits, metadata)
            return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))

        return seamed

    return decorate
"""
# How the package finds what runs at a seam; all of them take the walk at the seam "decide".
LAYOUTS: dict[str, dict[str, str]] = {
    "table": {"graft/seams.py": _TABLE, "graft/decide.py": _DECIDE},
    "table-with-default": {"graft/seams.py": _GOTTEN, "graft/decide.py": _DECIDE},
    "partial": {"graft/seams.py": _PARTIAL, "graft/decide.py": _DECIDE},
    "branches": {"graft/seams.py": _BRANCHES, "graft/decide.py": _DECIDE},
    "early-returns": {"graft/seams.py": _EARLY, "graft/decide.py": _DECIDE},
    "match": {"graft/seams.py": _MATCHED, "graft/decide.py": _DECIDE},
    "registered": {
        "graft/__init__.py": "from graft import decide\n",
        "graft/seams.py": _REGISTERED,
        "graft/decide.py": "from graft.seams import register\n" + _REGISTERED_DECIDE,
    },
    "registry": {
        "graft/__init__.py": "from graft import decide\n",
        "graft/seams.py": _REGISTRY,
        "graft/decide.py": "from graft.seams import register\n" + _REGISTERED_DECIDE,
    },
    "class": {"graft/seams.py": _CLASS, "graft/decide.py": _DECIDE},
    "object": {"graft/seams.py": _OBJECT, "graft/decide.py": _DECIDE},
    "inline": {"graft/seams.py": _INLINE},
    "package": {
        "graft/seams/__init__.py": "from .table import seam\n",
        "graft/seams/table.py": _TABLE,
        "graft/decide.py": _DECIDE,
    },
}
# Seams that give nothing but the stock function back, whatever else lies beside them.
IDLE: dict[str, dict[str, str]] = {
    "identity": {
        "graft/seams.py": "from graft import decide\n\n\ndef seam(name):\n    return lambda f: f\n",
        "graft/decide.py": _DECIDE,
    },
    "table-unused": {
        "graft/seams.py": _TABLE.replace("way(function, *args", "function(*args"),
        "graft/decide.py": _DECIDE,
    },
    "never-asked": {
        "graft/seams.py": _TABLE,
        "graft/decide.py": _DECIDE.replace(
            "    return accept(metadata.parents",
            "    return stock(runner, logits, metadata)\n\n\ndef unused(metadata, logits):\n"
            "    return accept(metadata.parents",
        ),
    },
}


def edited(runner: str, seam: str) -> str:
    """A runner's source with the guarded import, and one function decorated."""
    lines = runner.splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.startswith("class "))
    head, rest = "".join(lines[:place]), "".join(lines[place:])
    hooked = rest.replace("    def _sample(", f'    @_seam("{seam}")\n    def _sample(')
    return f"{head}{_GUARD}\n\n{hooked}"


def released(root: Path, layout: dict[str, str], accept: str) -> Path:
    """The same from a wheel of its own: the edits are on record, the package is a dependency."""
    stock = mini.files(CHAIN)
    files = stock | {RUNNER: edited(stock[RUNNER], "decide")}
    site = installs.installed(root / "site-packages", files=files)
    return installs.write(site, {"graft/__init__.py": "", "graft/accept.py": accept} | layout)


def install(
    root: Path,
    layout: dict[str, str],
    accept: str,
    *,
    seam: str = "decide",
    runner: str = RUNNER,
    record: bool = True,
) -> Path:
    """A tiny vLLM that verifies a chain, edited after it was installed, and the package beside it.

    Args:
        layout: the files of the package, one of `LAYOUTS`.
        accept: the source of its `accept`.
        seam: the name that the runner's decorator gives.
        runner: which runner is edited.
        record: whether the install still has what it was installed with on record.
    """
    stock = mini.files(CHAIN)
    site = installs.installed(root / "site-packages", files=stock)
    if not record:
        (site / "vllm-1.2.3.dist-info/RECORD").unlink()
    overlay.write(site, runner, edited(stock[runner], seam))
    package = {"graft/__init__.py": "", "graft/accept.py": accept} | layout
    return installs.write(site, package)
