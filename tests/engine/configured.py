"""Makes vLLM's configuration of several sets of arguments, and says what came of each.

It is started by path in an environment that knows nothing of this project's tests; see
`test_start`.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Read JSON, a list of `EngineArgs`; write as many widths of a verification, or errors."""
    print(json.dumps([made(one) for one in json.load(sys.stdin)]))  # noqa: T201


def made(arguments: dict[str, Any]) -> int | str:
    """What the configuration says, or why there is none."""
    from vllm.engine.arg_utils import EngineArgs

    try:
        width: int = EngineArgs(**arguments).create_engine_config().num_speculative_tokens
    # Whatever a start can end with is looked at.
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return width


if __name__ == "__main__":
    main()
