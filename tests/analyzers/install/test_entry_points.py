"""Entry points of plug-ins."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree.analyzers.install.distribution import distributions
from ddtree.analyzers.install.entry_points import module_of, parse_entry_points, plugins_of
from ddtree.analyzers.result import Plugin
from ddtree.analyzers.targets.local import LocalSite

from ..targets.installs import metadata, write

TEXT = """
# a comment
[console_scripts]
tool = tool.cli:main

[vllm.general_plugins]
Trees=my_plugin.hooks:register [fast]
; another comment
broken line
 = nameless
empty =
[ vllm.platform_plugins ]
ours : our.platform
other = other
[vllmish.plugins]
no = no
"""


def test_lines_that_make_sense_are_read() -> None:
    assert list(parse_entry_points(TEXT)) == [
        ("console_scripts", "tool", "tool.cli:main"),
        ("vllm.general_plugins", "Trees", "my_plugin.hooks:register [fast]"),
        ("vllm.platform_plugins", "other", "other"),
        ("vllmish.plugins", "no", "no"),
    ]


def test_only_groups_of_vllm_are_plugins(tmp_path: Path) -> None:
    write(tmp_path, metadata("my-plugin", "0.1", {}, {"entry_points.txt": TEXT}))
    (dist,) = distributions(LocalSite(tmp_path))
    assert list(plugins_of(dist)) == [
        Plugin("vllm.general_plugins", "Trees", "my_plugin.hooks:register [fast]", "my-plugin"),
        Plugin("vllm.platform_plugins", "other", "other", "my-plugin"),
    ]


@pytest.mark.parametrize(
    ("value", "module"),
    [("a.b:c", "a.b"), ("a", "a"), ("a.b:c.d [x,y]", "a.b"), ("a [x]", "a"), (":x", "")],
)
def test_module_of(value: str, module: str) -> None:
    assert module_of(Plugin("vllm.general_plugins", "n", value)) == module
