"""What vLLM's compiled extension does for sampling and drafting on a CPU, in plain torch."""

from __future__ import annotations

import itertools
from typing import Any

import torch


def rejection_greedy(
    output: torch.Tensor,
    ends: torch.Tensor,
    drafts: torch.Tensor,
    targets: torch.Tensor,
    bonus: torch.Tensor,
    is_greedy: torch.Tensor | None,
    width: int,
) -> None:
    """Take target tokens up to the first draft that is none, else the bonus token too."""
    del width
    first = 0
    for line, last in enumerate(ends.tolist()):
        if is_greedy is None or bool(is_greedy[line]):
            same = (drafts[first:last] == targets[first:last]).long().cumprod(0)
            taken = int(same.sum())
            line_of = torch.cat([targets[first:last], bonus[line].flatten()])[: taken + 1]
            output[line, : taken + 1] = line_of
        first = last


def repeated(
    out: torch.Tensor, values: torch.Tensor, ends: torch.Tensor, before: int, after: int
) -> None:
    """A request's value at each of its drafts, one value replaced by another."""
    counts = ends.diff(prepend=ends.new_zeros(1))
    out.copy_(torch.where(values == before, after, values).repeat_interleave(counts))


def recovered(
    out: torch.Tensor,
    ends: torch.Tensor,
    drafts: torch.Tensor,
    draft_probs: torch.Tensor | None,
    probs: torch.Tensor,
    races: torch.Tensor,
    *rest: Any,
) -> None:
    """A draw of what is left of the target's distribution at every draft."""
    del rest
    request = torch.repeat_interleave(ends.diff(prepend=ends.new_zeros(1)))
    left = probs.clone()
    if draft_probs is None:
        left.scatter_(1, drafts[:, None].long(), 0)
    else:
        left.sub_(draft_probs).clamp_(min=0)
    out.copy_((left * races[request]).argmax(-1))


def rejection_random(
    output: torch.Tensor,
    ends: torch.Tensor,
    drafts: torch.Tensor,
    draft_probs: torch.Tensor | None,
    probs: torch.Tensor,
    bonus: torch.Tensor,
    instead: torch.Tensor,
    uniform: torch.Tensor,
    is_greedy: torch.Tensor,
    *rest: Any,
) -> None:
    """Take drafts while the target's share of each outweighs its coin, then one token more."""
    del rest
    first = 0
    for line, last in enumerate(ends.tolist()):
        row, taken = torch.arange(first, last), 0
        wanted = probs[row, drafts[row].long()]
        offered = 1 if draft_probs is None else draft_probs[row, drafts[row].long()]
        if not bool(is_greedy[line]):
            taken = int((wanted / offered >= uniform[row]).long().cumprod(0).sum())
            output[line, :taken] = drafts[first : first + taken]
            whole = first + taken == last
            output[line, taken] = bonus[line].flatten()[0] if whole else instead[first + taken]
        first = last


def next_tokens(
    sampled: torch.Tensor,
    discarded: torch.Tensor,
    backup: torch.Tensor,
    out: torch.Tensor,
    valid: torch.Tensor,
    vocabulary: int,
    *rest: Any,
) -> None:
    """The last valid token of every request and how many there are; else the backup."""
    del rest
    requests, width = sampled.shape
    good = (sampled >= 0) & (sampled < vocabulary) & ~discarded[:requests, None]
    last = torch.where(good, torch.arange(width), -1).amax(1)
    found = sampled.gather(1, last.clamp(min=0)[:, None])[:, 0]
    out.copy_(torch.where(last >= 0, found, backup[:requests]))
    valid.copy_(good.sum(1))


def rows_to_sample(
    ends: torch.Tensor,
    valid: torch.Tensor,
    starts: torch.Tensor,
    out: torch.Tensor,
    rejected: torch.Tensor,
    requests: int,
) -> None:
    """The last row of every request that is not rejected, and how many are."""
    drafted = ends.diff(prepend=ends.new_zeros(1))
    rejected.copy_(torch.where(drafted > 0, drafted + 1 - valid, 0))
    out.copy_(starts[1 : requests + 1] - 1 - rejected)


def drafter_inputs(
    ids: torch.Tensor,
    positions: torch.Tensor,
    following: torch.Tensor,
    out_ids: torch.Tensor,
    out_positions: torch.Tensor,
    is_rejected: torch.Tensor,
    is_masked: torch.Tensor,
    sampled_rows: torch.Tensor,
    hidden_rows: torch.Tensor,
    starts: torch.Tensor,
    ends: torch.Tensor,
    padding: int,
    *rest: Any,
) -> None:
    """A request's accepted rows, then its newest token, then room for what was rejected.

    Raises:
        NotImplementedError: a drafter asks for another form than a draft model does.
    """
    del hidden_rows
    if rest[2:] != (1, False):
        raise NotImplementedError(f"expected one more row and no shift, found {rest[2:]}")
    for line, (first, last) in enumerate(itertools.pairwise(starts.tolist())):
        kept = int(ends[line]) - first + 1
        rows = slice(first + line, last + line + 1)
        place = torch.arange(last - first + 1)
        out_ids[rows] = padding
        out_ids[rows][:kept] = ids[first : first + kept]
        out_ids[rows][kept] = following[line]
        out_positions[rows] = torch.where(place <= kept, positions[first] + place, 0)
        is_rejected[rows] = place > kept
        is_masked[rows] = False
        sampled_rows[line] = first + line + kept


def next_slots(
    positions: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
    out_positions: torch.Tensor,
    slots: torch.Tensor,
    block: int,
    longest: int,
    padding: int,
) -> None:
    """One position further, with the slot that belongs to it; the start again past the longest."""
    beyond = positions + 1 >= longest
    place = torch.where(beyond, 0, positions + 1)
    blocks = table.gather(1, (place // block)[:, None].long())[:, 0]
    requests = len(positions)
    out_positions[:requests] = place
    slots[:requests] = torch.where(beyond, padding, blocks.long() * block + place % block)
    lengths[:requests] = torch.where(beyond, 1, lengths[:requests] + 1)


OPERATORS = {
    "rejection_greedy_sample_kernel_impl": rejection_greedy,
    "rejection_random_sample_kernel_impl": rejection_random,
    "expand_kernel_impl": repeated,
    "sample_recovered_tokens_kernel_impl": recovered,
    "eagle_prepare_next_token_padded_kernel_impl": next_tokens,
    "eagle_prepare_inputs_padded_kernel_impl": rows_to_sample,
    "copy_and_expand_eagle_inputs_kernel_impl": drafter_inputs,
    "eagle_step_slot_mapping_metadata_kernel_impl": next_slots,
}
