"""The way into a host: keys first, then words that a person types."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence

import paramiko

from ...errors import LoginError
from ...install.names import printable
from ..deadline import Deadline
from .keys import Agent, KeyFile, Keys, count, keys_of, shown
from .options import HostOptions
from .prompt import Secret, ask, terminal
from .questions import Questions
from .watch import Watch

AUTH_SECONDS = 15.0
# Typing a wrong passphrase is human.
_PASSPHRASES = 3

# One attempt: what the server still wants afterwards; nothing when it lets us in.
Attempt = Callable[[], Sequence[str]]


class Login:
    """The attempts to log in to one host."""

    def __init__(
        self, transport: paramiko.Transport, options: HostOptions, deadline: Deadline
    ) -> None:
        """Log in over this connection, whose host key has been checked."""
        self._transport = transport
        self._options = options
        self._deadline = deadline
        self._tried: list[str] = []
        self._locked: list[KeyFile] = []
        # What the server takes; empty as long as it has not said so.
        self._allowed: frozenset[str] = frozenset()

    def perform(self) -> None:
        """Get in.

        Raises:
            LoginError: nothing opens the host.
            UnreachableError: it fell silent.
        """
        if self._with_open_keys():
            return
        # Only a refusal tells what else there is.
        if not self._allowed and self._attempt(
            lambda: self._transport.auth_none(self._options.user)
        ):
            return
        if self._with_locked_keys() or self._with_questions() or self._with_password():
            return
        raise self._refused()

    def _with_open_keys(self) -> bool:
        """Whether a key lets us in for which nobody has to type anything."""
        agent = Agent(self._options.agent) if self._options.agent else None
        try:
            keys = keys_of(self._options, agent)
            self._locked = [file for file in keys.files if file.encrypted]
            return any(self._with_key(key) for key in self._open_keys(keys))
        finally:
            if agent is not None:
                agent.close()

    def _open_keys(self, keys: Keys) -> Iterator[paramiko.PKey]:
        if keys.agent and self._takes_keys():
            self._tried.append(f"{count(keys.agent)} of the agent")
        yield from keys.agent
        for file in keys.files:
            key = None if file.encrypted else file.load(None)
            if key is not None:
                self._tried.append(shown(file))
                yield key
            elif not file.encrypted:
                self._tried.append(f"{shown(file)} (cannot be read as a private key)")

    def _with_locked_keys(self) -> bool:
        for file in self._locked:
            key = self._unlocked(file) if self._takes_keys() else None
            if key is not None and self._with_key(key):
                return True
        return False

    def _takes_keys(self) -> bool:
        """Whether keys are of use: on both sides, as far as the other one has said so."""
        allowed = self._allowed or {"publickey"}
        return "publickey" in self._options.methods and "publickey" in allowed

    def _unlocked(self, file: KeyFile) -> paramiko.PKey | None:
        if not self._options.ask or not terminal():
            self._tried.append(f"{shown(file)} (encrypted, and no terminal to ask at)")
            return None
        for _ in range(_PASSPHRASES):
            with self._deadline.paused():
                word = ask(f"Passphrase of {shown(file)}:")
            if word is None or not word.word:
                break
            if key := file.load(word):
                self._tried.append(shown(file))
                return key
        self._tried.append(f"{shown(file)} (not unlocked)")
        return None

    def _with_key(self, key: paramiko.PKey) -> bool:
        return self._takes_keys() and self._attempt(
            lambda: self._transport.auth_publickey(self._options.user, key)
        )

    def _with_questions(self) -> bool:
        """Whether the server's own questions, asked on the terminal, let us in."""
        if not self._offers("keyboard-interactive"):
            return False
        for _ in range(self._options.prompts):
            questions = Questions(self._transport, self._options, self._deadline)
            if self._attempt(questions.perform, watched=False):
                return True
            if not questions.answered:
                break
        return False

    def _with_password(self) -> bool:
        if not self._offers("password"):
            return False
        user, host = printable(self._options.user), self._options.shown
        for _ in range(self._options.prompts):
            with self._deadline.paused():
                word = ask(f"Password of {user} at {host}:")
            if word is None:
                break
            if self._attempt(functools.partial(self._send, word)):
                return True
        return False

    def _send(self, word: Secret) -> Sequence[str]:
        return self._transport.auth_password(self._options.user, word.word, fallback=False)

    def _offers(self, method: str) -> bool:
        """Whether a way to log in is worth a person's time."""
        wanted = method in self._options.methods & self._allowed and self._options.ask
        if wanted and not terminal():
            self._tried.append(f"{method} (no terminal to ask at)")
            return False
        if wanted:
            self._tried.append(method)
        return wanted

    def _attempt(self, attempt: Attempt, *, watched: bool = True) -> bool:
        """Whether one attempt lets us in; what the server wants instead is remembered.

        Raises:
            LoginError: the server has had enough.
        """
        shown_, seconds = self._options.shown, self._deadline.within(AUTH_SECONDS)
        watch = Watch(self._transport, seconds, shown_, "answer a login")
        with watch if watched else contextlib.nullcontext():
            try:
                self._allowed = frozenset(attempt())
                return not self._allowed
            except paramiko.BadAuthenticationType as error:
                self._allowed = frozenset(error.allowed_types)
            except (paramiko.SSHException, EOFError, OSError) as error:
                if not self._transport.is_active():
                    raise self._ended() from error
        return False

    def _ended(self) -> LoginError:
        return LoginError(
            f"{self._options.shown} ended the connection during the login; "
            f"tried: {', '.join(self._tried) or 'nothing'}",
            expected="fewer keys than the server allows: IdentityFile and IdentitiesOnly yes",
            hint="ssh-add -l",
        )

    def _refused(self) -> LoginError:
        ways = ", ".join(sorted(map(printable, self._allowed))) or "nothing that it tells"
        user = printable(self._options.user)
        return LoginError(
            f"{self._options.shown} does not let {user} in; it takes {ways}; "
            f"tried: {', '.join(self._tried) or 'nothing'}",
            expected=f"a key of {user} in the agent or in a file that the ssh configuration names",
            hint=f"ssh -v -p {self._options.port} {user}@{printable(self._options.host)} true",
        )
