"""A call to a compiled chain verifier."""

from __future__ import annotations

from collections.abc import Iterator

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.compiled import external_calls
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

VERIFIERS = frozenset({"chain_speculative_sampling"})


class CompiledChainOp(Rule):
    """The target's probabilities are handed to a compiled operator that samples along a chain.

    FlashInfer's `chain_speculative_sampling` is the fused form of the first-rejection search.
    """

    stage = Stage.VERIFICATION
    supports = StageVerdict.LINEAR
    scope = Scope.LOGITS

    def gate(self, outline: Outline) -> bool:
        return bool(VERIFIERS & outline.called)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        for call, name in external_calls(view, VERIFIERS):
            yield self.at(
                view, call, f"hands the target's probabilities to the chain verifier `{name}`"
            )

    FOUND = (
        Example(
            """
def accept(out, tokens, target_probs):
    return chain_speculative_sampling(out, tokens, target_probs)
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def accept(out, tokens, target_probs):
    return torch.ops._C.verify_tree_greedy(out, tokens, target_probs)
"""
        ),
        Example(
            """
def accept(out, tokens):
    return chain_speculative_sampling(out, tokens)
"""
        ),
    )
