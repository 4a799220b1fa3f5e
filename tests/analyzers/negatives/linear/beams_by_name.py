# mypy: ignore-errors
"""Beams and their parents by name; each beam is a chain, and there is one beam per request."""

import torch
import triton
import triton.language as tl


@triton.jit
def _beam_kernel(out_ptr, beam_ptr, target_ptr, beam_width):
    parent_beam = tl.program_id(0).to(tl.int64) * beam_width
    rejected = False
    for child in range(beam_width):
        if not rejected:
            proposed = tl.load(beam_ptr + parent_beam + child)
            chosen = tl.load(target_ptr + parent_beam + child)
            tl.store(out_ptr + parent_beam + child, chosen)
            rejected = proposed != chosen


def verify(tokens, target):
    out = torch.full_like(target, -1)
    _beam_kernel[(target.shape[0],)](out, tokens, target, target.shape[1])
    return out
