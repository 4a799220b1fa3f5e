"""L3: the logits of tree nodes are those of their root paths, run alone as chains."""

from __future__ import annotations

from ..evidence import Evidence, Nodes, Truth
from ..report import Check, Outcome

# Largest difference of a logit, as a share of the largest logit.
TOLERANCE = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 6e-2}


def checks(evidence: Evidence, truth: Truth) -> tuple[Check, ...]:
    """The comparison, and that it notices what is left out."""
    tolerance = TOLERANCE.get(truth.dtype, TOLERANCE["float32"])
    if "oracle" in evidence.failures:
        return (Check("logits", Outcome.FAILED, evidence.failures["oracle"]),)
    return tuple(_check(one, tolerance) for one in evidence.nodes)


def _check(one: Nodes, tolerance: float) -> Check:
    share = one.worst / one.largest if one.largest else float("inf")
    said = (
        f"{one.nodes} nodes of {one.trees} trees differ by at most {share:.1e} of the largest logit"
    )
    limit = f"{tolerance:.0e} allowed, another best token at {one.others}"
    agrees = bool(one.trees) and share <= tolerance
    if one.without is None:
        return Check("logits", Outcome.PASSED if agrees else Outcome.FAILED, f"{said}, {limit}")
    name = f"without {one.without}"
    if not one.trees:
        return Check(name, Outcome.FAILED, "no tree was verified", vacuous=True)
    # What has to go wrong and does not would make the comparison above worthless.
    if agrees:
        detail = f"{said}, and have to differ more, so this proves nothing: {limit}"
        return Check(name, Outcome.FAILED, detail, vacuous=True)
    return Check(name, Outcome.PASSED, f"{said}, as it has to be")
