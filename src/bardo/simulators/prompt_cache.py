"""Simulated prompt caches: that of a hosted provider, by marked prefixes, and that of a server of weights, by blocks."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from bardo.simulators.fields import Fields

_MOST_KEPT = 1024


@dataclass(frozen=True, slots=True)
class MarkedPrefix:
    """The beginning of a prompt up to a marker, as text, and how many tokens it has."""

    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """How many tokens of a prompt came from the cache, and how many went into it."""

    read: int = 0
    written: int = 0


class PromptCache:
    """Keeps digests of prefixes. Those below `least` tokens are not cached, as providers do without a word.

    A provider reads a prompt from its cache by the prefixes that a request marks.
    """

    def __init__(self, least: int) -> None:
        self._least = least
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def take(self, model: str, prefixes: list[MarkedPrefix]) -> CacheCounts:
        """Return what a request with these marked prefixes, the shortest first, reads and writes, and keep them."""
        cached = [prefix for prefix in prefixes if prefix.tokens >= self._least]
        digests = [blake2b(f"{model}\0{prefix.text}".encode()).digest() for prefix in cached]
        read = max(
            (prefix.tokens for prefix, digest in zip(cached, digests, strict=True) if digest in self._known), default=0
        )
        for digest in digests:
            self._known[digest] = None
            self._known.move_to_end(digest)
        while len(self._known) > _MOST_KEPT:
            self._known.popitem(last=False)
        longest = max((prefix.tokens for prefix in cached), default=0)
        return CacheCounts(read=read, written=max(0, longest - read))


BLOCK_TOKENS = 16
_BLOCK_CHARACTERS = 4 * BLOCK_TOKENS


class PrefixCache:
    """Keeps at most so many `blocks` of 16 tokens, for so many `seconds` after their last use (None: for ever). `clock` tells the time.

    Each block is known by all that stands before it, and the least used is forgotten first. vLLM and SGLang keep prompts so, within the
    memory of their graphics cards; hosted providers keep them for a time besides.
    """

    def __init__(
        self, blocks: int = 4096, *, seconds: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = blocks
        self._seconds = seconds
        self._clock = clock
        self._known: OrderedDict[bytes, float] = OrderedDict()

    def take(self, text: str) -> int:
        """Return how many tokens at the beginning of a prompt were cached, and keep all of its whole blocks."""
        now, before, cached = self._clock(), b"", 0
        digests: list[bytes] = []
        for start in range(0, len(text) - _BLOCK_CHARACTERS + 1, _BLOCK_CHARACTERS):
            part = text[start : start + _BLOCK_CHARACTERS]
            before = blake2b(before + part.encode(), digest_size=16).digest()
            if cached == len(digests) and self._holds(before, now):
                cached += 1
            digests.append(before)
        for digest in reversed(digests):
            # What stands first is used last, so that the end of a prompt is forgotten before its beginning.
            self._known[digest] = now
            self._known.move_to_end(digest)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return cached * BLOCK_TOKENS

    def clear(self) -> None:
        """Remove everything, as a restarted server does."""
        self._known.clear()

    def _holds(self, digest: bytes, now: float) -> bool:
        stored_at = self._known.get(digest)
        return stored_at is not None and (self._seconds is None or now - stored_at <= self._seconds)


def prompt_text(body: Fields) -> str:
    """Return the prompt of a Chat Completions request as a server's template would write it: tools, then messages."""
    tools = json.dumps(body["tools"]) if body.get("tools") else ""
    messages = body.get("messages")
    turns = messages if isinstance(messages, list) else []
    return tools + "".join(json.dumps(turn, sort_keys=True, ensure_ascii=False) for turn in turns)
