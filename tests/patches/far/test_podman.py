"""Real containers: all that an operator does to the vLLM in one, and kills of it meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddtree.patches import perform
from tests.engine import environment, installs

from .. import releases
from . import podman as pod
from .podman import Podman, ddtree

pytestmark = pytest.mark.extended
KILLS = 5


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    with pod.started(tmp_path_factory.mktemp("podman") / "storage") as running:
        yield running


@pytest.fixture
def container(podman: Podman) -> Iterator[str]:
    with podman.container() as name:
        yield name


def at(container: str) -> str:
    return f"podman://{container}"


def said(podman: Podman, code: int, *words: str) -> str:
    done = ddtree(podman, *words)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def verdict(podman: Podman, container: str) -> str:
    out = said(podman, 0, "inspect", "host", at(container), "--format", "json")
    return str(json.loads(out)["verdict"])


def test_inspect_plan_apply_status_and_revert(podman: Podman, container: str) -> None:
    target = at(container)
    before = podman.digest(container)
    assert verdict(podman, container) == "linear"
    plan = said(podman, 0, "patch", target)
    assert "nothing was written" in plan
    assert podman.digest(container) == before

    assert "applied: plan" in said(podman, 0, "patch", target, "--apply", "--yes")
    assert podman.digest(container) != before
    assert "status: applied:" in said(podman, 0, "patch", target, "--status")
    assert verdict(podman, container) == "tree"
    assert "byte for byte" in said(podman, 0, "patch", target, "--revert", "--yes")
    assert podman.digest(container) == before
    assert verdict(podman, container) == "linear"


def test_kills_of_the_container_during_an_apply(podman: Podman, container: str) -> None:
    """Whenever it ends, the next command finds the old or the new: the journal is in there."""
    target = at(container)
    known = {"stock": podman.digest(container)}
    said(podman, 0, "patch", target, "--apply", "--yes")
    known["applied"] = podman.digest(container)
    said(podman, 0, "patch", target, "--revert", "--yes")

    journals = podman.root(container) / "root/.local/state/ddtree/installs"
    codes = []
    for kill in range(KILLS):
        first = podman.first(container)
        command = pod.command("patch", target, "--apply", "--yes")
        variables = {**os.environ, **podman.variables}
        with subprocess.Popen(
            command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            # The journal comes before the first byte that changes.
            while not any(journals.iterdir()):
                assert process.poll() is None
            time.sleep(0.1 * kill)
            podman.restart(container, first)
            process.communicate()
        codes.append(process.returncode)
        done = ddtree(podman, "patch", target, "--status", "--format", "json")
        state = json.loads(done.stdout)["status"]["state"]
        assert podman.digest(container) == known[state]
        if state == "applied":
            said(podman, 0, "patch", target, "--revert", "--yes")
        assert podman.digest(container) == known["stock"]
    # Whether it was done is not known here.
    assert 6 in codes
    assert set(codes) <= {0, 6}


def test_a_bundle_in_an_image_build(podman: Podman, tmp_path: Path) -> None:
    """Made here of a wheel's files, applied by the image's Python, and known to who asks there."""
    perform.bundle(perform.Options(str(releases.tree("0.32.0"))), tmp_path / "bundle")
    plan = json.loads((tmp_path / "bundle" / "plan.json").read_text())["plan"]
    run = f'RUN ["{pod.python()}", "/bundle/apply.py", "{pod.ENVIRONMENT}"]\n'
    (tmp_path / "Containerfile").write_text(f"FROM {pod.IMAGE}\nCOPY bundle /bundle\n{run}")
    image = "localhost/ddtree-patched"
    out = podman("build", *pod.LIMITS, "-t", image, str(tmp_path))
    assert f"plan {plan}: patched" in out

    with podman.container() as stock, podman.container(image) as patched:
        before = podman.digest(stock)
        assert podman.digest(patched) != before
        status = said(podman, 0, "patch", at(patched), "--status")
        assert f"status: applied: Patched with plan {plan}." in status
        assert verdict(podman, patched) == "tree"
        undo = (pod.python(), "/bundle/apply.py", pod.ENVIRONMENT, "--revert")
        assert "reverted" in podman("exec", patched, *undo)
        assert podman.digest(patched) == before


def test_a_container_that_is_killed_while_it_is_verified(podman: Podman, tmp_path: Path) -> None:
    """The command ends and says so; the patch is what it was, and can be verified again."""
    python = installs.patched(environment.engine_python(), tmp_path / "env")
    shared = environment.engine_python().parents[1]
    # What is needed beside the environment, at the same paths: its links lead there.
    host = ["/usr", "/bin", "/lib", "/lib64", str(shared), sys.base_prefix]
    mounts = [f"-v={path}:{path}:ro" for path in host if not Path(path).is_symlink()]
    mounts += ["-v", f"{tmp_path}/env:{tmp_path}/env", "--shm-size", "1g"]
    site = str(environment.site_packages(python) / "vllm")
    with podman.container(pod.IMAGE, *mounts) as name:
        before = podman.digest(name, site)
        words = ("verify", at(name), "--python", str(tmp_path / "env"), "--level")
        with subprocess.Popen(
            pod.command(*words, "L5"),
            env={**os.environ, **podman.variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            until = time.monotonic() + 300
            # What the first engine decoded.
            while not list(podman.root(name).glob("tmp/ddtree-verify-*/truth.json")):
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.5)
            podman.restart(name)
            out, err = process.communicate(timeout=120)
        assert process.returncode in (3, 5), out + err
        assert err.startswith("error: ") or "\nerror: " in err
        assert podman.digest(name, site) == before
        assert "passed" in said(podman, 0, *words, "L1")
