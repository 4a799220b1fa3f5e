"""What the plug-in does in a process: hooks by assignment, whenever their modules are imported.

The vLLM is a tiny one, the runtime is the real one. `tests/engine` does the same with real engines.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree.patches import perform
from ddtree.patches.perform import Options
from ddtree.patches.recipe import all_recipes, choose
from ddtree.patches.way import Way
from tests.analyzers.targets import installs

from . import mini

# What vLLM has besides: a second name of a hooked function, a guarded constructor, the loader.
MORE = {
    mini.V2_SAMPLER: "from vllm.v1.worker.gpu.spec_decode.rejection_sampler_utils import (\n"
    "    rejection_sample,\n)\n\n\n" + mini.FILES[mini.V2_SAMPLER],
    mini.CONFIG: """class VllmConfig:
    speculative = 3

    def __init__(self, additional_config=None):
        self.additional_config = additional_config
        self.__post_init__()

    def __post_init__(self):
        pass

    @property
    def num_speculative_tokens(self) -> int:
        \"""How many.\"""
        return self.speculative
""",
    "vllm/v1/worker/worker_base.py": "class WorkerBase:\n"
    "    def __init__(self, vllm_config, rank=0):\n"
    "        self.vllm_config = vllm_config\n",
    "vllm/envs.py": "import os\n\nVLLM_PLUGINS = None\n"
    "if 'VLLM_PLUGINS' in os.environ:\n    VLLM_PLUGINS = os.environ['VLLM_PLUGINS'].split(',')\n",
    "vllm/plugins.py": "from importlib.metadata import entry_points\n\nfrom vllm import envs\n\n\n"
    "def load_general_plugins():\n"
    "    for point in entry_points(group='vllm.general_plugins'):\n"
    "        if envs.VLLM_PLUGINS is None or point.name in envs.VLLM_PLUGINS:\n"
    "            point.load()()\n",
}
SETTINGS = {"ddtree": {"budget": 8}}
HEAD = f"""
import importlib, json, os, site, sys
site.addsitedir(sys.argv[1])
import ddtree_plugin
SETTINGS = {SETTINGS!r}
MODULES = {[file.removesuffix(".py").replace("/", ".") for file in mini.EDITED]!r}

def load():
    from vllm.plugins import load_general_plugins
    load_general_plugins()

def imported():
    return [importlib.import_module(name) for name in MODULES]

def hooks():
    from ddtree_runtime.attached import PLACES
    imported()
    bare = [place.hooked for place in PLACES.values()]
    for place in PLACES.values():
        found = vars(place.owner())[place.path[-1]]
        assert getattr(found, "fget", found) is place.hooked
        assert place.hooked.__wrapped__ not in bare
    return sorted(PLACES)

def refusal(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
"""


CONFIGURE = """
from vllm.config.vllm import VllmConfig
print(VllmConfig().num_speculative_tokens)
print(refusal(lambda: VllmConfig(SETTINGS)))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny vLLM with the plug-in."""
    return planted(tmp_path_factory.mktemp("load"))


