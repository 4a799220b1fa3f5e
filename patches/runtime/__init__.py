"""What travels into an installed vLLM: trees are drafted, masked, walked and committed by this.

It is imported whole or not at all: a file that is not as it was put here would do half of its work,
with trees and without, so the import fails then, and the hooks in vLLM stay stock.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import pathlib


def _refuse_damage(package: pathlib.Path) -> None:
    """Compare the files of the package with the RECORD beside it; where there is none, do nothing.

    Raises:
        ImportError: a file is gone or another one.
        OSError: a file cannot be read.
    """
    records = sorted(package.parent.glob(f"{package.name}-*.dist-info/RECORD"))
    for record in records[:1]:
        with record.open(newline="", encoding="utf-8") as lines:
            for path, digest, _ in csv.reader(lines):
                # The package's own files; of the metadata, nothing runs.
                if path.startswith(f"{package.name}/"):
                    data = (package.parent / path).read_bytes()
                    found = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
                    if digest != f"sha256={found.rstrip(b'=').decode()}":
                        raise ImportError(f"{path} is not as it was put here")


_refuse_damage(pathlib.Path(__file__).parent)
