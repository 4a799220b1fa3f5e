"""Which engine tests run which drafter's trees on which model runner: the matrix's `run` cells.

A test of `test_matrix.py` looks every one up among the tests that exist.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Proof:
    """One test that compares the output of trees with greedy decoding in a real engine.

    Attributes:
        test: its file and name, without parameters.
        runner: `v1` or `v2`.
        drafters: whose trees it runs.
        releases: those that it is parametrised with; the one of the engine environment if none.
        stand_ins: the compiled extension is another release's there, or its operators are the
            tests' own.
    """

    test: str
    runner: str
    drafters: tuple[str, ...]
    releases: tuple[str, ...] = ()
    stand_ins: bool = False

    def ids(self) -> tuple[str, ...]:
        """What pytest calls the test, one name per release."""
        return tuple(f"{self.test}[{release}]" for release in self.releases) or (self.test,)


TREES = "tests/engine/test_releases.py::test_trees_of_a_release"
DRAFTERS = "tests/engine/test_releases.py::test_drafters_of_a_release"
OLD_DRAFTERS = "tests/engine/test_old_releases.py::test_drafters"
HEADS = ("eagle", "mtp")
LATE = ("draft_model", *HEADS, "ngram")
# Releases that were compiled for another torch, and have hooks in both runners.
STAND_INS = ("0.24.0", "0.25.0", "0.25.1", "0.26.0")
# Those whose engines run as they are: V1 of 0.30.0 fails by itself.
V1 = ("0.27.0", "0.27.1", "0.28.0", "0.29.0", "0.31.0")
V2 = (*V1, "0.30.0")
PROOFS = (
    Proof("tests/engine/test_drafters.py::test_block_drafter", "v1", ("dflash",)),
    Proof("tests/engine/test_drafters.py::test_draft_model", "v1", ("draft_model",)),
    Proof("tests/engine/test_drafters.py::test_heads", "v1", HEADS),
    Proof("tests/engine/test_drafters.py::test_ngram", "v1", ("ngram",)),
    Proof(
        "tests/engine/test_trees.py::test_output_is_greedy_and_branches_are_accepted",
        "v1",
        ("custom_class",),
    ),
    Proof(TREES, "v1", ("dflash", "custom_class"), V1),
    Proof(TREES, "v1", ("dflash", "custom_class"), ("0.33.0",), stand_ins=True),
    Proof(DRAFTERS, "v1", LATE, V1),
    Proof(DRAFTERS, "v1", LATE, ("0.33.0",), stand_ins=True),
    Proof(OLD_DRAFTERS, "v1", ("draft_model", "ngram"), ("0.20.1",), stand_ins=True),
    Proof(OLD_DRAFTERS, "v1", LATE, ("0.22.1", "0.23.0", *STAND_INS), stand_ins=True),
    Proof(OLD_DRAFTERS, "v1", ("dflash",), ("0.25.0", "0.25.1", "0.26.0"), stand_ins=True),
    Proof(
        "tests/engine/test_old_releases.py::test_oracle_trees",
        "v1",
        ("custom_class",),
        ("0.22.1", "0.23.0", *STAND_INS),
        stand_ins=True,
    ),
    Proof("tests/engine/test_v2.py::test_block_drafter", "v2", ("dflash",)),
    Proof("tests/engine/test_v2.py::test_draft_model", "v2", ("draft_model",)),
    Proof("tests/engine/test_v2.py::test_heads", "v2", HEADS),
    Proof(f"{TREES}_on_the_v2_runner", "v2", ("dflash",), V2),
    Proof(f"{TREES}_on_the_v2_runner", "v2", ("dflash",), ("0.33.0",), stand_ins=True),
    Proof(f"{DRAFTERS}_on_the_v2_runner", "v2", HEADS, V2),
    Proof(f"{DRAFTERS}_on_the_v2_runner", "v2", HEADS, ("0.33.0",), stand_ins=True),
    Proof(f"{DRAFTERS}_on_the_v2_runner", "v2", ("draft_model",), ("0.31.0",)),
    Proof(f"{DRAFTERS}_on_the_v2_runner", "v2", ("draft_model",), ("0.33.0",), stand_ins=True),
    Proof(
        "tests/engine/test_old_releases.py::test_drafters_on_the_v2_runner",
        "v2",
        ("dflash", *HEADS),
        STAND_INS,
        stand_ins=True,
    ),
)
