"""Renames every tree- and chain-related word of a Python tree to a meaningless one.

A tool that answers from names rather than from shapes gives another verdict on the result. The
words change wherever they stand as whole sub-words of an identifier: in code, in keyword
arguments, in strings that name modules or attributes, in comments, and in file names. Lines keep
their numbers, so that evidence can be compared line by line.
"""

from __future__ import annotations

import base64
import hashlib
import os
import random
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from . import wheels

_LINES = (
    "tree trees subtree trie tries chain chains chained branch branches branching root leaf leaves",
    "parent parents child children sibling siblings ancestor ancestors descendants",
    "draft drafts drafter drafters drafting drafted candidate candidates beam beams limits",
    "spec specs speculative speculation speculate speculated speculator speculators lookahead",
    "reject rejects rejected rejecting rejection rejections bonus recover recovered recovers",
    "accept accepts accepted accepting acceptance acceptances acceptor retrieve retrive",
    "verify verifies verified verifying verification verifier verifiers",
    "propose proposes proposed proposer proposers proposal proposals",
    "eagle eagle3 medusa ngram ngrams mtp dflash dflash2 dspark",
)
WORDS = tuple(word for line in _LINES for word in line.split())

# Third-party and language names that contain one of the words as a whole sub-word.
_KEPT = frozenset(
    {"find_spec", "module_from_spec", "spec_from_file_location", "spec_from_loader"}
    | {"named_children", "in_specs", "out_specs"}
)
_IDENTIFIER = re.compile(rb"[A-Za-z_]\w*")
_FOREIGN_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(?!vllm\b)[A-Za-z_][\w.]*[ \t]+import[ \t]*(?:\([^)]*\)|[^\n(]*)"
    rb"|import[ \t]+(?!vllm\b)[^\n]*)",
    re.MULTILINE,
)
_TEXT = re.compile(
    rb"""(?P<doc>^[ \t]*[rRuU]?(?P<q>\"{3}|'{3})(?:(?!(?P=q))[^\\]|\\.)*(?P=q)[ \t]*$)"""
    rb"""|(?P<keep>\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}"""
    rb"""|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')|(?P<comment>\#[^\n]*)""",
    re.MULTILINE | re.DOTALL,
)


class Renamer:
    """One consistent renaming: the same seed gives the same words in every file.

    Args:
        seed: chooses the new words.
        strip: also blank comments and docstrings, so that no prose is left to read.
    """

    def __init__(self, seed: int = 0, *, strip: bool = False) -> None:
        self.seed = seed
        self.strip = strip
        self._known: dict[bytes, bytes] = {}

    @cached_property
    def words(self) -> dict[str, str]:
        """Each word in lower case with its replacement; no two replacements are equal."""
        source = random.Random(self.seed)
        made: list[str] = []
        while len(made) < len(WORDS):
            syllables = (source.choice("qxzvkj") + source.choice("aeiou") for _ in range(4))
            word = "".join(syllables) + source.choice("qxzvk")
            if word not in made:
                made.append(word)
        return dict(zip(WORDS, made, strict=True))

    def keep_imported(self, files: Iterable[bytes]) -> None:
        """Leave names as they are that these files import from elsewhere than vLLM."""
        names = {name.encode() for name in sys.stdlib_module_names}
        for data in files:
            for statement in _FOREIGN_IMPORT.findall(data):
                names.update(_IDENTIFIER.findall(statement))
        self._known.update((name, name) for name in names)

    def files(self, files: Mapping[str, str]) -> dict[str, str]:
        """A small install, given as texts by path, with its words replaced."""
        self.keep_imported(text.encode() for text in files.values())
        return {self.path(path): self.code(text.encode()).decode() for path, text in files.items()}

    def name(self, identifier: str) -> str:
        """One identifier, or one part of a path, with its words replaced."""
        return self.code(identifier.encode()).decode()

    def code(self, data: bytes) -> bytes:
        """A whole file with its words replaced; lines keep their numbers."""
        if self.strip:
            data = _TEXT.sub(_blank, data)
        return _IDENTIFIER.sub(self._swap, data)

    def path(self, path: str) -> str:
        """A posix path below the package with its words replaced, the file's suffix kept."""
        stem, dot, suffix = path.rpartition(".")
        return self.name(stem) + dot + suffix if dot else self.name(path)

    def _swap(self, match: re.Match[bytes]) -> bytes:
        identifier = match[0]
        known = self._known.get(identifier)
        if known is None:
            known = self._known[identifier] = self._compute(identifier)
        return known

    def _compute(self, identifier: bytes) -> bytes:
        text = identifier.decode()
        if text in _KEPT or (text.startswith("__") and text.endswith("__")):
            return identifier
        return self._pattern.sub(lambda m: self._like(m[0]), text).encode()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        lower = "|".join(sorted(WORDS, key=len, reverse=True))
        # DFlash and NGram capitalise inside the word, where camel case would see two words.
        title = "|".join((*map(str.capitalize, lower.split("|")), "DFlash", "DSpark", "NGram"))
        upper = lower.upper()
        return re.compile(
            rf"(?<![A-Za-z])(?:{lower})(?![a-z])|(?:{title})(?![a-z])"
            rf"|(?<![A-Za-z])(?:{upper})(?![a-z])(?![A-Z](?![a-z]))"
        )

    def _like(self, word: str) -> str:
        new = self.words[word.lower()]
        if word.islower():
            return new
        return new.upper() if word.isupper() else new.capitalize()


def rename_tree(source: Path, target: Path, renamer: Renamer) -> None:
    """Write `source`, an unpacked wheel, to `target` with its words replaced.

    Unchanged files are hard links; RECORD is written anew, so that the result is a consistent
    install of its own.
    """
    files = [path for path in sorted(source.rglob("*")) if path.is_file()]
    renamer.keep_imported(path.read_bytes() for path in files if path.suffix == ".py")
    record = []
    for path in files:
        relative = path.relative_to(source).as_posix()
        if ".dist-info/" in relative:
            place, data, old = target / relative, path.read_bytes(), b""
        else:
            old = path.read_bytes()
            place, data = target / renamer.path(relative), renamer.code(old)
        place.parent.mkdir(parents=True, exist_ok=True)
        if data == old:
            link(path, place)
        else:
            place.write_bytes(data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if place.name != "RECORD":
            record.append(f"{place.relative_to(target).as_posix()},sha256={digest},{len(data)}")
    (ledger,) = target.glob("*.dist-info/RECORD")
    own = ledger.relative_to(target).as_posix()
    ledger.write_text("\n".join([*record, f"{own},,"]) + "\n")


def renamed_tree(requirement: str, renamer: Renamer) -> Path:
    """The Python files of a pinned requirement with their words replaced, kept in the cache."""
    made_by = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    source = wheels.python_tree(requirement)
    name = f"renamed/{source.name}-{renamer.seed}{'-strip' * renamer.strip}-{made_by}"
    return wheels.derived(name, lambda target: rename_tree(source, target, renamer))


def link(source: str | Path, target: str | Path) -> None:
    """Give `target` the bytes of `source`, without a copy where the file system allows it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _blank(match: re.Match[bytes]) -> bytes:
    if match["keep"]:
        return match[0]
    if match["comment"]:
        return b""
    text = match[0]
    indent = text[: len(text) - len(text.lstrip())]
    return indent + b'""' + b"\n" * text.strip().count(b"\n")
