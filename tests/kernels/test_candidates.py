"""Candidates from logits against float64 loops and against torch's own log-softmax."""

from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from ddtree.kernels.tree.candidates import Form, candidates, vectorised

from .drafts import INF
from .no_sync import no_host_sync

FORMS: tuple[Form, ...] = ("reference", "vectorised")
NAN = float("nan")
# Float32 arithmetic on log-probabilities of up to about 100; each of V terms adds half a unit.
RTOL, ATOL = 2e-6, 2e-5


def logits_of(
    seed: int, shape: tuple[int, int, int], dtype: torch.dtype, *, odd: bool
) -> torch.Tensor:
    """Logits without equal ones among the finite, some of them not finite where `odd`."""
    random = torch.Generator().manual_seed(seed)
    # Steps of a quarter are exact in every dtype.
    order = torch.rand(shape, generator=random).argsort(-1)
    logits = (order.float() - shape[2] / 2) / 4
    if odd:
        lost = torch.rand(shape, generator=random) < 0.3
        values = torch.tensor([NAN, -INF])[torch.randint(0, 2, shape, generator=random)]
        logits = torch.where(lost, values, logits)
    return logits.to(dtype)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    shape=st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from((1, 2, 7, 64, 150))),
    dtype=st.sampled_from((torch.float32, torch.float16, torch.bfloat16)),
    odd=st.booleans(),
    share=st.floats(0, 1),
    warmth=st.sampled_from((None, 0.5, 1.0, 3.0, 0.0, -1.0)),
    block=st.sampled_from((1, 5, 64, 8192)),
)
def test_vectorised_equals_reference(
    seed: int,
    shape: tuple[int, int, int],
    dtype: torch.dtype,
    odd: bool,
    share: float,
    warmth: float | None,
    block: int,
    device: torch.device,
) -> None:
    logits = logits_of(seed, shape, dtype, odd=odd).to(device)
    k = max(1, round(share * shape[2]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectorised, "BLOCK", block)
        ids, logp = candidates(logits, k, temperature=warmth, form="vectorised")
    expected_ids, expected = candidates(logits, k, temperature=warmth, form="reference")
    assert (ids.dtype, logp.dtype) == (torch.int32, torch.float32)
    assert ids.shape == logp.shape == (*shape[:2], k)
    torch.testing.assert_close(logp, expected, rtol=RTOL, atol=ATOL)
    # Which of the impossible tokens fill the end is not specified.
    possible = expected > -INF
    assert torch.equal(ids.where(possible, 0), expected_ids.where(possible, 0))
    assert (ids.sort(-1).values.diff(dim=-1) > 0).all()


@pytest.mark.parametrize("form", FORMS)
def test_equals_log_softmax(form: Form, device: torch.device) -> None:
    logits = torch.randn(2, 3, 999, generator=torch.Generator().manual_seed(0)).to(device)
    temperature = torch.tensor([0.7, 1.6], device=device)
    ids, logp = candidates(logits, 16, temperature=temperature, form=form)
    full = (logits.double() / temperature[:, None, None]).log_softmax(-1)
    best = full.topk(16)
    assert torch.equal(ids.long(), best.indices)
    torch.testing.assert_close(logp.double(), best.values, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("form", FORMS)
def test_values_that_are_not_finite(form: Form, device: torch.device) -> None:
    rows = [
        [NAN, 0.0, -INF, 0.0],
        [NAN, -INF, NAN, -INF],
        [1.0, INF, 5.0, INF],
        [3e38, -3e38, 0.0, -INF],
    ]
    logits = torch.tensor([rows], device=device)
    ids, logp = candidates(logits, 4, temperature=0.5, form=form)
    half = -0.6931472
    assert [ids[0, row, :2].tolist() for row in (0, 2)] == [[1, 3], [1, 3]]
    assert ids[0, 3, 0].item() == 0
    torch.testing.assert_close(logp[0, 0].cpu(), torch.tensor([half, half, -INF, -INF]))
    assert logp[0, 1].tolist() == [-INF] * 4
    torch.testing.assert_close(logp[0, 2, :2].cpu(), torch.tensor([half, half]))
    assert logp[0, 3, 0].item() == 0.0
    assert (logp[0, 2, 2:] < -1e38).all()
    assert (logp[0, 3, 1:] < -1e38).all()


@pytest.mark.parametrize("form", FORMS)
def test_greedy_requests_keep_their_logits(form: Form, device: torch.device) -> None:
    logits = torch.randn(4, 2, 9, generator=torch.Generator().manual_seed(1)).to(device)
    temperature = torch.tensor([0.0, -2.0, NAN, INF], device=device)
    plain = candidates(logits, 5, form=form)
    cooled = candidates(logits, 5, temperature=temperature, form=form)
    assert torch.equal(plain.ids, cooled.ids)
    torch.testing.assert_close(plain.logp, cooled.logp)


@pytest.mark.parametrize("form", FORMS)
def test_equal_logits_are_in_the_order_of_their_ids(form: Form, device: torch.device) -> None:
    logits = torch.zeros(1, 1, 200, device=device)
    logits[0, 0, ::7] = 1.0
    ids, _ = candidates(logits, 29, form=form)
    assert ids[0, 0].tolist() == list(range(0, 200, 7))


def test_any_strides(device: torch.device) -> None:
    logits = torch.randn(3, 40, 4, generator=torch.Generator().manual_seed(2)).to(device)
    view = logits.mT[:, ::2]
    assert torch.equal(candidates(view, 7).ids, candidates(view.contiguous(), 7).ids)


class Sizes(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """Notes the largest result of any operator."""

    largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        results = result if isinstance(result, tuple) else (result,)
        self.largest = max(self.largest, *(tensor.numel() for tensor in results))
        return result


def test_no_tensor_of_the_whole_vocabulary_is_made(device: torch.device) -> None:
    logits = torch.zeros(1, 2, 5 * vectorised.BLOCK, device=device)
    with Sizes() as sizes:  # type: ignore[no-untyped-call]  # nor here
        candidates(logits, 8, temperature=0.5, form="vectorised")
    assert 0 < sizes.largest <= 2 * vectorised.BLOCK


def test_vectorised_does_not_wait_for_the_device(device: torch.device) -> None:
    logits = torch.zeros(2, 3, 100, dtype=torch.bfloat16, device=device)
    temperature = torch.ones(2, device=device)
    with no_host_sync():
        candidates(logits, 8, form="vectorised")
        candidates(logits, 8, temperature=temperature, form="vectorised")
        candidates(logits, 8, temperature=0.5, form="vectorised")


def test_forms_are_all_tested() -> None:
    assert {*FORMS, "auto"} == set(get_args(Form))


LOGITS = torch.zeros((2, 3, 4))
GIVEN: dict[str, Any] = {"logits": LOGITS, "k": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits": LOGITS.double()}, "logits: expected dtype"),
        ({"logits": LOGITS[0]}, r"logits: expected shape \[any, any, any\]"),
        ({"k": 0}, "k: expected 1 to 4, found 0"),
        ({"k": 5}, "k: expected 1 to 4, found 5"),
        ({"temperature": torch.ones(3)}, r"temperature: expected shape \[2\]"),
        ({"temperature": torch.ones(2).half()}, "temperature: expected dtype"),
        ({"temperature": torch.ones(2, device="meta")}, "temperature: expected device cpu"),
        ({"form": "kernel"}, "form: expected one of auto, reference, vectorised"),
    ],
)
def test_wrong_arguments(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        candidates(**(GIVEN | change))
