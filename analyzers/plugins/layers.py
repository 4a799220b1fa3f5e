"""What plug-ins put around the attention of layers, whose implementations are objects.

An operator keeps the function that it was made of, so that a plug-in cannot take its place. It can
take that of what the operator calls: `layer.impl.forward = partial(mine, layer.impl.forward)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..program.evaluate import Evaluator
from ..program.module import FunctionNode, Module
from ..program.program import FunctionRef, Program
from ..program.reach import Reach
from ..program.receivers import Receivers
from ..program.values import Closure
from ..program.wrappers import Wrap, bound

# Where the layers of attention are, below the engine's package.
_LAYERS = "model_executor.layers.attention"


def layer_wraps(
    program: Program, receivers: Receivers, wraps: Iterable[Wrap], package: str
) -> Iterator[tuple[FunctionRef, Wrap]]:
    """Functions that call what a layer holds, and what runs there.

    Args:
        program: the code.
        receivers: the types of its expressions.
        wraps: what runs in place of functions of the engine; what it reaches is looked through.
        package: the name of the engine's package.
    """
    evaluator = Evaluator(program)
    reach = Reach(program, receivers)
    reach.run((wrap.function, None) for wrap in wraps)
    for function in (reached.function for reached in reach.functions):
        own = not program.is_inside(function.module.name)
        for target, value in _stored(function.node) if own else ():
            found = evaluator.expression(function.module, value, {})
            closures = [one for one in found if isinstance(one, Closure)]
            for caller in _callers(program, target, package) if closures else ():
                for closure in closures:
                    yield caller, _wrap(closure, caller)


def _stored(function: FunctionNode) -> Iterator[tuple[ast.Attribute, ast.Call]]:
    """What is made of an attribute of an attribute, and takes its place."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Attribute()) as target], value=ast.Call() as value
            ):
                if ast.unparse(target) in map(ast.unparse, value.args):
                    yield target, value


def _callers(program: Program, target: ast.Attribute, package: str) -> Iterator[FunctionRef]:
    holder = target.value.attr if isinstance(target.value, ast.Attribute) else ""
    called = f".{holder}.{target.attr}"
    for module in program.below(f"{package}.{_LAYERS}", f"{called}(".encode()):
        yield from _calling(module, called)


def _calling(module: Module, called: str) -> Iterator[FunctionRef]:
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef):
            calls = (one for one in ast.walk(node) if isinstance(one, ast.Call))
            if any(ast.unparse(one.func).endswith(called) for one in calls):
                yield FunctionRef(module, node)


def _wrap(closure: Closure, caller: FunctionRef) -> Wrap:
    # Its arguments are not the caller's own. It is shown where the caller is defined.
    site = ast.copy_location(ast.Name(caller.node.name, ast.Load()), caller.node)
    return Wrap(bound(closure.function, dict(closure.names), caller), site, ())
