"""Small programs in memory, and what the analysis says of them in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ddtree.analyzers.program.dataflow import Region, follow_logits
from ddtree.analyzers.program.program import ClassRef, FunctionRef, Program
from ddtree.analyzers.program.reach import Reach, Reached
from ddtree.analyzers.program.receivers import Receivers, Scope

PACKAGE = "app"


def program(files: Mapping[str, str | bytes]) -> Program:
    """A program of these files; a file whose text is missing from the mapping cannot be read."""
    contents = {
        path: text.encode() if isinstance(text, str) else text for path, text in files.items()
    }

    def read(path: str) -> bytes:
        if contents[path] == UNREADABLE:
            raise PermissionError(13, "Permission denied", path)
        return contents[path]

    return Program(contents, read, PACKAGE)


UNREADABLE = b"cannot be read"


@dataclass
class Loaded:
    """A program with its receivers; names are written `module:symbol`."""

    files: Mapping[str, str | bytes]

    @cached_property
    def program(self) -> Program:
        """The program."""
        return program(self.files)

    @cached_property
    def receivers(self) -> Receivers:
        """The types of its expressions."""
        return Receivers(self.program)

    def cls(self, name: str) -> ClassRef:
        """The class of that name."""
        found = self._find(name)
        assert isinstance(found, ClassRef), found
        return found

    def function(self, name: str) -> FunctionRef:
        """The function or method of that name."""
        found = self._find(name)
        assert isinstance(found, FunctionRef), found
        return found

    def _find(self, name: str) -> object:
        module_name, _, symbol = name.partition(":")
        module = self.program.module(module_name)
        assert module is not None, self.program.failures
        owner, _, method = symbol.partition(".")
        found = self.program.resolve(module, owner)
        if not method:
            return found
        assert isinstance(found, ClassRef)
        return self.program.method(found, method)

    def scope(self, name: str) -> Scope:
        """The scope of a function, or of a method on an instance of the class named before it."""
        _, _, symbol = name.partition(":")
        owner = self.cls(name.rpartition(".")[0]) if "." in symbol else None
        return self.receivers.scope(self.function(name), owner)

    def reach(self, *entries: str, max_depth: int = 12, within: str | None = None) -> Reach:
        """What these functions reach."""
        reach = Reach(self.program, self.receivers, max_depth, within)
        reach.run([(self.function(name), self.scope(name).receiver) for name in entries])
        return reach

    def logits(self, engine: str, entry: str, *, decisions: bool = False) -> Region:
        """Where the logits of an engine class flow from one of its methods."""
        reach = self.reach(f"{engine}.{entry}")
        classes = self.program.ancestry(self.cls(engine))
        return follow_logits(reach, self.receivers, classes, decisions)


def symbols(reach: Reach) -> list[str]:
    """What was reached, in order."""
    return [symbol(reached) for reached in reach.functions]


def symbol(reached: Reached) -> str:
    """A reached function by its qualified name, with the class of the instance if that differs."""
    function, receiver = reached.function, reached.receiver
    if receiver is None or (function.owner is not None and receiver.key == function.owner.key):
        return function.symbol
    return f"{function.symbol} on {receiver.node.name}"


def holders(region: Region) -> dict[str, set[str]]:
    """Per function the names that hold logits."""
    return {symbol(reached): set(names) for reached, names in region.tainted.items()}
