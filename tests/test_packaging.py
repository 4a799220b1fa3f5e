"""What a user installs: the wheel, the source distribution and the editable install."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from ddtree import __version__
from tests import checkout

# Files of the four folders that are no Python and belong into the wheel.
DATA = ("cli/schema/", "kernels/tree/", "patches/verify/models/")
SUFFIXES = (".json", ".md", ".safetensors")
# Imports every module of the installed package, and prints where each came from.
IMPORT_ALL = """
import importlib, pkgutil, sys
import ddtree
for found in pkgutil.walk_packages(ddtree.__path__, "ddtree."):
    if found.name != "ddtree.__main__" and not found.name.startswith("ddtree.patches.runtime"):
        module = importlib.import_module(found.name)
        print(found.name, module.__file__)
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a process to its end, away from the checkout's own package; its standard output."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(source: Path, kind: str, out: Path) -> Path:
    """Build one distribution with the hatchling that is here, so that no network is needed."""
    out.mkdir()
    arguments = ("--no-isolation", f"--{kind}", "--outdir", out, source)
    run(sys.executable, "-P", "-m", "build", *arguments, cwd=out)
    (built,) = out.iterdir()
    return built


def environment(folder: Path) -> Path:
    """A fresh virtual environment that sees the dependencies of this one; its interpreter.

    A path file makes them importable, and is not followed into an editable install of ddtree.
    """
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(python, "-I", "-c", query, cwd=folder).strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


def install(python: Path, *arguments: str | Path) -> None:
    """Install into an environment, without dependencies and without a network."""
    pip = (sys.executable, "-P", "-m", "pip", "--python", python, "install", "--no-deps")
    run(*pip, "--no-index", "--no-build-isolation", *arguments, cwd=python.parent)


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel without its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        return {name: archive.read(name) for name in names}


def expected(source: Path) -> dict[str, bytes]:
    """What a wheel of a checkout has to hold, read from the checkout itself."""
    found = {}
    for name in checkout.files():
        ours = name.partition("/")[0] in checkout.FOLDERS
        data = name.startswith(DATA) and name.endswith(SUFFIXES)
        if ours and (name.endswith(".py") or data):
            found[f"ddtree/{name}"] = (source / name).read_bytes()
    for name in ("__init__.py", "__main__.py", "py.typed"):
        found[f"ddtree/{name}"] = (source / ".src" / "ddtree" / name).read_bytes()
    return found


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy of the checkout that nothing is built in, so that all tests see one state."""
    return checkout.copy(tmp_path_factory.mktemp("checkout") / "source")


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    return build(checkout.copy(folder / "source", source=source), "wheel", folder / "dist")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment with the wheel in it."""
    python = environment(tmp_path_factory.mktemp("installed") / "venv")
    install(python, wheel)
    return python


def test_the_wheel_holds_the_four_folders_and_nothing_else(source: Path, wheel: Path) -> None:
    found = contents(wheel)

    assert sorted(found) == sorted(expected(source))
    assert found == expected(source)


def test_the_expected_contents_are_not_empty(source: Path) -> None:
    names = set(expected(source))

    assert {f"ddtree/{folder}/__init__.py" for folder in checkout.FOLDERS} <= names
    assert {"ddtree/py.typed", "ddtree/cli/schema/inspect-1.json"} <= names
    assert "ddtree/kernels/tree/walk/README.md" in names
    assert len(names) > 100


def test_the_licence_that_is_named_comes_along(source: Path, wheel: Path) -> None:
    info = f"ddtree-{__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"{info}/licenses/LICENSE")
        metadata = archive.read(f"{info}/METADATA").decode()

    assert text == (source / "LICENSE").read_bytes()
    assert b"Apache License" in text
    assert "License-Expression: Apache-2.0\n" in metadata
    assert "License-File: LICENSE\n" in metadata


def test_only_ddtree_becomes_a_top_level_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}

    assert tops == {"ddtree", f"ddtree-{__version__}.dist-info"}


