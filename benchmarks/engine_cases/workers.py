"""Engines in processes of their own that wait between passes, so that passes can be interleaved."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

FAR = Path(__file__).parent / "far"


@dataclass(frozen=True, slots=True)
class Place:
    """Where engines run.

    Attributes:
        stock: interpreter of the engine environment.
        patched: of one whose vLLM is patched.
        threads: OpenMP threads of an engine.
    """

    stock: Path
    patched: Path
    threads: int

    def variables(self) -> dict[str, str]:
        """The environment of a worker."""
        return {
            **os.environ,
            "PYTHONPATH": str(FAR),
            "OMP_NUM_THREADS": str(self.threads),
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_LOGGING_LEVEL": "WARNING",
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
        }


@dataclass(frozen=True, slots=True)
class Worker:
    """One engine that waits for passes."""

    pipe: Connection

    def ask(self, **asked: Any) -> dict[str, Any]:
        """Run a pass; see `far/worker.py` for what is asked and answered.

        Raises:
            EOFError: the engine died.
        """
        self.pipe.send(asked)
        answer: dict[str, Any] = self.pipe.recv()
        return answer


@contextlib.contextmanager
def started(
    place: Place, folder: Path, arguments: dict[str, Any], *, patched: bool
) -> Iterator[Worker]:
    """A worker with an engine of these arguments, ended when the context is left.

    Args:
        place: where it runs.
        folder: its working directory, which is made unless it is there.
        arguments: of vLLM's `LLM`.
        patched: in the patched vLLM.

    Raises:
        RuntimeError: the engine did not start.
    """
    folder.mkdir(exist_ok=True)
    log = folder / "log"
    near, far = Pipe()
    python = place.patched if patched else place.stock
    command = [str(python), str(FAR / "worker.py"), str(far.fileno())]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=place.variables(),
            pass_fds=[far.fileno()],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    # Without this end here, a worker that dies ends the connection.
    far.close()
    try:
        near.send(arguments)
        try:
            near.recv()
        except EOFError:
            words = log.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"the engine did not start: {words}") from None
        yield Worker(near)
    finally:
        near.close()
        process.terminate()
        process.wait()
