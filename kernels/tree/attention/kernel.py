"""Tree attention on a GPU: context split over programs, own rows masked, merged by log-sum-exp."""

# A jitted function's arguments are Triton's own types, which have no annotations.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl

# Scores are kept in base 2, since exp2 is what the hardware has.
LOG2_E = 1.4426950408889634
# Lanes and keys per tile, and warps, by the bytes of an element and the padded head size; chosen
# so that no target spills: a float32 product runs on plain registers, not on tensor cores.
TILES = {
    (2, 64): (64, 64, 4),
    (2, 128): (32, 32, 4),
    (2, 256): (32, 32, 4),
    (4, 64): (32, 32, 8),
    (4, 128): (16, 32, 8),
    (4, 256): (16, 16, 4),
}
MERGE_WARPS = 8
STAGES = 2
CACHE_AXES = ("BLOCK", "SLOT", "HEAD", "DIM")
# Context positions below which one more split costs more than it saves.
MIN_SPLIT = 256
MAX_SPLITS = 32
# Splits are added until there are this many programs per multiprocessor.
PROGRAMS_PER_SM = 2


@triton.jit
def _request_of(block, query_start_ptr, num_requests, BLOCK_Q: tl.constexpr):
    """Request that owns a block of rows; `num_requests` stands for the rows after the last one.

    Request r owns the blocks from query_start[r] // BLOCK_Q + r on: enough for its rows, and no
    prefix sum over the batch is needed to find them.
    """
    low = num_requests * 0
    high = num_requests
    while low < high:
        middle = (low + high + 1) // 2
        first = tl.load(query_start_ptr + middle) // BLOCK_Q + middle
        inside = first <= block
        low = tl.where(inside, middle, low)
        high = tl.where(inside, high, middle - 1)
    return low


