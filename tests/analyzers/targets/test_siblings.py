"""Which packages beside vLLM count as part of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree.analyzers.targets.resolve import open_target
from ddtree.analyzers.targets.siblings import MAX_FILES, imports
from ddtree.analyzers.targets.source import Sibling

from . import installs

EDIT = "from extra.hooks import hook\n"
HOOKS = {"extra/__init__.py": "", "extra/hooks.py": "from . import inner\n", "extra/inner.py": ""}


def siblings(place: Path) -> tuple[Sibling, ...]:
    with open_target(str(place)) as target:
        return target.siblings


def edited(root: Path, text: str = EDIT) -> Path:
    site = installs.installed(root / "site")
    return installs.write(site, {"vllm/v1/sampler.py": text})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a", ["a"]),
        ("import a.b as c, d", ["a.b", "d"]),
        ("from a import b", ["a", "a.b"]),
        ("from a.b import (\n    c,  # why\n    d as e,\n)", ["a.b", "a.b.c", "a.b.d"]),
        ("from a import b, \\\n    c", ["a", "a.b", "a.c"]),
        ("try:\n    from a import b\nexcept ImportError:\n    b = None", ["a", "a.b"]),
        ("from a import *", ["a"]),
        ("from . import a", [".", ".a"]),
        ("from ..a import b", ["..a", "..a.b"]),
        ("important = from_ = 1", []),
    ],
)
def test_imports(source: str, expected: list[str]) -> None:
    assert ["." * item.level + item.name for item in imports(source.encode())] == expected


def test_a_stock_install_has_none(tmp_path: Path) -> None:
    site = installs.installed(tmp_path / "site")
    installs.write(site, HOOKS)

    assert siblings(site) == ()


def test_what_an_edit_imports_is_followed_as_far_as_it_imports(tmp_path: Path) -> None:
    site = installs.write(edited(tmp_path), HOOKS | {"extra/other.py": "x = 1\n"})

    (found,) = siblings(site)

    assert found == Sibling("extra", ("vllm/v1/sampler.py",), tuple(sorted(HOOKS)))
    with open_target(str(site)) as target:
        assert set(HOOKS) < set(target.source.files())
        assert "extra/other.py" not in target.source.files()


def test_a_file_that_was_added_is_an_edit(tmp_path: Path) -> None:
    site = installs.installed(tmp_path / "site")
    installs.write(site, HOOKS | {"vllm/v1/added.py": EDIT})

    (found,) = siblings(site)

    assert found.importers == ("vllm/v1/added.py",)


def test_a_single_module_and_a_second_package_count(tmp_path: Path) -> None:
    site = edited(tmp_path, "import seam\n")
    installs.write(site, {"seam.py": "import walker.tree\n", "walker/__init__.py": ""})
    installs.write(site, {"walker/tree.py": "import os\n"})

    (found,) = siblings(site)

    assert found.files == ("seam.py", "walker/__init__.py", "walker/tree.py")


def test_a_package_that_is_gone_has_no_files(tmp_path: Path) -> None:
    (found,) = siblings(edited(tmp_path))

    assert found.files == ()


def test_what_the_release_imports_itself_is_a_dependency(tmp_path: Path) -> None:
    files = dict(installs.PACKAGE) | {"vllm/v1/other.py": "import extra\n"}
    site = installs.installed(tmp_path / "site", files=files)
    installs.write(site, HOOKS | {"vllm/v1/sampler.py": EDIT})

    assert siblings(site) == ()


def test_the_standard_library_is_never_followed(tmp_path: Path) -> None:
    site = edited(tmp_path, "import json\nimport vllm.v1\n")

    assert siblings(site) == ()


def test_a_second_package_of_the_same_distribution_counts(tmp_path: Path) -> None:
    files = dict(installs.PACKAGE) | HOOKS | {"vllm/v1/sampler.py": EDIT}
    site = installs.installed(tmp_path / "site", files=files)

    (found,) = siblings(site)

    assert found.files == tuple(sorted(HOOKS))


def test_a_wheel_is_looked_at_in_the_same_way(tmp_path: Path) -> None:
    stock = dict(installs.PACKAGE)
    about = installs.metadata("vllm", "1.2.3", stock, {"WHEEL": "Wheel-Version: 1.0\n"})
    files = stock | about | HOOKS | {"vllm/v1/sampler.py": EDIT}
    name = "vllm-1.2.3-cp312-cp312-linux_x86_64.whl"

    (found,) = siblings(installs.zipped(tmp_path / name, files))

    assert found.files == tuple(sorted(HOOKS))


def test_without_a_record_what_something_requires_is_a_dependency(tmp_path: Path) -> None:
    site = installs.write(edited(tmp_path), HOOKS)
    (site / "vllm-1.2.3.dist-info/RECORD").unlink()
    assert [found.name for found in siblings(site)] == ["extra"]
    installs.write(site, installs.metadata("extra", "1.0", HOOKS))
    assert [found.name for found in siblings(site)] == ["extra"]

    wants = {"vllm-1.2.3.dist-info/METADATA": "Name: vllm\nRequires-Dist: Extra>=1\n\n"}
    installs.write(site, wants)

    assert siblings(site) == ()


def test_a_library_is_followed_only_so_far(tmp_path: Path) -> None:
    count = MAX_FILES + 50
    chain = {f"extra/m{n}.py": f"from . import m{n + 1}\n" for n in range(count)}
    site = installs.write(edited(tmp_path, "import extra.m0\n"), {"extra/__init__.py": ""} | chain)

    (found,) = siblings(site)

    assert len(found.files) <= MAX_FILES + 1
