"""Tree verification inside a running vLLM; copied beside it as a package of its own.

It is loaded whole or not at all: a file that is not as it was put here could do half of its work,
with trees and without. The hooks in vLLM do nothing then, and refuse trees.
"""

from __future__ import annotations

import pathlib

from .files import damaged

_wrong = damaged(pathlib.Path(__file__).parent)
if _wrong:
    raise ImportError(f"not as it was put here: {', '.join(_wrong)}")
