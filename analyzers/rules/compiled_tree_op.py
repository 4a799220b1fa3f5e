"""A call to a compiled tree verifier: the walk is in a library, and source shows its name only."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.compiled import external_calls
from ..shapes.expressions import names
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

# Operators of SGLang's kernel library, FlashInfer's and their kin that walk a drafted tree.
VERIFIERS = frozenset(
    {
        "verify_tree_greedy",
        "verify_tree",
        "tree_speculative_sampling_target_only",
        "tree_speculative_sampling",
        "tree_verify",
        "tree_verify_greedy",
    }
)


class CompiledTreeOp(Rule):
    """The target's tokens are handed to a compiled operator that walks a tree.

    The body is machine code, so this is the one rule that goes by a name: of an operator that an
    extension module or `torch.ops` provides, not of anything that this package defines in Python.
    """

    stage = Stage.VERIFICATION
    supports = StageVerdict.TREE
    scope = Scope.LOGITS

    def gate(self, outline: Outline) -> bool:
        return bool(VERIFIERS & outline.called)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        for call, name in external_calls(view, VERIFIERS):
            yield self.at(
                view,
                call,
                f"hands the target's tokens to the compiled tree verifier `{name}`; "
                "its body is machine code",
                _given(call),
            )

    FOUND = (
        Example(
            """
def accept(out, tokens, child, sibling, target_ids):
    torch.ops._C.verify_tree_greedy(out, tokens, child, sibling, target_ids)
    return out
"""
        ),
        Example(
            """
def accept(out, tokens, child, sibling, target_probs, coins):
    from sgl_kernel import tree_speculative_sampling_target_only
    tree_speculative_sampling_target_only(out, tokens, child, sibling, coins, target_probs)
    return out
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def accept(out, tokens, target_probs):
    return chain_speculative_sampling(out, tokens, target_probs)
"""
        ),
        Example(
            """
def accept(out, tokens):
    torch.ops._C.verify_tree_greedy(out, tokens)
    return out
"""
        ),
        Example(
            """
def accept(self, out, target_ids):
    return self.verify_tree(out, target_ids)
"""
        ),
        Example(
            """
def accept(out, tokens, target_ids):
    def verify_tree(out, tokens, target_ids):
        out[:] = tokens == target_ids

    verify_tree(out, tokens, target_ids)
    return out
"""
        ),
        Example(
            """
def accept(verify_tree, out, tokens, target_ids):
    return verify_tree(out, tokens, target_ids)
"""
        ),
        Example(
            """
def accept(tokens, target_ids):
    return torch.ops.aten.tree_sum(tokens, target_ids)
"""
        ),
    )


def _given(call: cst.Call) -> frozenset[str]:
    """What the operator may write into."""
    return frozenset(name for argument in call.args for name in names(argument.value))
