"""Walking with draws from the target emits exact draws from the target, whatever the tree.

Tokens of one step are those of the accepted path and the bonus token; steps are repeated, each on
the same tree, until three tokens are out. The counts of the 27 outcomes are compared with their
exact probabilities by chi-square. The bound is the quantile of the null distribution that a right
walk exceeds once in a million runs; the seeds are fixed, so a run repeats.
"""

from collections.abc import Callable

import pytest
import torch
from scipy.stats import chi2

from ddtree.kernels.tree.walk import walk

from . import trees
from .trees import Shape

VOCABULARY, LENGTH, TRIALS = 3, 3, 20_000
OUTCOMES = VOCABULARY**LENGTH
BOUND = float(chi2.ppf(1 - 1e-6, OUTCOMES - 1))

# Target tokens [trials, rows], tokens, parents, count, and the conditional distribution
# [trials, rows, vocabulary] to accepted rows first, accepted counts and bonus tokens.
Walker = Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]]

TREES = {
    "no drafts": trees.empty(),
    "one node": trees.one_node(1),
    "chain": Shape((0, 1, 2), (1, 0, 2)),
    "star": trees.star(3),
    "star of two": Shape((0, 0), (2, 0)),
    "two levels": Shape((0, 0, 0, 1, 1, 1, 2, 2, 2), (0, 1, 2) * 3),
    **{f"random {seed}": trees.random_tree(7, seed, VOCABULARY) for seed in range(4)},
}


def distribution(seed: int) -> torch.Tensor:
    """Probability of the next token after the two before it; [V, V, V], all at least 0.1."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand((VOCABULARY,) * 3, generator=generator, dtype=torch.float64)
    return 0.1 + (1 - 0.1 * VOCABULARY) * weights / weights.sum(-1, keepdim=True)


def exact(next_token: torch.Tensor) -> torch.Tensor:
    """Probability of every continuation of the context 0, 0; [27]."""
    first = next_token[0, 0]
    second = next_token[0]
    return (first[:, None, None] * second[:, :, None] * next_token).flatten()


def draw(weights: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """One token per row of [..., V] by inverting the cumulative distribution."""
    coin = torch.rand((*weights.shape[:-1], 1), generator=generator, dtype=weights.dtype)
    return (coin >= weights.cumsum(-1)).sum(-1).clamp(max=weights.shape[-1] - 1)


def contexts(shape: Shape, last: torch.Tensor) -> torch.Tensor:
    """The two last tokens of every row's prefix; [trials, rows, 2] from the root's [trials, 2]."""
    rows = [last]
    for parent, token in zip(shape.parents, shape.tokens, strict=True):
        rows.append(torch.stack([rows[parent][:, 1], torch.full_like(last[:, 1], token)], 1))
    return torch.stack(rows, 1)


def emit(shape: Shape, next_token: torch.Tensor, walker: Walker, seed: int) -> torch.Tensor:
    """Three tokens per trial, by as many steps as the shortest needs; [trials, 3]."""
    generator = torch.Generator().manual_seed(seed)
    width = max(shape.count, 1)
    tree = trees.batch([shape], width)
    tokens = tree.tokens.expand(TRIALS, -1).contiguous()
    parents = tree.parents.expand(TRIALS, -1).contiguous()
    count = tree.count.expand(TRIALS).contiguous()
    # The context 0, 0, then what is emitted; behind it, room for the longest step.
    text = torch.zeros((TRIALS, 2 + LENGTH + width + 1), dtype=torch.int64)
    length = torch.full((TRIALS,), 2)
    for _ in range(LENGTH):
        last = text.gather(1, length[:, None] + torch.tensor([-2, -1]))
        seen = contexts(shape, last)
        weights = next_token[seen[..., 0], seen[..., 1]]
        target = torch.zeros((TRIALS, width + 1), dtype=torch.int64)
        target[:, : shape.count + 1] = draw(weights, generator)
        perm, accepted, bonus = walker(target, tokens, parents, count, weights, generator)
        place = torch.arange(width + 1)
        drafted = torch.cat([torch.zeros((TRIALS, 1)).long(), tokens.long()], 1)
        path = drafted.gather(1, perm.long())
        path = torch.where(place < accepted[:, None] + 1, path, bonus[:, None])
        # A finished trial keeps its text: further steps write behind the third token.
        start = length.clamp(max=2 + LENGTH)
        text.scatter_(1, start[:, None] + place[1:] - 1, path[:, 1:])
        text.scatter_(1, (start + accepted)[:, None], bonus[:, None])
        length = (start + accepted + 1).clamp(max=2 + LENGTH)
    return text[:, 2 : 2 + LENGTH]


def statistic(emitted: torch.Tensor, probability: torch.Tensor) -> float:
    code = (emitted * torch.tensor([VOCABULARY**2, VOCABULARY, 1])).sum(1)
    counts = torch.bincount(code, minlength=OUTCOMES).double()
    expected = probability * TRIALS
    assert float(expected.min()) >= 5, "a cell is too rare for chi-square"
    return float(((counts - expected) ** 2 / expected).sum())


def right(
    target: torch.Tensor,
    tokens: torch.Tensor,
    parents: torch.Tensor,
    count: torch.Tensor,
    *_: object,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    result = walk(target, tokens, parents, count)
    return result.perm, result.accepted.long(), result.bonus


def draws_again(
    target: torch.Tensor,
    tokens: torch.Tensor,
    parents: torch.Tensor,
    count: torch.Tensor,
    weights: torch.Tensor,
    generator: torch.Generator,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Wrong: where no child matches, the bonus token is drawn again."""
    result = walk(target, tokens, parents, count)
    row = result.bonus_row.long()
    fresh = draw(weights[torch.arange(len(row)), row], generator)
    return result.perm, result.accepted.long(), fresh


