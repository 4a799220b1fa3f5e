"""What a figure was taken on: the commit and the processor, without importing torch."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path


def commit() -> str:
    """The checkout's commit, with a remark if the tree differs from it."""

    def git(*words: str) -> str:
        here = Path(__file__).parent
        done = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return git("rev-parse", "--short=12", "HEAD") + (" with local changes" if changed else "")


def cpu_name() -> str:
    """The processor's model as Linux names it, else its architecture."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", info.read_text()) if info.is_file() else None
    return found.group(1).strip() if found else platform.machine()
