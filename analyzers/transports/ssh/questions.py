"""The questions that a server asks during a login, put to the person at the terminal."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence

import paramiko

from ...errors import UnreachableError
from ..deadline import Deadline
from .options import HostOptions
from .prompt import ask
from .watch import Watch

ANSWER_SECONDS = 15.0
# More is no login.
_MOST_QUESTIONS = 16

Fields = Sequence[tuple[str, bool]]


class Questions:
    """One round of a server's questions.

    The library calls from its own thread. The person is asked from the caller's, so that Ctrl-C
    ends the question and the terminal echoes again.
    """

    def __init__(
        self, transport: paramiko.Transport, options: HostOptions, deadline: Deadline
    ) -> None:
        """Ask what this server wants to know."""
        self._transport = transport
        self._options = options
        self._deadline = deadline
        self._asked: queue.Queue[Fields | None] = queue.Queue()
        self._answers: queue.Queue[list[str]] = queue.Queue()
        self._outcome: Sequence[str] | Exception = ()
        # Whether anybody answered; if not, asking again is of no use.
        self.answered = False

    def perform(self) -> Sequence[str]:
        """What the server still wants afterwards; nothing when it lets us in.

        Raises:
            SSHException: the answers are wrong.
            UnreachableError: the server fell silent.
        """
        threading.Thread(target=self._talk, daemon=True).start()
        try:
            while (fields := self._next()) is not None:
                self._answers.put(self._put(fields))
        finally:
            # The library's thread may wait for answers that nobody gives any more.
            self._answers.put([])
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def _next(self) -> Fields | None:
        seconds = self._deadline.within(ANSWER_SECONDS)
        with Watch(self._transport, seconds, self._options.shown, "answer a login"):
            return self._asked.get()

    def _talk(self) -> None:
        try:
            self._outcome = self._transport.auth_interactive(self._options.user, self._handle)
        except (paramiko.SSHException, EOFError, OSError, UnreachableError) as error:
            self._outcome = error
        finally:
            self._asked.put(None)

    def _handle(self, title: str, instructions: str, fields: list[tuple[str, bool]]) -> list[str]:
        if not fields:
            return []
        self._asked.put([(f"{title} {instructions} {text}", echo) for text, echo in fields])
        return self._answers.get()

    def _put(self, fields: Fields) -> list[str]:
        given: list[str] = []
        with self._deadline.paused():
            for text, echo in fields[:_MOST_QUESTIONS]:
                word = ask(f"{self._options.user} at {self._options.shown}: {text}", echo=echo)
                self.answered = word is not None
                given.append(word.word if word else "")
                if word is None:
                    break
        return given + [""] * (len(fields) - len(given))