def follows_the_most_probable(
    target: torch.Tensor,
    tokens: torch.Tensor,
    parents: torch.Tensor,
    count: torch.Tensor,
    weights: torch.Tensor,
    *_: object,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Wrong: a row's most probable token is followed if drafted; only the bonus token is drawn."""
    greedy = target.clone()
    greedy[:, : weights.shape[1]] = weights.argmax(-1)
    result = walk(greedy, tokens, parents, count)
    bonus = target.gather(1, result.bonus_row.long()[:, None])[:, 0]
    return result.perm, result.accepted.long(), bonus


@pytest.mark.parametrize("name", list(TREES))
def test_emitted_tokens_have_the_targets_distribution(name: str) -> None:
    next_token = distribution(seed=11)
    emitted = emit(TREES[name], next_token, right, seed=5)
    assert statistic(emitted, exact(next_token)) < BOUND


@pytest.mark.parametrize("walker", [draws_again, follows_the_most_probable])
@pytest.mark.parametrize("name", ["chain", "star of two", "random 0", "random 1"])
def test_a_wrong_walk_is_caught(name: str, walker: Walker) -> None:
    next_token = distribution(seed=11)
    emitted = emit(TREES[name], next_token, walker, seed=5)
    assert statistic(emitted, exact(next_token)) > 2 * BOUND


def test_trees_differ_in_how_much_they_accept() -> None:
    """Control: branches beyond the first are accepted, so the comparison covers them."""
    accepted: dict[str, float] = {}

    def counting(*args: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        found = right(*args)
        accepted[name] = accepted.get(name, 0.0) + float(found[1].double().mean())
        return found

    for name in ("no drafts", "one node", "star", "two levels"):
        emit(TREES[name], distribution(seed=11), counting, seed=5)
    per_step = {key: total / LENGTH for key, total in accepted.items()}
    assert per_step["no drafts"] == 0
    assert 0 < per_step["one node"] < 1
    # Every token is drafted at the first level, two of three lead to a second one.
    assert per_step["star"] == 1
    assert 1 < per_step["two levels"] < 2
