"""Only a vLLM that ddtree has patched, whole and undisturbed, is verified."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError, TargetError
from ddtree.analyzers.install.names import dotted_name
from ddtree.patches.verify.precondition import ready
from tests.patches import mini


@pytest.fixture
def applied(install: mini.Mini) -> mini.Mini:
    """A tiny install that was patched."""
    install.apply()
    return install


def refused(install: mini.Mini) -> ConflictError:
    with pytest.raises(ConflictError) as caught, ready(str(install.site), None):
        pass
    return caught.value


def test_an_unpatched_vllm(install: mini.Mini) -> None:
    """The command that helps is named."""
    failure = refused(install)
    assert "Not patched" in failure.found
    assert failure.hint == f"ddtree patch {install.site} --apply"
    assert failure.exit_code == 4


def test_a_damaged_patch(applied: mini.Mini) -> None:
    """A file that somebody edited, or a runtime that is not as it was put there."""
    applied.edit(mini.CONFIG, lambda text: text + "# mine\n")
    failure = refused(applied)
    assert f"{mini.CONFIG} is changed" in failure.found
    assert failure.hint == f"ddtree patch {applied.site} --revert --allow-local-edits"


def test_a_runtime_that_is_gone(applied: mini.Mini) -> None:
    """The hooks would do nothing."""
    shutil.rmtree(applied.site / "ddtree_runtime")
    assert "is not as it was put there" in refused(applied).found


def test_hooks_without_a_journal(applied: mini.Mini) -> None:
    """Another user's patch, or one whose journal was lost."""
    shutil.rmtree(applied.state)
    assert "no journal" in refused(applied).found


def test_a_folder_without_an_interpreter(applied: mini.Mini) -> None:
    """It can be named."""
    with pytest.raises(TargetError) as caught, ready(str(applied.site), None):
        pass
    assert "--python PATH" in caught.value.hint
    python = Path("/somewhere/python")
    with ready(str(applied.site), python) as found:
        assert found.python == python
        assert set(found.modules) == {dotted_name(file) for file in mini.EDITED}


def test_an_archive_runs_nothing(tmp_path: Path) -> None:
    """It is no environment."""
    wheel = shutil.make_archive(str(tmp_path / "vllm"), "zip", tmp_path)
    with pytest.raises(TargetError), ready(wheel, None):
        pass
