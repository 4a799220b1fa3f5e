"""Makes vLLM's configuration without and with trees, and says what came of it; see `test_plugin`.

It is started by path in an environment that knows nothing of this project's tests.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Print one line of JSON: for both configurations, the width of a verification or an error."""
    print(json.dumps([made({}), made({"ddtree": {"budget": 12}})]))  # noqa: T201


def made(additional: dict[str, Any]) -> int | str:
    """What the configuration says, or why there is none."""
    from vllm.engine.arg_utils import EngineArgs

    arguments: dict[str, Any] = json.loads(sys.argv[1])
    try:
        config = EngineArgs(**arguments, additional_config=additional).create_engine_config()
    # Whatever a start can end with is looked at.
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    width: int = config.num_speculative_tokens
    return width


if __name__ == "__main__":
    main()
