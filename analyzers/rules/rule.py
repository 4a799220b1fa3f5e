"""What a rule is: a shape that it looks for, what the shape proves, and its own examples."""

from __future__ import annotations

import enum
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import libcst as cst

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.view import FunctionView


class Scope(enum.Enum):
    """Which functions a rule is shown."""

    # Those that the target's logits reach.
    LOGITS = "logits"
    # Those that an engine's step reaches and the target's logits do not, or that draft.
    DRAFTING = "drafting"
    # Those that prepare a step's inputs.
    FORWARD = "forward"
    # Attention backends; and all that a step reaches, once it is known to verify a tree.
    ATTENTION = "attention"
    # Those that a mask of a tree reaches, wherever it was made.
    MASKED = "masked"
    # All that sampling reaches, once it is known to verify a tree.
    COMMIT = "commit"


@dataclass(frozen=True, slots=True)
class Finding:
    """A place that has the shape, and what it shows."""

    line: int
    column: int
    end_line: int
    message: str
    # The local names that hold what was found: a mask, or what a walk decided.
    made: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Example:
    """One function as source text.

    Names that begin with `target` hold the target's logits, or whatever else a rule's scope says;
    those that begin with `held` are what `FunctionView.held` gives.
    """

    source: str


class Rule(ABC):
    """Base of all rules.

    The class docstring is the help text; `name` comes from the file. A subclass without examples
    of both kinds is an error when it is imported.
    """

    stage: ClassVar[Stage]
    supports: ClassVar[StageVerdict]
    scope: ClassVar[Scope]
    FOUND: ClassVar[tuple[Example, ...]]
    NOT_FOUND: ClassVar[tuple[Example, ...]]
    # Whether the shape needs a loop that reads what the target said.
    in_loops: ClassVar[bool] = False
    name: ClassVar[str]
    registry: ClassVar[list[type[Rule]]] = []

    def __init_subclass__(cls) -> None:
        cls.name = cls.__module__.rpartition(".")[2].replace("_", "-")
        for attribute in ("stage", "supports", "scope", "FOUND", "NOT_FOUND"):
            if not getattr(cls, attribute, None):
                raise TypeError(f"rule {cls.name}: expected a value for {attribute}, found none")
        if not cls.__doc__:
            raise TypeError(f"rule {cls.name}: expected a docstring as its help text, found none")
        Rule.registry.append(cls)

    @property
    def help(self) -> str:
        """The class docstring, dedented."""
        return inspect.cleandoc(self.__doc__ or "")

    @abstractmethod
    def gate(self, outline: Outline) -> bool:
        """Whether a function is worth parsing with libcst for this rule."""

    @abstractmethod
    def find(self, view: FunctionView) -> Iterator[Finding]:
        """Every place in the function that has the shape."""

    def at(
        self, view: FunctionView, node: cst.CSTNode, message: str, made: Iterable[str] = ()
    ) -> Finding:
        """A finding at a node of the function."""
        line, column, end_line = view.span(node)
        return Finding(line, column, end_line, message, frozenset(made))
