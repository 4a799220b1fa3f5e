"""Starts engines while something of vLLM is replaced, and says what came of each.

It is started by path in an environment that knows nothing of this project's tests; see
`test_replaced`.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any


def main() -> None:
    """Read JSON: `engine` arguments, `prompts`, `tokens`, and the replacements by name."""
    given = json.load(sys.stdin)
    found = {name: came(given, **one) for name, one in given["replaced"].items()}
    print(json.dumps(found))  # noqa: T201


def came(given: dict[str, Any], where: str, how: str, when: str) -> Any:
    """The tokens of every request while `where` is replaced, or the error.

    Args:
        given: as `main` reads it.
        where: `module:function` or `module:Class.function`.
        how: "stock" for what was hooked, "keeps" for the same with the hooked one in sight, or
            "calls" for a wrapper.
        when: "before" the engine starts, or "after".
    """
    from vllm.distributed import cleanup_dist_env_and_memory

    module, _, path = where.partition(":")
    owner: Any = importlib.import_module(module)
    *classes, name = path.split(".")
    for one in classes:
        owner = getattr(owner, one)
    hooked = owner.__dict__[name]
    replace = partial(setattr, owner, name, HOW[how](hooked))
    try:
        found: Any = decoded(given, *((replace, int) if when == "before" else (int, replace)))
    # Whatever an engine ends with is looked at.
    except Exception as error:  # noqa: BLE001
        found = f"{type(error).__name__}: {error}"
    finally:
        setattr(owner, name, hooked)
    # What is left of an engine would take the next one's process groups with it.
    gc.collect()
    cleanup_dist_env_and_memory()
    return found


def decoded(given: dict[str, Any], before: Any, after: Any) -> list[list[int]]:
    """Tokens of every request; `before` and `after` are called around the engine's start."""
    from driver import shut_down  # type: ignore[import-not-found]  # beside this file
    from vllm import LLM, SamplingParams

    before()
    engine = LLM(**given["engine"])
    after()
    sampling = SamplingParams(
        temperature=0.0, max_tokens=given["tokens"], ignore_eos=True, detokenize=False
    )
    prompts = [{"prompt_token_ids": tokens} for tokens in given["prompts"]]
    outputs = engine.generate(prompts, sampling, use_tqdm=False)
    shut_down(engine)
    return [list(output.outputs[0].token_ids) for output in outputs]


def stock(hooked: Any) -> Callable[..., Any]:
    """The function that was hooked, down to the last wrapper."""
    while hasattr(hooked, "__wrapped__"):
        hooked = hooked.__wrapped__
    found: Callable[..., Any] = hooked
    return found


def keeps(hooked: Any) -> Callable[..., Any]:
    """A function that could call the hooked one, as far as anybody can see."""
    original = stock(hooked)

    def replacement(*args: Any, never: bool = False, **named: Any) -> Any:
        return hooked(*args, **named) if never else original(*args, **named)

    return replacement


def calls(hooked: Any) -> Callable[..., Any]:
    """A wrapper that hands everything on."""

    def replacement(*args: Any, **named: Any) -> Any:
        return hooked(*args, **named)

    return replacement


HOW = {"stock": stock, "keeps": keeps, "calls": calls}

if __name__ == "__main__":
    main()
