"""The settings that a user writes, and the refusals that an engine's start gives."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ddtree.patches.runtime import config as config_module
from ddtree.patches.runtime import non_causal, refusals
from ddtree.patches.runtime.budget import num_speculative_tokens
from ddtree.patches.runtime.config import Settings, SettingsError, settings_of
from ddtree.patches.runtime.refusals import Refused, check_config, check_layer
from tests.patches import releases

FULL_GRAPHS = SimpleNamespace(has_full_cudagraphs=lambda: True)
NO_FULL_GRAPHS = SimpleNamespace(has_full_cudagraphs=lambda: False)


def config(**changes: Any) -> SimpleNamespace:
    """A configuration that trees work with, changed by dotted names."""
    made = SimpleNamespace(
        additional_config={"ddtree": {"budget": 16}},
        use_v2_model_runner=False,
        kv_transfer_config=None,
        cache_config=SimpleNamespace(cache_dtype="auto", sliding_window=None),
        scheduler_config=SimpleNamespace(async_scheduling=False),
        device_config=SimpleNamespace(device_type="cpu"),
        attention_config=SimpleNamespace(backend=None),
        compilation_config=SimpleNamespace(cudagraph_mode=FULL_GRAPHS),
        parallel_config=SimpleNamespace(pipeline_parallel_size=1, decode_context_parallel_size=1),
        speculative_config=SimpleNamespace(method="dflash", num_speculative_tokens=7),
        model_config=SimpleNamespace(
            is_hybrid=False,
            is_attention_free=False,
            use_mla=False,
            uses_mrope=False,
            is_encoder_decoder=False,
            hf_text_config=SimpleNamespace(sliding_window=None, layer_types=["sliding_attention"]),
        ),
    )
    return changed(made, changes)


def changed(made: SimpleNamespace, changes: dict[str, Any]) -> SimpleNamespace:
    """Set attributes by names whose dots are written as two underscores."""
    for name, value in changes.items():
        *path, last = name.split("__")
        holder = made
        for part in path:
            holder = getattr(holder, part)
        setattr(holder, last, value)
    return made


@pytest.mark.parametrize("given", [{}, None, {"other": 1}, "ddtree", 3])
def test_not_configured(given: object) -> None:
    """Only a key `ddtree` turns trees on."""
    assert settings_of(given) is None


def test_defaults_and_values() -> None:
    """The budget alone is enough, and every other setting is taken."""
    assert settings_of({"ddtree": {"budget": 32}}) == Settings(32)
    given = {"budget": 8, "shape": "siblings", "max_siblings": 2, "temperature": 2}
    assert settings_of({"ddtree": given}) == Settings(8, "siblings", 2, 2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3, "expected settings"),
        ({}, '"budget" is missing'),
        ({"budget": 0}, "ddtree.budget: expected a whole number from 1 to 128, found 0"),
        ({"budget": 129}, "found 129"),
        ({"budget": True}, "found True"),
        ({"budget": "32"}, "found '32'"),
        ({"budget": 8, "shape": "wide"}, "expected one of auto, spine_first, siblings"),
        ({"budget": 8, "max_siblings": 0}, "ddtree.max_siblings"),
        ({"budget": 8, "temperature": 0}, "ddtree.temperature"),
        ({"budget": 8, "temperature": float("nan")}, "ddtree.temperature"),
        ({"budget": 8, "temperature": float("inf")}, "ddtree.temperature"),
        ({"budget": 8, "temperature": "1"}, "ddtree.temperature"),
        ({"budget": 8, "without": "mask"}, "ddtree.without"),
        ({"budget": 8, "without": ["walk"]}, "ddtree.without"),
        ({"budget": 8, "allow_untested_device": 1}, "ddtree.allow_untested_device"),
        ({"budget": 8, "depth": 7}, "unknown setting depth; known are budget"),
        ({"buget": 8}, 'expected "budget" in the place of "buget"'),
        ({"budget": 8, "max-siblings": 2}, 'expected "max_siblings" in the place of'),
        ({"settings": {"budget": 8}}, "unknown setting settings"),
    ],
)
def test_wrong_settings_are_named(given: object, words: str) -> None:
    """The error says which setting, what was expected and what was found."""
    with pytest.raises(SettingsError) as raised:
        settings_of({"ddtree": given})
    assert words in str(raised.value)


@pytest.mark.parametrize(
    "given",
    [
        {"dd_tree": {"budget": 32}},
        {"DDTree": {"budget": 32}},
        {"ddtre": {"budget": 32}},
        {"dd-tree": 32},
        {"dtree": None},
        {"ddteer": {}},
        {"ddtrees": {"budget": 32}, "ddtree": {"budget": 16}},
        {"budget": 32},
        {"ddtree": {"budget": 32}, "max_siblings": 2},
        {"tree": {"budget": 32, "shape": "auto"}},
        {"ddtree": {"ddtree": {"budget": 32}}},
        {"additional_config": {"ddtree": {"budget": 32}}},
        {"a": {"b": {"Dd_Tree": {"budget": 32}}}},
    ],
)
def test_settings_that_nobody_would_read_are_refused(given: dict[str, Any]) -> None:
    """A name that is nearly right, or the right one in a wrong place; the message has it right."""
    with pytest.raises(SettingsError, match=r'expected {"ddtree": {"budget": 32}}'):
        settings_of(given)


@pytest.mark.parametrize(
    "given",
    [
        {"tree": 3, "kind": {"shape": "siblings"}},
        {"temperature": 0.7, "shape": [2, 2], "default": {"directory": "/tmp"}},
        {"scheduler": {"budget": 5, "shape": 3, "eager": True}, "thinking": {"budget": 1024}},
        {"ascend_scheduler_config": {"enabled": True}, "gdn_prefill_backend": "triton"},
    ],
)
def test_what_others_read_is_left_to_them(given: dict[str, Any]) -> None:
    """vLLM hands the same slot to every platform and plug-in."""
    assert settings_of(given) is None
    assert settings_of({**given, "ddtree": {"budget": 8}}) == Settings(8)


@pytest.mark.parametrize("value", [None, "", "0"])
def test_wrong_output_has_to_be_allowed_from_outside(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    """A configuration alone cannot switch correctness off, nor can the runtime's own code."""
    monkeypatch.delenv("DDTREE_CONTROLS", raising=False)
    if value is not None:
        monkeypatch.setenv("DDTREE_CONTROLS", value)
    with pytest.raises(SettingsError, match=r"leaving out mask makes the output wrong.*=1 where"):
        settings_of({"ddtree": {"budget": 8, "without": ["mask"]}})
    with pytest.raises(SettingsError, match="makes the output wrong"):
        replace(Settings(8), without=("commit",))
    assert settings_of({"ddtree": {"budget": 8, "without": []}}) == Settings(8, without=[])


