"""The stand-in's compiler, which is asked for options and never to compile."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

from triton.backends import compiler


# triton is untyped.
class StandInCompiler(compiler.BaseBackend):  # type: ignore[misc]
    """Accepts the stand-in's target."""

    binary_ext = "none"

    @staticmethod
    def supports_target(target: compiler.GPUTarget) -> bool:
        """Whether the target is the stand-in's."""
        return bool(target.backend == "cpu")

    def hash(self) -> str:
        """There is one version of nothing."""
        return "stand-in"

    def parse_options(self, options: dict[str, Any]) -> SimpleNamespace:
        """Options of a launch, as they are."""
        return SimpleNamespace(**options)

    def add_stages(self, stages: dict[str, Any], options: object, language: object) -> None:
        """Refuse: the interpreter compiles nothing."""
        raise NotImplementedError("the stand-in compiles nothing; set TRITON_INTERPRET=1")

    def load_dialects(self, context: object) -> None:
        """There are none."""

    def get_module_map(self) -> dict[str, ModuleType]:
        """There are none."""
        return {}
