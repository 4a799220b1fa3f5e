"""A real podman with storage of its own, and an image of this interpreter and a vLLM's files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import wheels

from .. import releases

IMAGE = "localhost/ddtree-test"
ENVIRONMENT = "/opt/vllm"
# What a machine without special rights for containers allows.
LIMITS = ("--network=none", "--ulimit", "nofile=10000:10000", "--ulimit", "nproc=4000:4000")
# Every path of the site: mode, owner, where a link leads or what a file holds.
DIGEST = """
import hashlib, json, os, sys
found = {}
for folder, folders, files in os.walk(sys.argv[1]):
    folders[:] = [one for one in folders if one != "__pycache__"]
    for name in folders + files:
        path = os.path.join(folder, name)
        stat = os.lstat(path)
        what = ""
        if os.path.islink(path):
            what = os.readlink(path)
        elif os.path.isfile(path):
            what = hashlib.sha256(open(path, "rb").read()).hexdigest()
        found[path] = [stat.st_mode, stat.st_uid, stat.st_gid, what]
print(json.dumps(found, sort_keys=True))
"""


@dataclass(frozen=True, slots=True)
class Podman:
    """The program, told where to keep what it stores."""

    variables: Mapping[str, str]

    def __call__(self, *words: str, stdin: bytes | None = None) -> str:
        """Run a command of it; its output."""
        done = subprocess.run(
            ["podman", *words],
            input=stdin,
            capture_output=True,
            check=False,
            env={**os.environ, **self.variables},
        )
        assert done.returncode == 0, (words, done.stderr.decode(errors="replace"))
        return done.stdout.decode()

    @contextmanager
    def container(self, image: str = IMAGE, *more: str) -> Iterator[str]:
        """A running container that does nothing; its name."""
        sleep = "import time; time.sleep(86400)"
        name = self("run", "-d", *LIMITS, *more, image, python(), "-c", sleep).strip()
        try:
            yield name
        finally:
            self("rm", "-f", "-t", "0", name)

    def digest(self, name: str, site: str | None = None) -> dict[str, object]:
        """What there is to know of every path of the site in a container."""
        command = (python(), "-I", "-c", DIGEST, site or site_packages())
        found: dict[str, object] = json.loads(self("exec", name, *command))
        return found

    def first(self, name: str) -> int:
        """The first process of a container, by its number here; the others end with it."""
        return int(self("inspect", "--format", "{{.State.Pid}}", name))

    def root(self, name: str) -> Path:
        """The root of a container's files, here."""
        return Path(self("mount", name).strip())

    def restart(self, name: str, first: int | None = None) -> None:
        """Kill a container with all that runs in it, and start it again.

        Args:
            first: its first process, where there is no time to ask.
        """
        os.kill(first or self.first(name), signal.SIGKILL)
        self("wait", name)
        self("start", name)


def python() -> str:
    """The interpreter's path, which is the same in the containers."""
    return os.path.realpath(sys.executable)


def site_packages() -> str:
    """Where the image's vLLM lies."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return f"{ENVIRONMENT}/lib/{version}/site-packages"


@contextmanager
def started(root: Path) -> Iterator[Podman]:
    """A podman below `root` that has the image."""
    for program in ("podman", "runc"):
        if shutil.which(program) is None:
            wheels.unavailable(f"{program} is missing; install the packages podman and runc")
    if os.geteuid() != 0:
        wheels.unavailable("only root can run these containers")
    root.mkdir()
    storage = f'driver = "vfs"\ngraphroot = "{root}/graph"\nrunroot = "{root}/run"\n'
    (root / "storage.conf").write_text(f"[storage]\n{storage}")
    engine = 'runtime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
    (root / "containers.conf").write_text(f"[engine]\n{engine}")
    podman = Podman(
        {
            "CONTAINERS_STORAGE_CONF": str(root / "storage.conf"),
            "CONTAINERS_CONF": str(root / "containers.conf"),
        }
    )
    _fill(root / "root")
    packed = subprocess.run(
        ["tar", "-C", str(root / "root"), "-c", "."], capture_output=True, check=True
    )
    podman("import", "-", IMAGE, stdin=packed.stdout)
    shutil.rmtree(root / "root")
    try:
        yield podman
    finally:
        podman("rm", "-f", "-a", "-t", "0")
        shutil.rmtree(root / "graph")


def _fill(root: Path) -> None:
    """A root file system with a shell, Python, and an environment with an unpacked vLLM."""
    for folder in ("tmp", "proc", "sys", "dev", "etc", "root", "usr/local/bin"):
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    for name in ("bin", "lib", "lib64"):
        # As here, or what is mounted in the place of one would hide another.
        if Path(f"/{name}").is_symlink():
            link = Path(f"/{name}").readlink()
            (root / link).mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(link)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    stdlib = sysconfig.get_path("stdlib")
    left_out = ("test", "tests", "site-packages", "__pycache__", "idlelib", "tkinter", "ensurepip")
    shutil.copytree(stdlib, _in(root, stdlib), ignore=shutil.ignore_patterns(*left_out))
    programs = [python(), *filter(None, map(shutil.which, ("sh", "head")))]
    for program in programs:
        _copy(root, program)
    for binary in (*programs, *map(str, Path(stdlib).glob("lib-dynload/*.so"))):
        _copy_libraries(root, binary)
    (root / "usr/local/bin/python3").symlink_to(python())
    environment = _in(root, ENVIRONMENT)
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python3").symlink_to(python())
    (environment / "pyvenv.cfg").write_text(f"home = {Path(python()).parent}\n")
    shutil.copytree(releases.tree("0.32.0"), _in(root, site_packages()), symlinks=True)


def _in(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _copy(root: Path, path: str) -> None:
    place = _in(root, path)
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(os.path.realpath(path), place)


def _copy_libraries(root: Path, binary: str) -> None:
    done = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False)
    for word in done.stdout.split():
        if word.startswith("/"):
            _copy(root, word)


def ddtree(podman: Podman, *words: Sequence[str] | str) -> subprocess.CompletedProcess[str]:
    """Run the command of this checkout, for which that podman is the only one."""
    return subprocess.run(command(*words), capture_output=True, text=True, check=False,
                          env={**os.environ, **podman.variables})  # fmt: skip


def command(*words: Sequence[str] | str) -> list[str]:
    """The words of a command line of this checkout."""
    return [sys.executable, "-m", "ddtree", *map(str, words)]
