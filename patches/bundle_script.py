"""Patch a vLLM from this bundle, or give its bytes back: python apply.py [SITE] [--revert]

SITE is the folder that holds `vllm`; without it, the site-packages of the running interpreter.
Needs nothing but Python. Nothing is written unless every file is exactly the expected one. Exit
codes: 0 done, or nothing to do; 2 usage; 3 no vLLM there; 4 files differ, refused; 5 failed and
rolled back.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MARK = ".ddtree-bundle"


def main() -> int:
    """Run the command line; the exit code."""
    words = [word for word in sys.argv[1:] if word != "--revert"]
    if len(words) > 1 or any(word.startswith("-") for word in words):
        return _say(2, __doc__ or "")
    site = Path(words[0] if words else sysconfig.get_path("purelib")).resolve()
    if not (site / "vllm" / "__init__.py").is_file():
        return _say(3, f"error: {site} holds no vllm")
    plan = json.loads((HERE / "plan.json").read_bytes())
    have, want = ("new", "old") if "--revert" in sys.argv else ("old", "new")
    found = {edit["file"]: _hash(_real(site, edit["file"])) for edit in plan["edits"]}
    present = [top for top in plan["tops"] if (site / top).exists()]
    done = plan["tops"] if want == "new" else []
    if present == done and all(found[edit["file"]] == edit[want] for edit in plan["edits"]):
        return _say(0, "nothing to do")
    wrong = [edit["file"] for edit in plan["edits"] if found[edit["file"]] != edit[have]]
    wrong += present if want == "new" else _foreign(site, plan)
    if wrong:
        return _say(4, f"error: not as expected: {', '.join(wrong)}")
    try:
        _change(site, plan, want)
    except BaseException as error:
        _change(site, plan, have)
        if not isinstance(error, OSError):
            raise
        return _say(5, f"error: {error}; every byte is as it was before")
    return _say(0, f"plan {plan['plan']}: {'patched' if want == 'new' else 'reverted'}")


def _change(site: Path, plan: dict[str, Any], want: str) -> None:
    if want == "old":
        for top in reversed(plan["tops"]):
            _remove(site / top)
    for edit in plan["edits"]:
        path = _real(site, edit["file"])
        if _hash(path) != edit[want]:
            _replace(path, (HERE / want / edit["file"]).read_bytes())
        for old in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            old.unlink()
    if want == "new":
        for top in plan["tops"]:
            _remove(site / f"{MARK}-{top}")
            shutil.copytree(HERE / "beside" / top, site / f"{MARK}-{top}")
            (site / f"{MARK}-{top}").rename(site / top)
    for top in plan["tops"]:
        _remove(site / f"{MARK}-{top}")


def _replace(path: Path, data: bytes) -> None:
    scratch = path.with_name(f"{path.name}{MARK}")
    found = path.stat()
    with scratch.open("wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
    if (os.geteuid(), os.getegid()) != (found.st_uid, found.st_gid):
        os.chown(scratch, found.st_uid, found.st_gid)
    shutil.copystat(path, scratch)
    # The time of the old file would let Python take old bytecode for new.
    os.utime(scratch)
    scratch.replace(path)


def _remove(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)


def _foreign(site: Path, plan: dict[str, Any]) -> list[str]:
    wanted = plan["beside"].items()
    return [path for path, digest in wanted if _hash(site / path) not in (digest, "")]


def _real(site: Path, file: str) -> Path:
    # The folders are resolved, the file is not: a link is replaced, never written through.
    return (site / file).parent.resolve() / Path(file).name


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _say(code: int, text: str) -> int:
    print(text, file=sys.stderr if code else sys.stdout)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
