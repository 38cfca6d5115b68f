"""A provider's prompt cache: what it has read before it reads from there, by the prefixes that a request marks."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b

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
    """Keeps digests of prefixes. Those below `least` tokens are not cached, as providers do without a word."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def take(self, model: str, prefixes: list[MarkedPrefix]) -> CacheCounts:
        """Return what a request with these marked prefixes, the shortest first, reads and writes, and keep them."""
        cached = [one for one in prefixes if one.tokens >= self._least]
        digests = [blake2b(f"{model}\0{one.text}".encode()).digest() for one in cached]
        read = max(
            (one.tokens for one, digest in zip(cached, digests, strict=True) if digest in self._known), default=0
        )
        for digest in digests:
            self._known[digest] = None
            self._known.move_to_end(digest)
        while len(self._known) > _MOST_KEPT:
            self._known.popitem(last=False)
        longest = max((one.tokens for one in cached), default=0)
        return CacheCounts(read=read, written=max(0, longest - read))
