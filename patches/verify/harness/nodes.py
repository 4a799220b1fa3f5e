"""Compare the logits of every node of verified trees with those of its root path, run alone."""

from __future__ import annotations

from typing import Any

from . import plain, worker
from .host import Host

BATCH = 64


def compared(host: Host, trees: list[dict[str, Any]]) -> dict[str, Any]:
    """Run the root path of every node as a prompt without drafts, and take the differences.

    A prompt of one asked token ends before anything is drafted, so its logits are the stock
    engine's.

    Returns:
        How many trees and nodes, the largest difference of a logit, the largest logit, and at how
        many nodes the best token is another one.
    """
    host.call(worker.tell, [], 0, 0)
    host.call(worker.ask, trees=None, rows={})
    wanted = sorted({text for tree in trees for text in _texts(tree)})
    host.forget()
    for start in range(0, len(wanted), BATCH):
        host.generate([list(text) for text in wanted[start : start + BATCH]], 1)
    rows = host.call(worker.seen, "rows")
    host.call(worker.ask, rows=None)
    host.forget()
    worst, largest, others = 0.0, 0.0, 0
    for tree in trees:
        for text, logits in zip(_texts(tree), tree["logits"], strict=True):
            alone = rows[text]
            worst = max(worst, float((logits - alone).abs().max()))
            largest = max(largest, float(alone.abs().max()))
            others += int(logits.argmax()) != int(alone.argmax())
    return {
        "trees": len(trees),
        "nodes": sum(len(tree["tokens"]) + 1 for tree in trees),
        "worst": worst,
        "largest": largest,
        "others": others,
    }


def _texts(tree: dict[str, Any]) -> list[tuple[int, ...]]:
    """The text of every row's root path, context included."""
    return [tree["text"] + path for path in plain.paths(tree["tokens"], tree["parents"])]