@triton.jit
def _tile(
    cache_ptr,
    table_ptr,
    position,
    live,
    dim,
    BLOCK_STRIDE: tl.constexpr,
    SLOT_STRIDE: tl.constexpr,
    DIM_STRIDE: tl.constexpr,
    SLOTS: tl.constexpr,
    DIM: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """Rows [BLOCK_N, BLOCK_D] of one head of the cache; positions that are not live read as 0.

    A dead slot may hold NaN, and 0 * NaN is NaN: masking its score would not be enough.
    """
    block = tl.load(table_ptr + position // SLOTS, mask=live, other=0).to(tl.int64)
    slot = (position % SLOTS).to(tl.int64)
    offset = block * BLOCK_STRIDE + slot * SLOT_STRIDE
    pointers = cache_ptr + offset[:, None] + dim[None, :] * DIM_STRIDE
    if ALIGNED:
        pointers = tl.multiple_of(pointers, (16, 16))
    wanted = live[:, None]
    # Without padding of the head, one predicate per row is enough.
    if dim.shape[0] != DIM:
        wanted = wanted & (dim[None, :] < DIM)
    return tl.load(pointers, mask=wanted, other=0.0)


@triton.jit
def _dot(left, right, WIDEN: tl.constexpr):
    """Product with float32 accumulation and no rounding of the factors to a shorter type."""
    # Triton's interpreter would multiply the bits of bfloat16 as if they were integers.
    if WIDEN:
        return tl.dot(left.to(tl.float32), right.to(tl.float32), input_precision="ieee")
    return tl.dot(left, right, input_precision="ieee")


@triton.jit
def _step(acc, top, total, query, key, value, seen, scale, WIDEN: tl.constexpr):
    """One step of the online softmax; a row that has seen nothing keeps `top` at -inf."""
    scores = _dot(query, tl.trans(key), WIDEN) * scale
    scores = tl.where(seen, scores, float("-inf"))
    new_top = tl.maximum(top, tl.max(scores, 1))
    # -inf - -inf is NaN, so an untouched row is measured from 0.
    base = tl.where(new_top == float("-inf"), 0.0, new_top)
    weights = tl.exp2(scores - base[:, None])
    shrink = tl.exp2(top - base)
    total = total * shrink + tl.sum(weights, 1)
    acc = acc * shrink[:, None]
    if not WIDEN:
        weights = weights.to(value.dtype)
    acc += _dot(weights, value, WIDEN)
    return acc, new_top, total


@triton.jit
def _own_bits(visible_ptr, row, word, chain, end, visible_rows, WORDS: tl.constexpr):
    """One word per row: bit b tells whether the row sees own row 64 * word + b, below `end`.

    Whole words are combined first, so that a tile needs one predicate instead of four.
    """
    rows = tl.where((chain == 0) & (word < WORDS), visible_rows, 0)
    marked = tl.load(visible_ptr + row.to(tl.int64) * WORDS + word, mask=row < rows, other=0)
    lead = (row - word * 64).to(tl.int64)
    # Shifts by 64 and more are undefined, so they are kept within the word.
    self_bit = tl.full(lead.shape, 1, tl.int64) << tl.minimum(tl.maximum(lead, 0), 63)
    below = tl.where(lead > 63, -1, tl.where(lead < 0, 0, self_bit - 1))
    self_bit = tl.where((lead < 0) | (lead > 63), 0, self_bit)
    bits = tl.where(chain != 0, below, marked) | self_bit
    rest = (end - word * 64).to(tl.int64)
    one = tl.full([1], 1, tl.int64)
    return bits & tl.where(rest > 63, -1, (one << tl.minimum(rest, 63)) - 1)


# Numbers that differ from step to step must not each compile a kernel of their own.
@triton.jit(
    do_not_specialize=["num_requests", "num_rows", "num_heads", "visible_rows", "stride_table"]
)
def attend_kernel(
    out_ptr,  # [splits, T, Hq, dim]
    lse_ptr,  # [splits, T, Hq] float32, base 2
    query_ptr,  # [T, Hq, dim]
    key_ptr,  # [blocks, block, Hkv, dim]
    value_ptr,  # [blocks, block, Hkv, dim]
    block_table_ptr,  # [R, max_blocks] int32
    seq_lens_ptr,  # [R] int32
    query_start_ptr,  # [R + 1] int32
    visible_ptr,  # [R, Q, W] int64
    is_chain_ptr,  # [R] bool
    scale,
    num_requests,
    num_rows,
    num_heads,
    visible_rows,
    stride_table,
    QUERY_ROW: tl.constexpr, QUERY_HEAD: tl.constexpr,
    OUT_ROW: tl.constexpr, OUT_HEAD: tl.constexpr,
    KEY_BLOCK: tl.constexpr, KEY_SLOT: tl.constexpr,
    KEY_HEAD: tl.constexpr, KEY_DIM: tl.constexpr,
    VALUE_BLOCK: tl.constexpr, VALUE_SLOT: tl.constexpr,
    VALUE_HEAD: tl.constexpr, VALUE_DIM: tl.constexpr,
    DIM: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    GROUP: tl.constexpr, HEADS: tl.constexpr, SLOTS: tl.constexpr, WORDS: tl.constexpr,
    SPLIT: tl.constexpr, ALIGNED: tl.constexpr, STAGES: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    """BLOCK_M lanes = BLOCK_M // HEADS query rows x HEADS heads that share one KV head.

    Program (block of rows, KV head and part of its group, split): the splits share the context,
    the last one also takes the request's own rows. Writes every row, with zeros where nothing
    is seen; with SPLIT, rows of an empty split get lse = -inf and no values.
    """
    BLOCK_Q: tl.constexpr = BLOCK_M // HEADS
    PARTS: tl.constexpr = (GROUP + HEADS - 1) // HEADS
    block = tl.program_id(0)
    kv_head = tl.program_id(1) // PARTS
    split = tl.program_id(2)
    num_splits = tl.num_programs(2)

    request = _request_of(block, query_start_ptr, num_requests, BLOCK_Q)
    real = request < num_requests
    first = tl.load(query_start_ptr + request)
    after = tl.load(query_start_ptr + request + 1, mask=real, other=num_rows)
    rows = after - first
    row_start = (block - (first // BLOCK_Q + request)) * BLOCK_Q
    if row_start >= rows:
        return
    seq_len = tl.load(seq_lens_ptr + request, mask=real, other=0)
    chain = tl.load(is_chain_ptr + request, mask=real, other=0).to(tl.int32)
    context = tl.maximum(seq_len - rows, 0)

    lane = tl.arange(0, BLOCK_M)
    ahead = lane // HEADS
    row = row_start + ahead
    in_group = (tl.program_id(1) % PARTS) * HEADS + lane % HEADS
    head = kv_head * GROUP + in_group
    active = (lane < BLOCK_Q * HEADS) & (row < rows) & (in_group < GROUP)
    dim = tl.arange(0, BLOCK_D)
    stored = active[:, None] & (dim[None, :] < DIM)
    # The block's first row may lie beyond 32 bits, what the lanes add to it does not.
    query_row = (first + row_start).to(tl.int64)
    query_offset = ahead * QUERY_ROW + head * QUERY_HEAD
    query_pointers = query_ptr + query_row * QUERY_ROW + query_offset[:, None] + dim[None, :]
    if ALIGNED:
        query_pointers = tl.multiple_of(query_pointers, (16, 16))
    query = tl.load(query_pointers, mask=stored, other=0.0)

    table_ptr = block_table_ptr + request.to(tl.int64) * stride_table
    keys = key_ptr + kv_head.to(tl.int64) * KEY_HEAD
    values = value_ptr + kv_head.to(tl.int64) * VALUE_HEAD
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    top = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)

    share = tl.cdiv(tl.cdiv(context, num_splits), BLOCK_N) * BLOCK_N
    low = split * share
    high = tl.minimum(low + share, context)
    for start in tl.range(low, high, BLOCK_N, num_stages=STAGES):
        position = start + tl.arange(0, BLOCK_N)
        live = position < high
        key = _tile(
            keys, table_ptr, position, live, dim,
            KEY_BLOCK, KEY_SLOT, KEY_DIM, SLOTS, DIM, ALIGNED,
        )  # fmt: skip
        value = _tile(
            values, table_ptr, position, live, dim,
            VALUE_BLOCK, VALUE_SLOT, VALUE_DIM, SLOTS, DIM, ALIGNED,
        )  # fmt: skip
        acc, top, total = _step(acc, top, total, query, key, value, live[None, :], scale, WIDEN)

    # A chain's rows see nothing after themselves; a tree's words are taken as they are.
    own_end = tl.where(chain != 0, tl.minimum(row_start + BLOCK_Q, rows), rows)
    own_end = tl.where(split == num_splits - 1, tl.minimum(own_end, seq_len), 0)
    words_ptr = visible_ptr + request.to(tl.int64) * visible_rows * WORDS
    for start in tl.range(0, own_end, BLOCK_N, num_stages=STAGES):
        own = start + tl.arange(0, BLOCK_N)
        live = own < own_end
        key = _tile(
            keys, table_ptr, context + own, live, dim,
            KEY_BLOCK, KEY_SLOT, KEY_DIM, SLOTS, DIM, ALIGNED,
        )  # fmt: skip
        value = _tile(
            values, table_ptr, context + own, live, dim,
            VALUE_BLOCK, VALUE_SLOT, VALUE_DIM, SLOTS, DIM, ALIGNED,
        )  # fmt: skip
        # BLOCK_N divides 64, so the tile's bits lie in one word per row.
        bits = _own_bits(words_ptr, row, start // 64, chain, own_end, visible_rows, WORDS)
        shift = (start % 64 + tl.arange(0, BLOCK_N)).to(tl.int64)
        seen = ((bits[:, None] >> shift[None, :]) & 1) != 0
        acc, top, total = _step(acc, top, total, query, key, value, seen, scale, WIDEN)

    # A row that has seen nothing gets values 0 and, its `top` being -inf, lse = -inf.
    whole = tl.where(total == 0.0, 1.0, total)
    acc = acc / whole[:, None]
    out_row = split.to(tl.int64) * num_rows + query_row
    out_offset = ahead * OUT_ROW + head * OUT_HEAD
    if SPLIT:
        lse_pointers = lse_ptr + out_row * num_heads + (ahead * num_heads + head)
        tl.store(lse_pointers, top + tl.log2(whole), mask=active)
        stored = stored & (total > 0.0)[:, None]
    out_pointers = out_ptr + out_row * OUT_ROW + out_offset[:, None] + dim[None, :]
    if ALIGNED:
        out_pointers = tl.multiple_of(out_pointers, (16, 16))
    tl.store(out_pointers, acc.to(out_ptr.dtype.element_ty), mask=stored)


@triton.jit(do_not_specialize=["num_splits", "num_rows", "num_heads"])
def merge_kernel(
    out_ptr,  # [T, Hq, dim]
    part_ptr,  # [splits, T, Hq, dim] float32
    lse_ptr,  # [splits, T, Hq] float32, base 2
    num_splits,
    num_rows,
    num_heads,
    OUT_ROW: tl.constexpr,
    OUT_HEAD: tl.constexpr,
    DIM: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """Program (row, head): weigh each split's result by 2^lse; a row that saw nothing gets 0."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    split = tl.arange(0, BLOCK_S)
    dim = tl.arange(0, BLOCK_D)
    index = (split.to(tl.int64) * num_rows + row) * num_heads + head
    lse = tl.load(lse_ptr + index, mask=split < num_splits, other=float("-inf"))
    top = tl.max(lse, 0)
    weight = tl.exp2(lse - tl.where(top == float("-inf"), 0.0, top))
    # The values of an empty split were never written.
    wanted = (lse > float("-inf"))[:, None]
    if BLOCK_D != DIM:
        wanted = wanted & (dim[None, :] < DIM)
    part = tl.load(part_ptr + index[:, None] * DIM + dim[None, :], mask=wanted, other=0.0)
    total = tl.sum(weight, 0)
    out = tl.sum(weight[:, None] * part, 0) / tl.where(total == 0.0, 1.0, total)
    out_offset = row * OUT_ROW + head * OUT_HEAD
    tl.store(out_ptr + out_offset + dim, out.to(out_ptr.dtype.element_ty), mask=dim < DIM)


def attend(
    out: torch.Tensor,
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    query_start: torch.Tensor,
    visible: torch.Tensor,
    is_chain: torch.Tensor,
    *,
    scale: float,
    max_query_len: int,
    max_seq_len: int,
    num_splits: int | None = None,
) -> None:
    """Launch; shapes as in `tree_attention`, nothing is checked. One launch, or two when split."""
    rows, heads, dim = query.shape
    requests, kv_heads = seq_lens.shape[0], key_cache.shape[2]
    fixed = tile_constants(query, kv_heads, max_query_len)
    per_block = fixed["BLOCK_M"] // fixed["HEADS"]
    grid = (rows // per_block + requests + 1, kv_heads * -(-fixed["GROUP"] // fixed["HEADS"]))
    if num_splits is None:
        num_splits = choose_splits(query.device, (grid[0] - 1) * grid[1], max_seq_len)
    part, lse = out, None
    if num_splits > 1:
        part = out.new_empty((num_splits, rows, heads, dim), dtype=torch.float32)
        lse = part.new_empty((num_splits, rows, heads))
    fixed |= layout_constants(part[0] if lse is not None else out, query, key_cache, value_cache)
    attend_kernel[(*grid, num_splits)](
        part, lse, query, key_cache, value_cache, block_table, seq_lens, query_start, visible,
        is_chain, scale * LOG2_E, requests, rows, heads, visible.shape[1], block_table.stride(0),
        WORDS=visible.shape[2], SPLIT=num_splits > 1, **fixed,
    )  # fmt: skip
    if lse is not None:
        merge_kernel[(rows, heads)](
            out, part, lse, num_splits, rows, heads,
            num_warps=MERGE_WARPS, **merge_constants(out, num_splits),
        )  # fmt: skip


def choose_splits(device: torch.device, programs: int, max_seq_len: int) -> int:
    """How many programs share one context, so that a small batch still fills the card."""
    if device.type != "cuda":
        return 1
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    wanted = -(-PROGRAMS_PER_SM * processors // max(programs, 1))
    return max(1, min(wanted, max_seq_len // MIN_SPLIT, MAX_SPLITS))


def tile_constants(query: torch.Tensor, kv_heads: int, max_query_len: int) -> dict[str, int]:
    """Compile-time sizes and warps of a launch; lanes fall to 16 when a request needs no more."""
    group = query.shape[1] // kv_heads
    block_d = max(32, triton.next_power_of_2(query.shape[2]))
    block_m, block_n, warps = TILES[query.element_size(), max(64, block_d)]
    if max_query_len * group <= 16:
        block_m, block_n = 16, min(block_n, 32)
    return {
        "DIM": query.shape[2],
        "BLOCK_D": block_d,
        "BLOCK_M": block_m,
        "BLOCK_N": block_n,
        "GROUP": group,
        "HEADS": min(group, block_m),
        "STAGES": STAGES,
        "num_warps": warps,
        "WIDEN": query.device.type == "cpu" and query.dtype == torch.bfloat16,
    }


def layout_constants(
    out: torch.Tensor, query: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor
) -> dict[str, int]:
    """The strides of a launch, which a model never changes, and whether 16-byte access is safe."""
    return {
        "SLOTS": key_cache.shape[1],
        "OUT_ROW": out.stride(0),
        "OUT_HEAD": out.stride(1),
        "QUERY_ROW": query.stride(0),
        "QUERY_HEAD": query.stride(1),
        **{f"KEY_{n}": s for n, s in zip(CACHE_AXES, key_cache.stride(), strict=True)},
        **{f"VALUE_{n}": s for n, s in zip(CACHE_AXES, value_cache.stride(), strict=True)},
        "ALIGNED": all(aligned(x) for x in (out, query, key_cache, value_cache)),
    }


def aligned(x: torch.Tensor) -> bool:
    """Whether every head's vector starts on a multiple of 16 bytes and is contiguous."""
    offsets = (x.storage_offset(), x.shape[-1], *x.stride()[:-1])
    return x.stride(-1) == 1 and all(o * x.element_size() % 16 == 0 for o in offsets)


def merge_constants(out: torch.Tensor, num_splits: int) -> dict[str, int]:
    """The compile-time sizes and strides of the merging launch."""
    return {
        "OUT_ROW": out.stride(0),
        "OUT_HEAD": out.stride(1),
        "DIM": out.shape[2],
        "BLOCK_D": triton.next_power_of_2(out.shape[2]),
        "BLOCK_S": triton.next_power_of_2(num_splits),
    }