def planted(root: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DDTREE_STATE", str(root / "state"))
        place = root / "site-packages"
        installs.installed(place, "vllm", mini.VERSION, mini.FILES | MORE)
        perform.apply(Options(str(place), way=Way.PLUGIN))
    return place


def said(site: Path, code: str, **variables: str) -> str:
    """What a process prints that runs some code in the environment."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + code, str(site)],
        env={"PATH": "", "OMP_NUM_THREADS": "1", **variables},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(site: Path, code: str) -> str:
    """Why trees are refused once some code ran; without them, vLLM is as stock."""
    stock, trees = said(site, code + CONFIGURE).splitlines()

    assert stock == "3"
    return trees


# The operator is registered when its module is imported: trees go through the layers.
ALL = sorted(
    anchor.hook
    for anchor in choose(mini.VERSION, all_recipes())[0].anchors
    if anchor.hook != "attention.forward"
)


@pytest.mark.parametrize(
    "code",
    [
        "load(); print(hooks())",
        "imported(); load(); print(hooks())",
        "import vllm.v1.worker.gpu_model_runner; load(); load(); ddtree_plugin.register(); "
        "print(hooks())",
    ],
    ids=["before", "after", "twice"],
)
def test_every_hook_is_put_on_once_whenever_its_module_is_imported(site: Path, code: str) -> None:
    assert said(site, code) == f"{ALL}\n"


def test_nothing_is_imported_that_vllm_does_not_import(site: Path) -> None:
    code = """
before = set(sys.modules)
load()
print([name for name in MODULES if name in sys.modules], "ddtree_runtime.hooks" in sys.modules)
"""
    assert said(site, code) == "[] True\n"


def test_an_interpreter_that_runs_no_vllm_loads_one_file(site: Path) -> None:
    code = """
print([name for name in sys.modules if name.startswith("ddtree")])
print([name for name in ("typing", "ast", "logging", "torch") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import site, sys; site.addsitedir(sys.argv[1])" + code, site],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "['ddtree_plugin']\n[]\n"


def test_the_hooked_functions_do_what_they_did(site: Path) -> None:
    """Off is stock, a property stays one, and other names of a function are hooked as well."""
    code = """
{}
from vllm.config.vllm import VllmConfig
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
from vllm.v1.worker.gpu.spec_decode import rejection_sampler, rejection_sampler_utils
config = VllmConfig()
print(config.num_speculative_tokens, type(VllmConfig.__dict__["num_speculative_tokens"]).__name__)
print(VllmConfig.num_speculative_tokens.__doc__)
print(GPUModelRunner.helper(), GPUModelRunner.__new__(GPUModelRunner)._sample(1, None))
print(rejection_sampler.rejection_sample is rejection_sampler_utils.rejection_sample)
"""
    wanted = "3 property\nHow many.\nNone 1\nTrue\n"
    for loaded in ("", "load()", "imported(); load()"):
        assert said(site, code.format(loaded)) == wanted


def test_a_forked_process_has_them_and_a_spawned_one_too(site: Path) -> None:
    code = """
imported(); load()
if os.fork() == 0:
    load()
    print(hooks() == ALL, flush=True)
    os._exit(0)
os.wait()
"""
    assert said(site, f"ALL = {ALL!r}\n{code}") == "True\n"


def test_what_somebody_replaced_before_is_named_and_trees_are_refused(site: Path) -> None:
    code = """
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
def mine(self, logits, metadata): ...
GPUModelRunner._sample = mine
load()
"""
    trees = refused(site, code)

    assert "GPUModelRunner._sample is __main__.mine" in trees


@pytest.mark.parametrize("gone", ["del GPUModelRunner._sample", "del runner.GPUModelRunner"])
def test_what_somebody_took_away_before_leaves_a_stock_vllm(site: Path, gone: str) -> None:
    code = f"""
import vllm.v1.worker.gpu_model_runner as runner
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
{gone}
load()
"""
    trees = refused(site, code)

    assert "something else replaced what is hooked: GPUModelRunner." in trees


def test_a_module_that_cannot_be_hooked_is_stock(tmp_path: Path) -> None:
    """Found out as late as it is imported."""
    place = planted(tmp_path)
    hooked = place / "ddtree_plugin" / "hooked.py"
    line = '    GPUModelRunner._sample = hook("v1.sample")'
    assert line in hooked.read_text()
    hooked.write_text(hooked.read_text().replace(line, "    raise LookupError(1)\n" + line, 1))
    code = """
load()
import vllm.v1.worker.gpu_model_runner
"""
    trees = refused(place, code)

    assert "gpu_model_runner cannot be hooked (LookupError: 1)" in trees


def test_a_package_in_an_archive_is_hooked_as_well(tmp_path: Path) -> None:
    """Whose modules share one loader; each is acted upon as itself."""
    place = planted(tmp_path)
    with zipfile.ZipFile(tmp_path / "more.zip", "w") as archive:
        archive.writestr("one.py", "VALUE = 1\n")
        archive.writestr("two.py", "VALUE = 2\n")
    code = f"""
sys.path.insert(0, {str(tmp_path / "more.zip")!r})
seen = []
ddtree_plugin.after_import("one", lambda module: seen.append(module.__name__))
import two, one, importlib
importlib.reload(two)
print(seen)
"""
    assert said(place, code) == "['one']\n"


def test_what_somebody_wrapped_before_is_hooked_around(site: Path) -> None:
    code = """
import functools
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
@functools.wraps(GPUModelRunner._sample)
def mine(self, *args):
    print("mine")
    return mine.__wrapped__(self, *args)
GPUModelRunner._sample = mine
load()
print("v1.sample" in hooks(), GPUModelRunner.__new__(GPUModelRunner)._sample(2, None))
"""
    assert said(site, code) == "mine\nTrue 2\n"


@pytest.mark.parametrize(
    ("allowed", "words"), [("", "VLLM_PLUGINS=ddtree"), ("a,b", "=a,b,ddtree")]
)
def test_a_list_that_leaves_it_out_is_noticed_where_trees_are_configured(
    site: Path, allowed: str, words: str
) -> None:
    code = """
load()
from vllm.config.vllm import VllmConfig
from vllm.v1.worker.worker_base import WorkerBase
print(VllmConfig().num_speculative_tokens, VllmConfig({"other": 1}).num_speculative_tokens)
print(refusal(lambda: VllmConfig(SETTINGS)))
config = VllmConfig()
config.additional_config = SETTINGS
print(refusal(lambda: WorkerBase(config)) == refusal(lambda: WorkerBase(vllm_config=config)))
"""
    stock, trees, worker = said(site, code, VLLM_PLUGINS=allowed).splitlines()

    assert stock == "3 3"
    assert "leaves out the plug-in" in trees
    assert words in trees
    assert worker == "True"


def test_a_refusal_that_nobody_catches_is_one_line(site: Path) -> None:
    code = "load()\nfrom vllm.config.vllm import VllmConfig\nVllmConfig(SETTINGS)\n"
    done = subprocess.run(
        [sys.executable, "-c", HEAD + code, str(site)],
        env={"PATH": "", "VLLM_PLUGINS": ""},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith("ddtree: trees are configured, and VLLM_PLUGINS= leaves out")


def test_a_configuration_that_is_made_by_hand_loads_the_plug_ins(site: Path) -> None:
    """Before vLLM has come by them."""
    code = """
from vllm.config.vllm import VllmConfig
VllmConfig(SETTINGS)
print(hooks() == ALL)
"""
    assert said(site, f"ALL = {ALL!r}\n{code}") == "True\n"


def _gone(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("damage", [_gone, _empty, _cut])
@pytest.mark.parametrize(
    "file", ["ddtree_runtime/hooks.py", "ddtree_plugin/hooked.py", "ddtree_plugin/assign.py"]
)
def test_a_damaged_file_means_stock_and_no_trees(
    tmp_path: Path, file: str, damage: Callable[[Path], None]
) -> None:
    place = planted(tmp_path)
    damage(place / file)
    code = """
load()
"""
    trees = refused(place, code)

    assert trees.startswith("ddtree: trees are configured, and what belongs to it is damaged")
    assert trees.endswith("run `ddtree patch --status` on this environment")


def test_without_the_package_no_interpreter_stumbles(tmp_path: Path) -> None:
    place = planted(tmp_path)
    for path in sorted((place / "ddtree_plugin").iterdir()):
        path.unlink()
    (place / "ddtree_plugin").rmdir()
    done = subprocess.run(
        [sys.executable, "-c", "import site, sys; site.addsitedir(sys.argv[1])", str(place)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("", "")
