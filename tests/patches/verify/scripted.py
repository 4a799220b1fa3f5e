"""A target that says what a test wants it to say, and the events of a verification that passes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

TOKENS = [[5, 6, 7, 8] * 12, [1, 2, 3, 4] * 12]
LENGTHS = [30, 20]
STRETCHES = 12


class Scripted:
    """A transport whose far side sends these lines; None in their place is silence."""

    def __init__(self, lines: Iterable[bytes | None], code: int = 0) -> None:
        self.lines = list(lines)
        self.code = code
        self.closed = False
        self.command: Sequence[str] = ()
        self.stdin = b""

    def start(self, command: Sequence[str], stdin: bytes) -> Scripted:
        self.command, self.stdin = command, stdin
        return self

    def chunk(self, timeout: float) -> bytes | None:
        if not self.lines:
            return None
        found = self.lines.pop(0)
        if found is None:
            self.lines.insert(0, None)
            raise TimeoutError
        return found + b"\n"

    def log(self) -> tuple[str, ...]:
        return ("loading", "Traceback: something \x1b[31mbroke")

    def close(self, patience: float | None = None) -> int:
        self.closed = True
        return self.code


def line(kind: str, **fields: Any) -> bytes:
    return b"ddtree-event " + json.dumps({"kind": kind, **fields}).encode()


def facts(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "facts",
        "python": "3.11.7",
        "executable": "/env/bin/python",
        "torch": "2.13.0",
        "triton": None,
        "runtime": "0.1.0",
        "location": "/env/site",
        "device": "cpu",
        "cuda": False,
        **changes,
    }


def runner(name: str = "v1", *, interpreted: bool = False) -> dict[str, Any]:
    return {"kind": "runner", "runner": name, "interpreted": interpreted}


def checks(part: str, *names: str, passed: bool = True) -> dict[str, Any]:
    made = [{"name": name, "passed": passed, "detail": "12 cases"} for name in names]
    return {"kind": "checks", "part": part, "checks": made}


def truth(dtype: str = "float32", lead: float = 1.0) -> dict[str, Any]:
    gaps = [[[8.0, lead, 9] for _ in tokens] for tokens in TOKENS]
    return {
        "kind": "truth",
        "lengths": LENGTHS,
        "tokens": TOKENS,
        "gaps": gaps,
        "dtype": dtype,
        "model": "tiny",
    }


def pass_(engine: str, name: str, offset: int = 0, **changes: Any) -> dict[str, Any]:
    tokens = [tokens[offset:] for tokens in TOKENS]
    if changes.get("free"):
        tokens.append(TOKENS[-1])
    return {
        "kind": "pass",
        "engine": engine,
        "name": name,
        "offset": offset,
        "tokens": tokens,
        "free": False,
        "silent": False,
        "without": None,
        **changes,
    }


def stretch(seconds: float, verifications: int, accepted: int) -> dict[str, Any]:
    return {
        "seconds": seconds,
        "steps": 20,
        "step_seconds": seconds / 20,
        "verifications": verifications,
        "accepted": accepted,
    }


def engine(
    name: str, role: str, budget: int, seconds: float = 1.0, **changes: Any
) -> dict[str, Any]:
    drafts = role in ("chain", "width1", "tree")
    verifications, accepted = (60, 40) if role == "tree" else (80, 20)
    part = stretch(seconds, verifications, accepted)
    counters = {
        "branches": 30 if role in ("tree", "oracle") else 0,
        "acceptance_length_chain": 1.25,
        "fallbacks": {"frequency penalty": 9},
    }
    return {
        "kind": "engine",
        "name": name,
        "role": role,
        "budget": budget,
        "eager": True,
        "block": 32,
        "start_seconds": 1.0,
        "cached": 64 if budget else 0,
        "mixed": 3 if role == "oracle" else 0,
        "preemptions": 2 if role == "oracle" else None,
        "counters": counters if budget else None,
        "stretches": [part] * STRETCHES if drafts else [],
        **changes,
    }


def nodes(without: str | None, worst: float) -> dict[str, Any]:
    return {
        "kind": "nodes",
        "without": without,
        "trees": 12,
        "nodes": 300,
        "worst": worst,
        "largest": 10.0,
        "others": 0 if without is None else 40,
    }


def wrong(tokens: list[list[int]]) -> list[list[int]]:
    """Every continuation but the last is wrong from its second token on."""
    return [[one[0], *(token + 100 for token in one[1:])] for one in tokens[:-1]] + tokens[-1:]


def good() -> list[dict[str, Any]]:
    """The events of a verification in which everything is as it should be."""
    sent = [
        checks("L1", "walk", "build"),
        checks("L2", "walk, torch"),
        facts(),
        checks("imports", "vllm.v1.worker.gpu_model_runner"),
        runner(),
        {"kind": "prompts", "about": "2 random prompts"},
        truth(),
        pass_("plain", "continued", 24),
    ]
    for name in ("chain", "width 1", "tree 7", "tree 32"):
        sent.append(pass_(name, "whole", free=name != "chain"))
        sent += [pass_(name, f"stretch {number + 1}", number) for number in range(STRETCHES)]
    sent += [pass_("oracle", "no drafts", silent=True), pass_("oracle", "whole", free=True)]
    sent.append(nodes(None, 1e-5))
    for part in ("mask", "positions", "commit"):
        bad = wrong([*TOKENS, TOKENS[-1]])
        sent += [pass_("oracle", f"without {part}", free=True, without=part, tokens=bad)]
        sent.append(nodes(part, 5.0))
    sent += [
        engine("plain", "plain", 0),
        engine("chain", "chain", 0),
        engine("width 1", "width1", 7, 1.1),
        engine("tree 7", "tree", 7, 0.8),
        engine("tree 32", "tree", 32, 1.3),
        engine("oracle", "oracle", 32),
    ]
    return sent


def lines(events: Iterable[dict[str, Any]]) -> list[bytes | None]:
    """As a far side sends them, with its last word."""
    return [*(line(**event) for event in events), line("end")]