def test_wrong_output_that_is_allowed_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In vLLM's log, every time."""
    monkeypatch.setenv("DDTREE_CONTROLS", "1")
    config_module._warn.cache_clear()
    assert settings_of({"ddtree": {"budget": 8, "without": ["mask"]}}) is not None
    assert "mask is left out on purpose" in caplog.text
    assert "OUTPUT OF THIS ENGINE IS WRONG" in caplog.text


def test_the_control_is_no_setting_that_is_advertised() -> None:
    """Whoever mistypes a setting is not shown how to break the output."""
    with pytest.raises(SettingsError) as raised:
        settings_of({"ddtree": {"budget": 8, "depth": 7}})
    assert "without" not in str(raised.value)


def test_width_of_verification() -> None:
    """The budget where trees are configured, the drafter's depth where they are not."""

    def getter(made: Any) -> int:
        depth: int = made.speculative_config.num_speculative_tokens
        return depth

    assert num_speculative_tokens(getter, config()) == 16
    assert num_speculative_tokens(getter, config(additional_config={})) == 7
    # What cannot work is judged where the configuration is finished.
    wide = config(speculative_config__num_speculative_tokens=20)
    assert num_speculative_tokens(getter, wide) == 20
    assert num_speculative_tokens(lambda _: 0, config(speculative_config=None)) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"speculative_config": None}, "there is no drafter"),
        ({"use_v2_model_runner": True}, "VLLM_USE_V2_MODEL_RUNNER=0"),
        ({"parallel_config__pipeline_parallel_size": 2}, "--pipeline-parallel-size 1"),
        ({"parallel_config__decode_context_parallel_size": 2}, "context parallelism"),
        ({"parallel_config__prefill_context_parallel_size": 2}, "context parallelism"),
        ({"kv_transfer_config": object()}, "--kv-transfer-config"),
        ({"parallel_config__enable_dbo": True}, "--enable-dbo"),
        ({"parallel_config__enable_batch_sharded_sampling": True}, "sharded"),
        ({"cache_config__kv_sharing_fast_prefill": True}, "--kv-sharing-fast-prefill"),
        ({"watermark_config": object()}, "watermark"),
        ({"speculative_config__enable_adaptive_verification": True}, "adaptive verification"),
        ({"scheduler_config__async_scheduling": True}, "--no-async-scheduling"),
        ({"cache_config__cache_dtype": "fp8"}, "--kv-cache-dtype auto"),
        ({"cache_config__sliding_window": 128}, "sliding windows"),
        ({"model_config__hf_text_config__sliding_window": 128}, "sliding windows"),
        ({"model_config__is_hybrid": True}, "recurrent state"),
        ({"model_config__is_attention_free": True}, "recurrent state"),
        ({"model_config__use_mla": True}, "MLA"),
        ({"model_config__uses_mrope": True}, "M-RoPE"),
        ({"model_config__is_encoder_decoder": True}, "encoder-decoder"),
        ({"speculative_config__method": "medusa"}, "take one of the methods ngram"),
        ({"speculative_config__rejection_sample_method": "synthetic"}, "rejection_sample_method"),
        ({"speculative_config__draft_sample_method": "probabilistic"}, "draft_sample_method"),
        ({"speculative_config__num_speculative_tokens_per_batch_size": [1]}, "per_batch_size"),
        ({"speculative_config__use_heterogeneous_vocab": True}, "vocabulary of its own"),
        ({"speculative_config__num_speculative_tokens": 17}, 'set "budget" to 17 or more'),
    ],
)
def test_configurations_are_refused_with_a_remedy(change: dict[str, Any], words: str) -> None:
    """One property at a time makes a configuration unusable."""
    check_config(Settings(16), config())
    with pytest.raises(Refused, match="to start, ") as raised:
        check_config(Settings(16), config(**change))
    assert words in str(raised.value)


