"""The hand-written inputs by name: a new file in the folder is a new test."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def _texts(folder: str) -> dict[str, str]:
    files = sorted((_HERE / folder).glob("*.py"))
    return {file.stem: file.read_text() for file in files if file.stem != "__init__"}


POSITIVES = _texts("positives")
# Decide on acceptance along a chain, in words that sound like trees.
LINEAR = _texts("negatives/linear")
# Decide in a way that cannot be read from the code, or that is neither chain nor tree.
UNCLEAR = _texts("negatives/unclear")
# Stand beside a stock verifier that does not use them.
BESIDE = _texts("negatives/beside")
NEGATIVES = LINEAR | UNCLEAR
# Drafters of a tiny engine: those that propose trees, and such as rank, merge or schedule.
TREE_DRAFTERS = _texts("drafters/trees")
OTHER_DRAFTERS = _texts("drafters/others")
