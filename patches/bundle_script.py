"""Patch a vLLM from this bundle, or give its bytes back: python apply.py [SITE] [--revert]

SITE is the folder that holds `vllm`; without it, the site-packages of the running interpreter.
Needs nothing but Python. Nothing is written unless every file is exactly what it was before the
patch or what the patch makes of it, so that the same command also finishes what was interrupted.
Until the last step, hooks do nothing. It does not look for running processes.

Exit codes: 0 done, or nothing to do; 2 usage; 3 no vLLM there; 4 files differ, refused; 5 failed,
and every byte is as it was before; 6 stopped half-way, run it again; 130 interrupted.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
STAGING = ".ddtree-bundle"
_ACL = "system.posix_acl_access"


def main() -> int:
    """Run the command line; the exit code."""
    words = [word for word in sys.argv[1:] if word != "--revert"]
    if len(words) > 1 or any(word.startswith("-") for word in words):
        return _say(2, __doc__ or "")
    site = Path(words[0] if words else sysconfig.get_path("purelib")).resolve()
    if not (site / "vllm" / "__init__.py").is_file():
        return _say(3, f"error: {site} holds no vllm")
    want = "old" if "--revert" in sys.argv else "new"
    try:
        plan = json.loads((HERE / "plan.json").read_bytes())
        with _locked(site / "vllm"):
            return _bring(site, plan, want)
    except BlockingIOError:
        return _say(4, f"error: something else is changing {site / 'vllm'}")
    except (OSError, ValueError) as error:
        return _say(5, f"error: {error}; nothing was written")
    except KeyboardInterrupt:
        return _say(130, "interrupted; run it again to finish, or with --revert to go back")


def _bring(site: Path, plan: dict[str, Any], want: str) -> int:
    wrong = [*_damaged(plan), *_unexpected(site, plan, want)]
    if wrong:
        return _say(4, f"error: not as expected: {', '.join(wrong)}")
    if _is(site, plan, want):
        return _swept(site, plan, 0, "nothing to do")
    try:
        _stage(site, plan, want)
    except OSError as error:
        return _swept(site, plan, 5, f"error: {error}; every byte is as it was before")
    try:
        _activate(site, plan, want)
    except OSError as error:
        return _failed(site, plan, want, error)
    return _say(0, f"plan {plan['plan']}: {'patched' if want == 'new' else 'reverted'}")


def _swept(site: Path, plan: dict[str, Any], code: int, text: str) -> int:
    try:
        _sweep(site, plan)
    except OSError as error:
        return _say(6, f"error: {error}; unused files are left; run it again to remove them")
    return _say(code, text)


def _failed(site: Path, plan: dict[str, Any], want: str, error: OSError) -> int:
    again = "run it again to finish; until then, vLLM runs as if it were not patched"
    if want == "old":
        return _say(6, f"error: {error}; {again}")
    try:
        _stage(site, plan, "old")
        _activate(site, plan, "old")
    except OSError as second:
        return _say(6, f"error: {error}; and then: {second}; run it with --revert to go back")
    return _say(5, f"error: {error}; every byte is as it was before")


def _stage(site: Path, plan: dict[str, Any], want: str) -> None:
    """Write everything that is missing under other names, where nothing looks for it."""
    _sweep(site, plan)
    _make_folder(site / STAGING, site / "vllm")
    for edit in plan["edits"]:
        path = _real(site, edit["file"])
        if _hash(path) != edit[want]:
            _write(_scratch(path), (HERE / want / edit["file"]).read_bytes(), path)
            _sync(path.parent)
    missing = [top for top in plan["tops"] if want == "new" and not (site / top).exists()]
    for name in plan["beside"]:
        if name.partition("/")[0] in missing:
            path = site / STAGING / name
            _make_folder(path.parent, site / "vllm")
            _write(path, (HERE / "beside" / name).read_bytes(), site / "vllm" / "__init__.py")
    for folder, _, _ in os.walk(site / STAGING):
        _sync(Path(folder))


def _activate(site: Path, plan: dict[str, Any], want: str) -> None:
    if want == "old":
        # The runtime goes first: without it, every hook does nothing.
        for top in reversed(plan["tops"]):
            if (site / top).exists():
                _rename(site / top, site / STAGING / top)
    for edit in plan["edits"]:
        path = _real(site, edit["file"])
        if _scratch(path).exists():
            _rename(_scratch(path), path)
        for old in _compiled(path):
            old.unlink()
    if want == "new":
        for top in plan["tops"]:
            if (site / STAGING / top).exists():
                _rename(site / STAGING / top, site / top)
    _sweep(site, plan)


def _sweep(site: Path, plan: dict[str, Any]) -> None:
    """Remove what is left of a change; its folder comes first and goes last, so it says so."""
    if not (site / STAGING).exists():
        return
    for edit in plan["edits"]:
        path = _real(site, edit["file"])
        for old in (_scratch(path), *_compiled(path)):
            with suppress(FileNotFoundError):
                old.unlink()
    shutil.rmtree(site / STAGING)


def _damaged(plan: dict[str, Any]) -> Iterator[str]:
    """Files of this bundle that are not what its plan says."""
    wanted = {
        f"{kind}/{edit['file']}": edit[kind] for edit in plan["edits"] for kind in ("old", "new")
    }
    wanted.update({f"beside/{name}": digest for name, digest in plan["beside"].items()})
    yield from (f"{HERE / name}" for name, digest in wanted.items() if _hash(HERE / name) != digest)


def _unexpected(site: Path, plan: dict[str, Any], want: str) -> Iterator[str]:
    """Files of the site that are neither as before the patch nor as after it."""
    for edit in plan["edits"]:
        path = _real(site, edit["file"])
        if path.is_symlink():
            yield f"{path} (a symbolic link, which could not be given back)"
        elif _hash(path) not in (edit["old"], edit["new"]):
            yield edit["file"]
    for name, digest in plan["beside"].items():
        there = (site / name.partition("/")[0]).exists()
        # What pip has removed of the runtime is half of what a revert wants.
        allowed = (digest, "") if want == "old" else (digest,)
        if there and _hash(site / name) not in allowed:
            yield name
    for top in plan["tops"]:
        for path in (site / top).rglob("*"):
            name = path.relative_to(site).as_posix()
            if not path.is_dir() and path.suffix != ".pyc" and name not in plan["beside"]:
                yield name


def _is(site: Path, plan: dict[str, Any], want: str) -> bool:
    present = [(site / top).exists() for top in plan["tops"]]
    hashes = [_hash(_real(site, edit["file"])) == edit[want] for edit in plan["edits"]]
    return all(hashes) and all(there == (want == "new") for there in present)


def _write(path: Path, data: bytes, like: Path) -> None:
    with path.open("xb") as handle:
        handle.write(data)
        handle.flush()
        found = like.stat()
        if (os.geteuid(), os.getegid()) != (found.st_uid, found.st_gid):
            os.chown(path, found.st_uid, found.st_gid)
        if (
            hasattr(os, "listxattr")
            and _ACL in os.listxattr(path)
            and _ACL not in os.listxattr(like)
        ):
            # The folder gives one to every new file.
            os.removexattr(path, _ACL)
        shutil.copystat(like, path)
        # The time of the old file would let Python take old bytecode for new.
        os.utime(path)
        os.fsync(handle.fileno())


def _make_folder(path: Path, like: Path) -> None:
    if path.is_dir():
        return
    _make_folder(path.parent, like)
    path.mkdir()
    found = like.stat()
    os.chown(path, found.st_uid, found.st_gid)
    path.chmod(stat.S_IMODE(found.st_mode))


def _rename(old: Path, new: Path) -> None:
    old.replace(new)
    for folder in {old.parent, new.parent}:
        _sync(folder)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _scratch(path: Path) -> Path:
    return path.with_name(f".{path.name}{STAGING}")


def _compiled(path: Path) -> Iterator[Path]:
    folders = [path.parent / "__pycache__"]
    if sys.pycache_prefix:
        folders.append(Path(sys.pycache_prefix).absolute() / path.parent.relative_to("/"))
    for folder in folders:
        yield from folder.glob(f"{path.stem}.*.pyc")


def _real(site: Path, file: str) -> Path:
    # The folders are resolved, the file is not.
    return (site / file).parent.resolve() / Path(file).name


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _say(code: int, text: str) -> int:
    print(text, file=sys.stderr if code else sys.stdout)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