@pytest.mark.parametrize("method", ["ngram", "custom_class"])
def test_what_drafts_without_a_model_is_refused_on_the_v2_runner(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the V2 runner is hooked, the refusal is the drafter's, and names the other runner."""
    monkeypatch.setattr(refusals, "is_hooked", lambda module: module == refusals.V2_RUNNER)
    check_config(Settings(16), config(use_v2_model_runner=True))
    check_config(Settings(16), config(speculative_config__method=method))
    asked = config(use_v2_model_runner=True, speculative_config__method=method)
    with pytest.raises(Refused, match=r"drafts without a model.*VLLM_USE_V2_MODEL_RUNNER=0"):
        check_config(Settings(16), asked)


def test_steps_that_are_scheduled_ahead_are_the_v2_runner_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There nothing waits for the device."""
    monkeypatch.setattr(refusals, "is_hooked", lambda _: True)
    ahead = {"scheduler_config__async_scheduling": True}
    check_config(Settings(16), config(use_v2_model_runner=True, **ahead))


def test_attention_that_is_fused_is_refused() -> None:
    """Where the compiler joins it with quantisation, which only one of its modes does."""
    fused = {"compilation_config__pass_config": SimpleNamespace(fuse_attn_quant=True)}
    check_config(Settings(16), config(compilation_config__mode=0, **fused))
    with pytest.raises(Refused, match='"fuse_attn_quant": false'):
        check_config(Settings(16), config(compilation_config__mode=3, **fused))


GPU = {"device_config__device_type": "cuda", "compilation_config__cudagraph_mode": NO_FULL_GRAPHS}


def test_other_devices_are_refused_with_a_remedy() -> None:
    """Each until it is allowed, with full CUDA graphs, and beside another attention."""
    allowed = Settings(16, allow_untested_device=True)
    drafter = {"speculative_config__method": "eagle"}
    with pytest.raises(Refused, match='"allow_untested_device": true'):
        check_config(Settings(16), config(**GPU, **drafter))
    check_config(allowed, config(**GPU, **drafter))
    with pytest.raises(Refused, match="PIECEWISE"):
        check_config(allowed, config(device_config__device_type="cuda", **drafter))
    for name, known in (("FLASH_ATTN", False), ("TRITON_ATTN", True)):
        asked = config(**GPU, **drafter, attention_config__backend=SimpleNamespace(name=name))
        if known:
            check_config(allowed, asked)
            continue
        with pytest.raises(Refused, match="--attention-backend TRITON_ATTN"):
            check_config(allowed, asked)


@pytest.mark.parametrize("version", ["0.20.1", "0.20.2", "0.21.0", "0.23.0", "0.24.0", "0.32.0"])
def test_dflash_is_refused_where_its_target_has_no_backend(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """By what the release's own files say; on a CPU, and with other drafters, nothing is asked."""
    attention = releases.tree(version) / "vllm/v1/attention"
    files = {
        non_causal.SELECTOR: attention / "selector.py",
        non_causal.TRITON: attention / "backends/triton_attn.py",
    }
    specs = {name: SimpleNamespace(origin=str(file)) for name, file in files.items()}
    monkeypatch.setattr("importlib.util.find_spec", specs.__getitem__)
    settings = Settings(16, allow_untested_device=True)
    check_config(settings, config())
    check_config(settings, config(**GPU, speculative_config__method="draft_model"))
    if version.startswith("0.20."):
        with pytest.raises(Refused, match=r"TRITON_ATTN does not offer.*take another drafter"):
            check_config(settings, config(**GPU))
    else:
        check_config(settings, config(**GPU))


def layer(**changes: Any) -> SimpleNamespace:
    """An attention layer that trees work with."""
    impl = SimpleNamespace(
        do_kv_cache_update=print,
        sliding_window=-1,
        alibi_slopes=None,
        sinks=None,
        logits_soft_cap=0,
        attn_type="decoder",
        kv_cache_dtype="auto",
    )
    backend = SimpleNamespace(get_name=lambda: "TRITON_ATTN")
    return changed(SimpleNamespace(impl=impl, attn_backend=backend), changes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"impl__sliding_window": 128}, "sliding window"),
        ({"impl__sliding_window": (127, 0)}, "sliding window"),
        ({"impl__alibi_slopes": [0.5]}, "ALiBi"),
        ({"impl__sinks": [0.0]}, "sinks"),
        ({"impl__logits_soft_cap": 30.0}, "soft cap"),
        ({"impl__attn_type": "encoder"}, "self-attention"),
        ({"impl__kv_cache_dtype": "fp8"}, "--kv-cache-dtype auto"),
        ({"attn_backend": SimpleNamespace(get_name=lambda: "FLASH_ATTN")}, "TRITON_ATTN"),
        ({"impl": SimpleNamespace()}, "written apart from attention"),
    ],
)
def test_layers_are_refused(change: dict[str, Any], words: str) -> None:
    """One property at a time; no window is written in three ways."""
    for none in (-1, None, (-1, -1)):
        check_layer("layers.0", layer(impl__sliding_window=none))
    with pytest.raises(Refused, match=r"layers\.0") as raised:
        check_layer("layers.0", layer(**change))
    assert words in str(raised.value)
