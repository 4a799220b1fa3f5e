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
        stand_ins: the operators of vLLM's compiled extension are the tests' own there.
    """

    test: str
    runner: str
    drafters: tuple[str, ...]
    releases: tuple[str, ...] = ()
    stand_ins: bool = False

    def ids(self) -> tuple[str, ...]:
        """What pytest calls the test, one name per release."""
        return tuple(f"{self.test}[{release}]" for release in self.releases) or (self.test,)


PROOFS = (
    Proof("tests/engine/test_drafters.py::test_block_drafter", "v1", ("dflash",)),
    Proof("tests/engine/test_drafters.py::test_draft_model", "v1", ("draft_model",)),
    Proof("tests/engine/test_drafters.py::test_heads", "v1", ("eagle", "mtp")),
    Proof("tests/engine/test_drafters.py::test_ngram", "v1", ("ngram",)),
    Proof(
        "tests/engine/test_trees.py::test_output_is_greedy_and_branches_are_accepted",
        "v1",
        ("custom_class",),
    ),
    Proof(
        "tests/engine/test_releases.py::test_trees_of_a_release",
        "v1",
        ("dflash", "custom_class"),
        ("0.27.1", "0.28.0", "0.29.0", "0.31.0"),
    ),
    Proof(
        "tests/engine/test_old_releases.py::test_drafters",
        "v1",
        ("draft_model", "ngram"),
        ("0.20.1",),
        stand_ins=True,
    ),
    Proof(
        "tests/engine/test_old_releases.py::test_oracle_trees",
        "v1",
        ("custom_class",),
        ("0.22.1", "0.23.0"),
        stand_ins=True,
    ),
    Proof("tests/engine/test_v2.py::test_block_drafter", "v2", ("dflash",)),
    Proof(
        "tests/engine/test_releases.py::test_trees_of_a_release_on_the_v2_runner",
        "v2",
        ("dflash",),
        ("0.27.1", "0.30.0", "0.31.0"),
    ),
    Proof("tests/engine/test_v2.py::test_draft_model", "v2", ("draft_model",)),
    Proof("tests/engine/test_v2.py::test_heads", "v2", ("eagle", "mtp")),
)
