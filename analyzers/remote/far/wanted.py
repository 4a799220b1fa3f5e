"""Which files an inspection will most likely read, so that they travel with the first reply.

Nothing depends on the guess being right: what is missing is asked for later, and what is not read
costs a little time on the wire. Engine paths start in workers and end in samplers and drafters;
beyond those folders a step is followed for one hop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...install.entry_points import module_of
from ...targets.siblings import absolute, imports
from ...targets.source import Source, Target

_CORE = re.compile(
    r"^vllm/(?:v1/(?:worker|sample|spec_decode)/|worker/|spec_decode/|platforms/|attention/backends/"
    r"|adapter_commons/|prompt_adapter/|v1/pool/|(?:v1/core/encoder_cache_manager|ir/op)\.py$"
    r"|(?:tokenizers/(?:hf|protocol|registry)|transformers_utils/(?:config|repo_utils|utils))\.py$"
    r"|(?:logger|plugins/lora_resolvers/__init__|utils/mem_utils|device_allocator/sleep_\w+)\.py$"
    r"|config/(?:__init__|vllm|speculative|model|compilation)\.py$|(?:config|envs|__init__)\.py$"
    r"|model_executor/layers/(?:sampler|rejection_sampler|spec_decode_\w+|typical_\w+)\.py$)"
    r"|/(?:platforms|worker)/"
)
# Imported from there, but large and never followed: kernels of attention and of other layers,
# models, compilation, the drawing up of caches, other processes of the engine.
_IDLE = re.compile(
    r"^vllm/(?:_aiter_ops|_custom_ops|_xpu_ops|env_override)\.py$"
    r"|^vllm/(?:third_party|engine|entrypoints|models|parser|ray|renderers|profiler|tokenizers"
    r"|transformers_utils|device_allocator|v1/(?:engine|executor|metrics|core/kv_cache_utils)"
    r"|model_executor/(?:determinism|kernels|model_loader|parameter|offloader/prefetch"
    r"|models/(?:registry|utils|config|adapters|deepseek_v2|llama|qwen2)\.py$"
    r"|layers/(?:attention|batch_invariant|quantization|vocab|mamba/(?:mamba_mixer|ops)"
    r"|fused_moe/(?:[lm]|prepare|router)))|lora/layers/\w*linear|v1/serial_utils"
    r"|compilation/(?:passes|backends|decorators|compiler|collective|wrapper)"
    r"|config/(?:parallel|multimodal|kernel|utils|scheduler|profiler|observability|quantization)"
    r"|utils/(?:flashinfer|deep_gemm|argparse|jit_monitor|cpu_triton|cpu_resource)"
    r"|distributed/(?:eplb|elastic_ep|utils|aux|device_communicators/(?!pynccl_a)"
    r"|kv_transfer/kv_connector/(?:v1/base|utils))"
    r"|v1/attention/backends/(?:mla|flashinfer|rocm|turboquant|ultraquant))"
)
# Followed, or searched, only where a tree is drafted or verified.
_ATTENTION = re.compile(
    r"^vllm/(?:(?:v1/)?attention/|v1/(?:pool|kv_offload|hisparse|core/kv_cache)|_aiter_ops"
    r"|model_executor/(?:layers/(?:attention|mamba|fused_moe/routed)|models/utils)"
    r"|distributed/aux_output_connector/|third_party/flash_linear_attention/).*\.py$"
)
# What a mask that a backend of attention builds is followed through.
_BACKENDS = re.compile(r"^vllm/(?:v1/)?attention/")
# A module of the second hop is carried along where it is no larger than this.
_SMALL = 24 << 10
# Beyond this, a second command costs less than carrying what may never be read.
_MOST_BYTES = 5 << 20
_MOST_MORE_BYTES = 12 << 20


def wanted(target: Target, masks: Iterable[str]) -> list[str]:
    """Paths of the target's source, most probable ones first, up to a few megabytes of them.

    Args:
        target: the install.
        masks: the files in which a mask could be built.
    """
    source = target.source
    paths = [path for path in source.files() if path.endswith(".py")]
    core = [path for path in paths if _CORE.search(path) or not path.startswith("vllm/")]
    core += [path for plugin in target.plugins for path in _files(source, module_of(plugin))]
    near = dict.fromkeys(hop for path in core for hop in _imported(source, path))
    hops = [path for path in near if not _IDLE.search(path)]
    more = dict.fromkeys(path for hop in hops for path in _imported(source, hop))
    small = [path for path in more if _size(source, path) <= _SMALL and not _IDLE.search(path)]
    small.sort(key=lambda path: _size(source, path))
    found = dict.fromkeys([*core, *hops, *small])
    built = list(masks)
    if not target.siblings and not _is_extended(target):
        through = [path for path in paths if _BACKENDS.search(path)] if built else []
        return list(_within(source, dict.fromkeys([*found, *built, *through]), _MOST_BYTES))
    # It was edited, most probably to verify trees.
    more = dict.fromkeys([*found, *built, *(path for path in paths if _ATTENTION.search(path))])
    return list(_within(source, more, _MOST_MORE_BYTES))


def _is_extended(target: Target) -> bool:
    return any(module_of(plugin).partition(".")[0] != "vllm" for plugin in target.plugins)


def closure(source: Source, paths: Iterable[str]) -> list[str]:
    """The paths and what they import, directly or not, nearest first.

    Where they are about attention, a tree was found, and all about attention comes along.
    """
    found = dict.fromkeys(paths)
    waiting = list(found)
    deep = any(_ATTENTION.search(path) for path in waiting)
    if deep:
        found.update((path, None) for path in source.files() if _ATTENTION.search(path))
    while waiting:
        near = dict.fromkeys(hop for path in waiting for hop in _imported(source, path))
        waiting = [path for path in near if path not in found]
        found.update(dict.fromkeys(waiting))
    return list(_within(source, found, _MOST_MORE_BYTES if deep else _MOST_BYTES // 4))


def _imported(source: Source, path: str) -> Iterator[str]:
    """The files of the source that a file imports."""
    try:
        data = source.read(path)
    except OSError:
        return
    package = path.rpartition("/")[0].replace("/", ".")
    for item in imports(data):
        yield from _files(source, absolute(item, package))


def _files(source: Source, module: str) -> Iterator[str]:
    stem = module.replace(".", "/")
    yield from (path for path in (f"{stem}.py", f"{stem}/__init__.py") if path in source.files())


def _within(source: Source, paths: Iterable[str], most: int) -> Iterator[str]:
    total = 0
    for path in paths:
        total += _size(source, path)
        if total <= most:
            yield path


def _size(source: Source, path: str) -> int:
    return source.files()[path].size if path in source.files() else 0
