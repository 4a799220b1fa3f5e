"""Site folders of environments in every layout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ddtree.analyzers.targets.environment import environment_of, python_of

from .installs import write


def _folders(root: Path, *names: str) -> list[Path]:
    for name in names:
        (root / name).mkdir(parents=True)
    return [root / name for name in names]


def test_a_real_virtual_environment(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)
    found = environment_of(tmp_path / "v")
    major, minor, micro = sys.version_info[:3]
    assert found.sites == (tmp_path / f"v/lib/python{major}.{minor}/site-packages",)
    assert found.python == f"{major}.{minor}.{micro}"


@pytest.mark.parametrize(
    ("site", "files", "python"),
    [
        ("Lib/site-packages", {"pyvenv.cfg": "version = 3.11.9\n"}, "3.11.9"),
        (
            "lib/python3.12/site-packages",
            {"pyvenv.cfg": "version_info = 3.12.4.final.0\n"},
            "3.12.4",
        ),
        ("lib/python3.12/site-packages", {"pyvenv.cfg": b"\xff\xfe = nonsense\n"}, "3.12"),
        (
            "lib/python3.11/site-packages",
            {
                "conda-meta/python-3.11.5-h955ad1f_0.json": "{}",
                "conda-meta/python-dateutil-2.json": "",
            },
            "3.11.5",
        ),
        ("lib/python3/dist-packages", {}, None),
        ("local/lib/python3.12/dist-packages", {}, "3.12"),
    ],
)
def test_layouts(
    tmp_path: Path, site: str, files: dict[str, str | bytes], python: str | None
) -> None:
    (folder,) = _folders(tmp_path, site)
    write(tmp_path, files)
    found = environment_of(tmp_path)
    assert (found.sites, found.python) == ((folder,), python)
    if site != "lib/python3/dist-packages":
        assert python_of(folder) == python


def test_the_version_that_the_environment_names_comes_first(tmp_path: Path) -> None:
    new, own, old = _folders(
        tmp_path, *(f"lib/python3.{minor}/site-packages" for minor in (13, 11, 9))
    )
    write(tmp_path, {"pyvenv.cfg": "version = 3.11.2\n"})
    (tmp_path / "lib64").symlink_to("lib")
    assert environment_of(tmp_path).sites == (own, new, old)
    assert python_of(old) == "3.9"


def test_system_packages_follow_where_the_environment_lets_them_in(tmp_path: Path) -> None:
    own, system, other = _folders(
        tmp_path,
        "v/lib/python3.12/site-packages",
        "usr/lib/python3.12/site-packages",
        "usr/lib/python3.9/site-packages",
    )
    settings = f"home = {tmp_path}/usr/bin\nversion = 3.12.1\n"
    write(tmp_path, {"v/pyvenv.cfg": settings})
    assert environment_of(tmp_path / "v").sites == (own,)
    write(tmp_path, {"v/pyvenv.cfg": settings + "include-system-site-packages = TRUE\n"})
    sites = environment_of(tmp_path / "v").sites
    assert sites[0] == own
    assert sites[-1] == system
    assert other not in sites


def test_any_other_folder_is_no_environment(tmp_path: Path) -> None:
    write(tmp_path, {"lib/python3.12/site-packages": "a file", "pyvenv.cfg": "home ="})
    assert environment_of(tmp_path).sites == ()
