"""Whether there is a screen to draw on; decided without rich, which plain output never loads."""

from __future__ import annotations

import os
import sys


def wanted() -> bool:
    """True when stdout is a terminal, or when FORCE_COLOR asks to treat it as one."""
    forced = bool(os.environ.get("FORCE_COLOR"))
    return sys.stdout is not None and (forced or sys.stdout.isatty())
