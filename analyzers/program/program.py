"""Lazily parsed modules, and the resolution of names to what defines them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..install.names import dotted_name
from .module import Definition, FunctionNode, Import, Module, parse_module

# Packages that a step calls into but that never decide which draft tokens are kept.
OUTSIDE = (
    "_aiter_ops",
    "_custom_ops",
    "compilation",
    "config",
    "distributed",
    "engine",
    "entrypoints",
    "envs",
    "inputs",
    "logger",
    "lora",
    "model_executor.custom_op",
    "model_executor.layers.attention",
    "model_executor.layers.fused_moe",
    "model_executor.layers.quantization",
    "model_executor.layers.rotary_embedding",
    "model_executor.model_loader",
    "model_executor.models",
    "model_executor.offloader",
    "model_executor.warmup",
    "models",
    "multimodal",
    "platforms",
    "pooling_params",
    "profiler",
    "reasoning",
    "sampling_params",
    "tokenizers",
    "tool_parsers",
    "tracing",
    "transformers_utils",
    "usage",
    "utils.deep_gemm",
)
# Attention is prepared at great length, and matters only where a tree has to be masked.
ATTENTION = ("v1.attention.backends", "v1.core", "v1.kv_cache_interface")
# How many re-exports a name may pass through before we stop believing that it leads anywhere.
MAX_HOPS = 8
# Values at top level that hold functions to be called by way of them.
_HOLDERS = (ast.Dict, ast.List, ast.Tuple, ast.Lambda, ast.Call)


@dataclass(frozen=True, slots=True, eq=False)
class ClassRef:
    """A class in the inspected code."""

    module: Module
    node: ast.ClassDef

    @property
    def key(self) -> tuple[str, str]:
        """What makes two references the same class."""
        return self.module.name, self.node.name


@dataclass(frozen=True, slots=True, eq=False)
class FunctionRef:
    """A function or method in the inspected code; `owner` is the class that defines it.

    One that runs in place of another, `wraps`, may find functions under names of its own: those of
    its closure, and parameters that hold functions. They are `bound`.
    """

    module: Module
    node: FunctionNode
    owner: ClassRef | None = None
    bound: Mapping[str, FunctionRef] = field(default_factory=lambda: MappingProxyType({}))
    wraps: FunctionRef | None = None

    @property
    def symbol(self) -> str:
        """The qualified name within the module."""
        return f"{self.owner.node.name}.{self.node.name}" if self.owner else self.node.name


@dataclass(frozen=True, slots=True)
class ModuleRef:
    """A name that stands for a whole module."""

    name: str


Resolved = ClassRef | FunctionRef | ModuleRef


class Program:
    """The inspected files seen as modules that import each other.

    Args:
        paths: every path of the source that may be loaded as a module.
        read: returns the bytes of a path; raises `OSError`.
        package: the name of the package whose `OUTSIDE` parts names are not followed into.
        attention: whether names are followed into attention backends as well.
    """

    def __init__(
        self,
        paths: Collection[str],
        read: Callable[[str], bytes],
        package: str = "vllm",
        *,
        attention: bool = False,
    ) -> None:
        self._paths = frozenset(paths)
        self._read = read
        self.package = package
        parts = OUTSIDE if attention else OUTSIDE + ATTENTION
        self._outside = frozenset(f"{package}.{name}" for name in parts)
        self._names: dict[tuple[str, str], Resolved | None] = {}
        self._modules: dict[str, Module | None] = {}
        self._methods: dict[tuple[str, str], dict[str, FunctionNode]] = {}
        self._ancestry: dict[tuple[str, str], tuple[ClassRef, ...]] = {}
        self._beside_class: dict[tuple[str, str], list[ClassRef]] = {}
        self.failures: dict[str, str] = {}

    def with_attention(self) -> Program:
        """The same files, followed into attention backends too; what is parsed stays so."""
        wider = Program(self._paths, self._read, self.package, attention=True)
        wider._modules, wider._beside_class = dict(self._modules), dict(self._beside_class)
        return wider

    @property
    def loaded(self) -> Iterator[Module]:
        """The modules parsed so far."""
        return (module for module in self._modules.values() if module is not None)

    def path_of(self, name: str) -> str | None:
        """The file that defines a dotted module name, if the source has it."""
        stem = name.replace(".", "/")
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            if path in self._paths:
                return path
        return None

    def module(self, name: str) -> Module | None:
        """The module of that name; None when the source lacks it or it cannot be parsed."""
        if name not in self._modules:
            self._modules[name] = self._load(name)
        return self._modules[name]

    def _load(self, name: str) -> Module | None:
        path = self.path_of(name)
        if path is None:
            return None
        try:
            return parse_module(name, path, self._read(path))
        except SyntaxError as error:
            line = f" at line {error.lineno}" if error.lineno else ""
            self.failures[path] = f"syntax error{line}: {error.msg}"
        except (ValueError, OSError) as error:
            self.failures[path] = str(error)
        return None

    def siblings(self, package: str, containing: bytes = b"") -> Iterator[Module]:
        """The modules that lie directly in a package and whose bytes contain something."""
        for path in self._beside(package):
            if containing and not self._contains(path, containing):
                continue
            stem = path.removesuffix(".py").rpartition("/")[2]
            module = self.module(package if stem == "__init__" else f"{package}.{stem}")
            if module is not None:
                yield module

    def _contains(self, path: str, wanted: bytes) -> bool:
        try:
            return wanted in self._read(path)
        except OSError as error:
            self.failures[path] = str(error)
            return False

    def below(self, package: str, containing: bytes) -> Iterator[Module]:
        """The modules of a package and of all below it whose bytes contain something."""
        folder = package.replace(".", "/")
        for path in sorted(self._paths):
            inside = path.startswith(f"{folder}/") and path.endswith(".py")
            if inside and self._contains(path, containing):
                module = self.module(dotted_name(path))
                if module is not None:
                    yield module

    def sources(self, package: str) -> Iterator[tuple[str, bytes]]:
        """The files that lie directly in a package, by path, unparsed."""
        for path in self._beside(package):
            try:
                yield path, self._read(path)
            except OSError as error:
                self.failures[path] = str(error)

    def _beside(self, package: str) -> list[str]:
        folder = package.replace(".", "/") + "/"
        return sorted(
            path
            for path in self._paths
            if path.startswith(folder) and path.endswith(".py") and "/" not in path[len(folder) :]
        )

    def is_inside(self, name: str) -> bool:
        """Whether a module belongs to the package itself, not to one beside it."""
        return f"{name}.".startswith(f"{self.package}.")

    def is_outside(self, name: str) -> bool:
        """Whether a module lies in a part that is not followed."""
        parts = name.split(".")
        return any(".".join(parts[:end]) in self._outside for end in (2, 3, 4))

    def resolve(self, module: Module, name: str, hops: int = 0) -> Resolved | None:
        """What a bare name means at the top level of `module`."""
        if hops > MAX_HOPS:
            return None
        key = (module.name, name)
        if key not in self._names:
            # Entered before the look-up, so that names bound to each other end.
            self._names[key] = None
            self._names[key] = self._define(module, name, hops)
        return self._names[key]

    def _define(self, module: Module, name: str, hops: int) -> Resolved | None:
        bound = module.imports.get(name)
        if bound is not None and name in module.fallbacks:
            # What stands in for a failed import counts only where the import does fail.
            found = self.imported(bound.module, bound.attribute, hops)
            if found is not None:
                return found
        definition = module.definitions.get(name)
        if isinstance(definition, ast.ClassDef):
            return ClassRef(module, definition)
        if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
            return FunctionRef(module, definition)
        if isinstance(definition, ast.Assign | ast.AnnAssign):
            return self._alias(module, definition, name, hops)
        if bound is not None:
            return self.imported(bound.module, bound.attribute, hops)
        starred = (self.imported(star, name, hops + 1) for star in module.stars)
        return next((one for one in starred if one is not None), None)

    def meanings(self, module: Module, name: str) -> list[Resolved]:
        """All that a name may mean: in other branches, and in tables that hold functions."""
        first = self.resolve(module, name)
        found = [first] if first is not None else self._held(module, module.definitions.get(name))
        for other in module.others.get(name, ()):
            found += self._meaning(module, other)
        bound = module.imports.get(name)
        origin = self.module(bound.module) if bound and bound.attribute else None
        if origin is not None and bound is not None and bound.attribute is not None:
            for other in origin.others.get(bound.attribute, ()):
                found += self._meaning(origin, other)
            if first is None:
                found += self._held(origin, origin.definitions.get(bound.attribute))
        return found

    def put_beside(self, cls: ClassRef, other: ClassRef) -> None:
        """From here on, whoever names a class may get another one."""
        self._beside_class.setdefault(cls.key, []).append(other)

    def beside_class(self, cls: ClassRef) -> list[ClassRef]:
        """The classes that may stand in the place of one."""
        return self._beside_class.get(cls.key, [])

    def _meaning(self, module: Module, other: Definition | Import) -> list[Resolved]:
        if isinstance(other, Import):
            found = self.imported(other.module, other.attribute)
            return [found] if found is not None else []
        if isinstance(other, ast.ClassDef):
            return [ClassRef(module, other)]
        if isinstance(other, ast.FunctionDef | ast.AsyncFunctionDef):
            return [FunctionRef(module, other)]
        return self._held(module, other)

    def _held(self, module: Module, definition: Definition | None) -> list[Resolved]:
        """The functions and classes that a table, a lambda or a `partial` at top level mentions."""
        if not isinstance(definition, ast.Assign | ast.AnnAssign) or definition.value is None:
            return []
        if isinstance(definition.value, ast.Name | ast.Attribute):
            found = self.resolve_expression(module, definition.value)
            return [found] if isinstance(found, FunctionRef | ClassRef) else []
        if not isinstance(definition.value, _HOLDERS):
            return []
        named = (
            self.resolve_expression(module, node)
            for node in ast.walk(definition.value)
            if isinstance(node, ast.Name | ast.Attribute)
        )
        return [found for found in named if isinstance(found, FunctionRef | ClassRef)]

    def _alias(
        self, module: Module, definition: ast.Assign | ast.AnnAssign, name: str, hops: int
    ) -> Resolved | None:
        # `public_name = _private_name` and `kernel = triton.jit(body)`.
        value = definition.value
        if isinstance(value, ast.Call) and len(value.args) == 1:
            value = value.args[0]
        if isinstance(value, ast.Name | ast.Attribute):
            if isinstance(value, ast.Name) and value.id == name:
                return None
            return self.resolve_expression(module, value, hops + 1)
        return None

    def imported(self, base: str, attribute: str | None, hops: int = 0) -> Resolved | None:
        """What `import base` or `from base import attribute` binds."""
        if attribute is None:
            return ModuleRef(base)
        if self.is_outside(base):
            return None
        module = self.module(base)
        if module is not None:
            found = self.resolve(module, attribute, hops + 1)
            if found is not None:
                return found
        name = f"{base}.{attribute}"
        return ModuleRef(name) if self.path_of(name) else None

    def resolve_expression(
        self, module: Module, expression: ast.expr, hops: int = 0
    ) -> Resolved | None:
        """What a name or a dotted name means at the top level of `module`."""
        if isinstance(expression, ast.Name):
            return self.resolve(module, expression.id, hops)
        if not isinstance(expression, ast.Attribute) or hops > MAX_HOPS:
            return None
        base = self.resolve_expression(module, expression.value, hops + 1)
        return self.member(base, expression.attr, hops) if base else None

    def member(self, base: Resolved, name: str, hops: int = 0) -> Resolved | None:
        """The attribute of a module or class."""
        if isinstance(base, ModuleRef):
            return self.imported(base.name, name, hops)
        if isinstance(base, ClassRef):
            return self.method(base, name)
        return None

    def dotted(self, name: str) -> Resolved | None:
        """What a dotted string such as a `worker_cls` setting names."""
        base, _, attribute = name.replace(":", ".").rpartition(".")
        return self.imported(base, attribute) if base else None

    def ancestry(self, cls: ClassRef) -> tuple[ClassRef, ...]:
        """The class and its bases within the source, most derived first."""
        known = self._ancestry.get(cls.key)
        if known is None:
            # Entered before the recursion, so that a cyclic hierarchy ends.
            self._ancestry[cls.key] = (cls,)
            bases = list(self._bases(cls))
            lines = [list(self.ancestry(base)) for base in bases]
            known = (cls, *_merged([*lines, bases]))
            self._ancestry[cls.key] = known
        return known

    def _bases(self, cls: ClassRef) -> Iterator[ClassRef]:
        for base in cls.node.bases:
            expression = base.value if isinstance(base, ast.Subscript) else base
            found = self.resolve_expression(cls.module, expression)
            if isinstance(found, ClassRef) and found.key != cls.key:
                yield found

    def method(self, cls: ClassRef, name: str, after: ClassRef | None = None) -> FunctionRef | None:
        """The method that `name` finds on an instance, or past `after` as `super()` does."""
        line = self.ancestry(cls)
        if after is not None:
            keys = [ancestor.key for ancestor in line]
            line = line[keys.index(after.key) + 1 :] if after.key in keys else line
        for ancestor in line:
            node = self._methods_of(ancestor).get(name)
            if node is not None:
                return FunctionRef(ancestor.module, node, ancestor)
        return None

    def _methods_of(self, cls: ClassRef) -> dict[str, FunctionNode]:
        known = self._methods.get(cls.key)
        if known is None:
            known = self._methods[cls.key] = {}
            for node in cls.node.body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    known.setdefault(node.name, node)
        return known


def _merged(lines: list[list[ClassRef]]) -> Iterator[ClassRef]:
    """The bases in Python's method resolution order (C3); where there is none, as they come."""
    lines = [line for line in lines if line]
    while lines:
        heads = [line[0] for line in lines]
        later = {cls.key for line in lines for cls in line[1:]}
        best = next((head for head in heads if head.key not in later), heads[0])
        yield best
        lines = [[cls for cls in line if cls.key != best.key] for line in lines]
        lines = [line for line in lines if line]
