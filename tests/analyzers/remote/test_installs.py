"""Which vLLM of a machine is meant, and which one a running server uses."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ddtree.analyzers.errors import TargetError
from ddtree.analyzers.remote.far import installs, places
from ddtree.analyzers.remote.far.servers import Server, servers
from tests.analyzers.targets import installs as layouts


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a machine without anything else on it."""
    folder = tmp_path / "home"
    folder.mkdir()
    (tmp_path / "proc").mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setattr(places, "BELOW_ROOT", ())
    monkeypatch.setattr(installs, "servers", partial(servers, tmp_path / "proc"))
    return folder


def _vllm(prefix: Path, version: str = "1.2.3") -> Path:
    site = layouts.environment(prefix)
    layouts.installed(site, version=version)
    layouts.write(prefix, {"bin/python": "", "bin/vllm": ""})
    return site


def _process(home: Path, number: int, command: list[str], mapped: str = "") -> None:
    """A process as /proc shows it."""
    folder = home.parent / "proc" / str(number)
    layouts.write(folder, {"cmdline": "\0".join(command) + "\0"})
    line = "7f0000000000-7f0000001000 r-xp 00000000 08:01 1234    "
    layouts.write(folder, {"maps": f"{line}[heap]\n{line}{mapped}\n"})


def test_the_only_install_is_found(home: Path) -> None:
    _vllm(home / "work/.venv")
    layouts.environment(home / "other/.venv")

    found = installs.find(None)

    assert found.facts.environment == str(home / "work/.venv")
    assert found.facts.interpreter == str(home / "work/.venv/bin/python")
    assert found.facts.metadata == "vllm-1.2.3.dist-info"
    assert found.facts.servers == ()


def test_without_any_the_places_are_named(home: Path) -> None:
    layouts.environment(home / "work/.venv")

    with pytest.raises(TargetError, match=r"no vLLM found: .* looked at: 1, .*work/\.venv"):
        installs.find(None)


def test_of_two_each_is_listed_with_the_server_that_uses_it(home: Path) -> None:
    _vllm(home / "a/.venv", "0.20.1")
    site = _vllm(home / "b/.venv", "0.32.0")
    _process(home, 71, ["VLLM::EngineCore"], f"{site}/torch/lib/libtorch.so")
    _process(home, 72, ["/usr/bin/vim", "vllm.py"], f"{site}/torch/lib/libtorch.so")

    with pytest.raises(TargetError) as caught:
        installs.find(None)

    assert "there are 2 installs of vLLM" in caught.value.found
    assert f"{home}/a/.venv (vllm 0.20.1);" in caught.value.found
    assert f"{home}/b/.venv (vllm 0.32.0, used by the running server 71)" in caught.value.found
    assert caught.value.hint == f"ddtree inspect host --python {home}/b/.venv"


def test_one_install_behind_two_environments_is_one(home: Path) -> None:
    site = _vllm(home / "a/.venv")
    other = layouts.environment(home / "b/.venv")
    (other / "shared.pth").write_text(f"{site}\n")

    assert installs.find(None).facts.environment == str(home / "a/.venv")


def test_an_environment_that_is_named_needs_no_search(home: Path) -> None:
    _vllm(home / "a/.venv")
    site = _vllm(home / "b/.venv")

    for named in ("~/b/.venv", str(site), str(site / "vllm")):
        assert installs.find(named).target.source.location == str(site)


def test_a_server_leads_to_an_environment_in_an_unusual_place(home: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "far/away"
    _vllm(prefix)
    _process(home, 9, [f"{prefix}/bin/python", f"{prefix}/bin/vllm", "serve", "m"])

    facts = installs.find(None).facts

    assert facts.environment == str(prefix)
    assert facts.servers == (9,)


@pytest.mark.parametrize(
    ("command", "serves"),
    [
        (["VLLM::Worker_TP0"], True),
        (["/x/bin/python3.12", "/x/bin/vllm", "serve", "m"], True),
        (["python", "-m", "vllm.entrypoints.openai.api_server"], True),
        (["python3", "-u", "-m", "vllm.entrypoints.openai.api_server"], True),
        (["python3", "train.py", "--engine", "vllm"], False),
        (["bash", "-c", "vllm serve"], False),
        (["/usr/bin/vim", "vllm.py"], False),
        ([""], False),
    ],
)
def test_what_is_a_server(home: Path, command: list[str], serves: bool) -> None:
    _process(home, 5, command)

    assert [server.process for server in _found(home)] == [5] * serves


def test_this_process_and_what_vanishes_are_passed_over(home: Path) -> None:
    _process(home, os.getpid(), ["VLLM::EngineCore"])
    (home.parent / "proc/6").mkdir()

    assert list(_found(home)) == []
    assert list(servers(home.parent / "absent")) == []


def _found(home: Path) -> Iterator[Server]:
    return servers(home.parent / "proc")
