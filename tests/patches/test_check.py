"""Promise 11: what was written is looked at again, or rolled back."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ddtree.patches import apply as engine
from ddtree.patches import disk, journal, perform, probe
from ddtree.patches.errors import RolledBack
from ddtree.patches.status import State
from tests.analyzers.targets import installs

from . import mini


def environment(tmp_path: Path, hooks: str) -> mini.Mini:
    """An install in an environment whose interpreter answers."""
    prefix = tmp_path / "env"
    venv = [sys.executable, "-m", "venv", "--without-pip", str(prefix)]
    subprocess.run(venv, check=True)
    (site,) = prefix.glob("lib/python*/site-packages")
    install = mini.make(tmp_path, site=site)
    (tmp_path / "runtime" / "hooks.py").write_text(hooks)
    return install


@pytest.mark.parametrize(
    ("hooks", "reason"),
    [
        ("def hook(name):\n", "IndentationError"),
        ("raise RuntimeError('broken')", "RuntimeError: broken"),
        ("from ddtree_runtime.nothing import hook", "ModuleNotFoundError"),
        ("def hook(name):\n    raise KeyError(name)", "KeyError"),
        ("def hook(name):\n    return lambda function: None", "nothing that can be called"),
        ("import os\nos._exit(7)", "exit code 7"),
    ],
)
def test_a_runtime_that_does_not_work_is_rolled_back(
    tmp_path: Path, hooks: str, reason: str
) -> None:
    install = environment(tmp_path, hooks)
    before = mini.snapshot(install.site)

    with pytest.raises(RolledBack, match=reason):
        install.apply()
    assert mini.snapshot(install.site) == before
    assert install.status().state == State.STOCK
    assert not list(install.state.rglob("*.json"))


def test_a_runtime_that_works_is_imported_by_the_interpreter(tmp_path: Path) -> None:
    install = environment(tmp_path, mini.HOOKS + "import sys\nassert 'ddtree' not in sys.modules\n")
    outcome = install.apply()

    assert isinstance(outcome, perform.Applied)
    assert mini.looked(outcome.notes) == ()


def test_a_missing_module_of_the_environment_is_said(tmp_path: Path) -> None:
    outcome = environment(tmp_path, "import no_such_torch\n" + mini.HOOKS).apply()

    assert isinstance(outcome, perform.Applied)
    assert "has no no_such_torch" in mini.looked(outcome.notes)[0]


def test_the_edited_modules_are_imported_if_asked(tmp_path: Path) -> None:
    install = environment(tmp_path, mini.HOOKS + "print(CALLS)\n")
    before = mini.snapshot(install.site)
    outcome = install.apply(imports=True)
    assert isinstance(outcome, perform.Applied)
    assert mini.looked(outcome.notes) == ()
    install.revert()
    assert mini.snapshot(install.site) == before


def test_an_install_that_cannot_be_imported_is_refused_before(tmp_path: Path) -> None:
    install = environment(tmp_path, mini.HOOKS)
    files = mini.FILES | {mini.CONFIG: "import no_such_torch\n" + mini.FILES[mini.CONFIG]}
    installs.installed(install.site, "vllm", mini.VERSION, files)

    mini.refused(install, "before anything is written, .*no_such_torch", imports=True)
    assert isinstance(install.apply(), perform.Applied)


def test_a_hook_that_breaks_a_module_is_rolled_back(tmp_path: Path) -> None:
    hooks = "def hook(name):\n    def decorate(function):\n        assert 'vllm.config' not in "
    hooks += "function.__module__, name\n        return function\n    return decorate\n"
    install = environment(tmp_path, hooks)
    before = mini.snapshot(install.site)

    with pytest.raises(RolledBack, match=r"AssertionError: config\.num_speculative_tokens"):
        install.apply(imports=True)
    assert mini.snapshot(install.site) == before
    assert isinstance(install.apply(), perform.Applied)


def test_without_an_interpreter_nothing_can_be_imported(install: mini.Mini) -> None:
    mini.refused(install, "no interpreter belongs to", imports=True)


def test_bytes_that_come_back_differently_are_rolled_back(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = mini.snapshot(install.site)
    real = disk.write_new

    def careless(path: Path, data: bytes, like: disk.Attributes) -> None:
        real(path, data.replace(b"Hooks that do", b"Hooks that did"), like)

    monkeypatch.setattr(disk, "write_new", careless)
    with pytest.raises(RolledBack, match=r"not what was written: ddtree_runtime/hooks\.py"):
        install.apply()
    assert mini.snapshot(install.site) == before


def test_an_interruption_is_rolled_back(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = mini.snapshot(install.site)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "check", interrupt)
    with pytest.raises(KeyboardInterrupt, match="every byte is as it was before"):
        install.apply()
    assert mini.snapshot(install.site) == before
    assert journal.journals(mini.place_of(install)) == []


def test_the_probe_leaves_nothing_behind(install: mini.Mini) -> None:
    mini.applied(install)
    files = [str(install.site / mini.RUNNER)]
    started = time.monotonic()
    wanted = json.dumps({"files": files, "hooks": ["a"], "modules": [], "points": []})
    script = [sys.executable, "-I", "-B", probe.__file__, str(install.site), wanted]
    subprocess.run(script, check=True, capture_output=True)
    assert time.monotonic() - started < 10
    assert not list(install.site.rglob("ddtree_runtime/**/*.pyc"))
