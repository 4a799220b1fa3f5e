"""A server for completions, as its operator starts it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import runs

BUDGET = 16
_PATIENCE_SECONDS = 240
_SETTINGS: dict[str, Any] = {
    "dtype": "float32",
    "block-size": 32,
    "max-model-len": 512,
    "max-num-seqs": 8,
    "speculative-config": json.dumps(runs.dflash()["speculative_config"]),
}


@contextlib.contextmanager
def started(python: Path, folder: Path, *, trees: bool) -> Iterator[str]:
    """The address of a server that is up, and ends with the block.

    Args:
        python: the interpreter of its environment.
        folder: where it works and logs.
        trees: whether they are configured.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = _SETTINGS | {"model": runs.TARGET, "port": port}
    if trees:
        settings["additional-config"] = json.dumps({"ddtree": {"budget": BUDGET}})
    words = [str(word) for name, value in settings.items() for word in (f"--{name}", value)]
    start = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--enforce-eager"]
    log = folder / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*start, "--skip-tokenizer-init", *words],
            cwd=folder, env=_variables(), stdout=output, stderr=output,
        )  # fmt: skip
        url = f"http://127.0.0.1:{port}"
        try:
            _wait(process, url, log)
            yield url
        finally:
            process.terminate()
            process.wait()


def completed(url: str, prompt: list[int], tokens: int) -> list[int]:
    """The tokens of one greedy completion."""
    body = {
        "model": runs.TARGET,
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "detokenize": False,
        "return_token_ids": True,
    }
    request = urllib.request.Request(
        f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: list[int] = json.loads(answer.read())["choices"][0]["token_ids"]
    return found


def drafted(url: str) -> tuple[int, int]:
    """How often was drafted so far, and how many tokens, by the server's own counters."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    counts = {}
    for name in ("num_drafts", "num_draft_tokens"):
        (line,) = [one for one in lines if one.startswith(f"vllm:spec_decode_{name}_total{{")]
        counts[name] = int(float(line.split()[-1]))
    return counts["num_drafts"], counts["num_draft_tokens"]


def _variables() -> dict[str, str]:
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"{url}/health", timeout=5).close()
            return
        time.sleep(0.5)
    raise RuntimeError(f"the server did not come up\n{log.read_text()[-4000:]}")