def test_every_module_of_the_wheel_imports(source: Path, installed: Path) -> None:
    lines = run(installed, "-I", "-c", IMPORT_ALL, cwd=installed.parent).splitlines()
    places = dict(line.split(" ", 1) for line in lines)

    assert {f"ddtree.{folder}" for folder in checkout.FOLDERS} <= set(places)
    # The runtime runs beside vLLM, with the kernels that are put there; here it is only data.
    modules = [
        name
        for name in expected(source)
        if name.endswith(".py") and not name.startswith("ddtree/patches/runtime/")
    ]
    # The package itself and `__main__` are not in the list.
    assert len(places) == len(modules) - 2
    assert {
        name for name, place in places.items() if str(installed.parents[1]) not in place
    } == set()


def test_the_installed_command_runs(installed: Path) -> None:
    command = installed.with_name("ddtree")

    assert run(command, "--version", cwd=installed.parent) == f"ddtree {__version__}\n"
    assert "inspect" in run(installed, "-I", "-m", "ddtree", "--help", cwd=installed.parent)
    assert "chain-loop" in run(command, "inspect", "rules", cwd=installed.parent)


def test_the_sdist_builds_the_same_wheel(source: Path, wheel: Path, tmp_path: Path) -> None:
    unpacked = unpack_sdist(source, tmp_path)

    assert contents(build(unpacked, "wheel", tmp_path / "dist")) == contents(wheel)


def test_the_sdist_shows_the_four_folders_and_all_that_the_tests_need(
    source: Path, tmp_path: Path
) -> None:
    unpacked = unpack_sdist(source, tmp_path)

    assert set(checkout.FOLDERS) <= {path.name for path in unpacked.iterdir()}
    files = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*")}
    links = {name for name in checkout.files() if (source / name).is_symlink()}
    assert {*checkout.files()} - links <= files


def test_a_checkout_without_links_builds_the_same_wheel(
    source: Path, wheel: Path, tmp_path: Path
) -> None:
    place = checkout.copy(tmp_path / "source", source=source, links=False)

    assert contents(build(place, "wheel", tmp_path / "dist")) == contents(wheel)


def test_links_that_are_missing_are_made(source: Path, tmp_path: Path) -> None:
    place = checkout.copy(tmp_path / "source", source=source, links=False)

    run("make", "links", cwd=place)

    links = [name for name in checkout.files() if (source / name).is_symlink()]
    assert links
    for name in links:
        assert (place / name).readlink() == (source / name).readlink()
        assert (place / name).is_dir()


def unpack_sdist(source: Path, folder: Path) -> Path:
    """The unpacked sdist of a checkout."""
    place = checkout.copy(folder / "source", source=source)
    with tarfile.open(build(place, "sdist", folder / "sdist")) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return unpacked


@pytest.fixture(scope="module")
def editable(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A copy of the checkout and the interpreter of an environment that it is installed into."""
    folder = tmp_path_factory.mktemp("editable")
    place = checkout.copy(folder / "source", source=source)
    python = environment(folder / "venv")
    install(python, "--editable", place)
    return place, python


def test_an_editable_install_sees_new_files(editable: tuple[Path, Path]) -> None:
    place, python = editable
    (place / "cli" / "arrived_later.py").write_text("ANSWER = 'seen'\n", encoding="utf-8")
    ask = (
        "from ddtree.cli.arrived_later import ANSWER; import ddtree; print(ANSWER, ddtree.__file__)"
    )

    answer, found = run(python, "-I", "-c", ask, cwd=python.parent).split()

    assert answer == "seen"
    assert Path(found) == place / ".src" / "ddtree" / "__init__.py"
    assert run(python.with_name("ddtree"), "--version", cwd=python.parent).split()[0] == "ddtree"


@pytest.mark.parametrize("folder", checkout.FOLDERS)
def test_an_editable_install_adds_no_bare_names(
    folder: str, installed: Path, editable: tuple[Path, Path]
) -> None:
    ask = f"import importlib.util; print(importlib.util.find_spec({folder!r}))"

    for python in (installed, editable[1]):
        assert run(python, "-I", "-c", ask, cwd=python.parent).strip() == "None"
