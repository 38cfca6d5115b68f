"""The text of one choice as citations count it: where each block begins, and its places in characters and in bytes of UTF-8.

Each question takes time for at most one stretch of `_STEP`, so that many citations of a long answer take linear time.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from bardo.dialects.shared.content_forms import Citation

_STEP = 1024
_CONTINUATION = bytes(range(0x80, 0xC0))
_MOST_REPEATED = 1_000_000
_MOST_HELD = 50_000
"""Characters of an answer whose places in bytes are known: what a stream holds in memory does not grow with its length."""


class CitedText:
    """One choice. Its words are held only where `keeps_text`."""

    def __init__(self, *, keeps_text: bool) -> None:
        self.block: int | None = None
        self.length = 0
        self._blocks: list[int] = []
        self._begins: list[int] = []
        self._begin_of: dict[int, int] = {}
        self._end_of: dict[int, int] = {}
        self._pieces: list[str] | None = [] if keeps_text else None
        self._searched = 0
        self._repeated = 0
        self._whole: _Places | None = None

    def add(self, block: int, text: str) -> None:
        """Take a piece of the answer."""
        if block not in self._begin_of:
            self._blocks.append(block)
            self._begins.append(self.length)
            self._begin_of[block] = self.length
        self.block, self._whole = block, None
        self.length += len(text)
        self._end_of[block] = self.length
        if self._pieces is None:
            return
        if self.length <= _MOST_HELD:
            self._pieces.append(text)
        else:
            self._pieces.clear()

    @property
    def too_long(self) -> bool:
        """Whether places in bytes are not known, because the answer is longer than what is held of it."""
        return self._pieces is not None and self.length > _MOST_HELD

    def begin_of(self, block: int) -> int:
        """Return where a block begins, in characters; one that said nothing begins where the text ends."""
        return self._begin_of.get(block, self.length)

    def end_of(self, block: int) -> int:
        """Return where a block ends, in characters."""
        return self._end_of.get(block, self.length)

    def block_at(self, place: int) -> int:
        """Return the block in which a character is; the first one where there is no text."""
        found = bisect_right(self._begins, place)
        return self._blocks[max(found - 1, 0)] if self._blocks else 0

    def from_bytes(self, one: Citation) -> Citation:
        """Return a citation whose places count characters, not bytes.

        Where other words stand there than the citation repeats (a stream may count from elsewhere), the places are those of these words.
        """
        if one.start is None or one.end is None:
            return one
        if self.too_long:
            return _without_places(one)
        places, said = self._places(), one.text.encode(errors="replace")
        if said and places.raw[one.start : one.start + len(said)] != said:
            begin = places.text.find(one.text, self._searched) if self._searched >= 0 else -1
            # One search that fails is the last: each looks at the whole text.
            self._searched = begin
            return one._replace(start=begin, end=begin + len(one.text)) if begin >= 0 else _without_places(one)
        begin, end = places.characters(one.start), places.characters(one.end)
        if self._searched >= 0:
            self._searched = max(self._searched, begin)
        return one._replace(start=begin, end=end)

    def from_bytes_of(self, block: int, one: Citation) -> Citation:
        """Return a citation whose places count characters of the answer, not bytes of a block."""
        if one.start is None or one.end is None:
            return one
        if self.too_long:
            return _without_places(one)
        before = self._places().bytes(self.begin_of(block))
        return self.from_bytes(one._replace(start=one.start + before, end=one.end + before))

    def in_bytes(self, one: Citation, base: int) -> Citation:
        """Return a citation whose places count bytes behind the character `base`, with the words between them."""
        if one.start is None or one.end is None:
            return one
        if self.too_long:
            return _without_places(one)
        places = self._places()
        before = places.bytes(base)
        self._repeated += max(one.end - one.start, 0)
        said = places.text[one.start : one.end] if self._repeated <= _MOST_REPEATED else ""
        return one._replace(start=places.bytes(one.start) - before, end=places.bytes(one.end) - before, text=said)

    def _places(self) -> _Places:
        if self._whole is None:
            text = "".join(self._pieces or ())
            self._pieces = [text]
            self._whole = _Places(text)
        return self._whole


class _Places:
    """A text and its bytes, with the number of characters or bytes before each `_STEP` of the other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw = text.encode(errors="replace")

    @cached_property
    def _characters(self) -> list[int]:
        counts = [0]
        for begin in range(0, len(self.raw), _STEP):
            counts.append(counts[-1] + _begun(self.raw[begin : begin + _STEP]))
        return counts

    @cached_property
    def _bytes(self) -> list[int]:
        counts = [0]
        for begin in range(0, len(self.text), _STEP):
            counts.append(counts[-1] + len(self.text[begin : begin + _STEP].encode(errors="replace")))
        return counts

    def characters(self, count: int) -> int:
        """Return how many characters begin within so many bytes."""
        count = min(max(count, 0), len(self.raw))
        step = count // _STEP
        return self._characters[step] + _begun(self.raw[step * _STEP : count])

    def bytes(self, count: int) -> int:
        """Return how many bytes so many characters take."""
        count = min(max(count, 0), len(self.text))
        step = count // _STEP
        return self._bytes[step] + len(self.text[step * _STEP : count].encode(errors="replace"))


def _begun(raw: bytes) -> int:
    return len(raw.translate(None, _CONTINUATION))


def _without_places(one: Citation) -> Citation:
    return one._replace(start=None, end=None)
