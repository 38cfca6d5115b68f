"""Decode JSON that has a bounded number of levels, a slice at a time where it is long.

One call of a JSON library holds the interpreter until it returns: half a second for an object with a million fields, in which no other
thread runs, and so not the event loop either. Long JSON is therefore cut at commas between the members of its objects and arrays, and each
slice is a call of its own to the same library, so that values are the same and errors nearly so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

# Far more than any body has, and far less than Python's stack: whatever is read here may be compared, copied and written.
MAX_DEPTH = 200
FEW_LEVELS = MAX_DEPTH - 16
"""So many levels stand in any place of a body: no dialect's own objects and lists are nested as deeply as the rest."""
SLICED_BYTES = 256 * 1024
"""From this size on JSON is decoded in slices where it has many values, and from `_ALWAYS_SLICED_BYTES` on in any case."""
_ALWAYS_SLICED_BYTES = 2 * 1024 * 1024
# At most twenty milliseconds: objects and arrays take three times as long as other values, and texts next to nothing.
_MANY_BRACKETS, _MANY_COMMAS = 50_000, 100_000
_SLICE_BYTES, _TEXT_BYTES = 96 * 1024, 64 * 1024
# Bytes from which on counting brackets takes longer than looking at the objects and arrays themselves.
_LONG = 16_384
# Objects and arrays of so many levels stand in a slice as they are; deeper ones are split further.
_LEVELS = 8
_NESTED = frozenset((dict, list))
_SPACE = b" \t\n\r"
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


@cache
def _members() -> re.Pattern[bytes]:
    """Return the expression for all members that have a comma behind them, and for the last one where an end is behind it."""
    nested = rb'(?:[^][{}"]++|' + _STRING + rb")"
    for _ in range(_LEVELS - 1):
        nested = rb'(?:[^][{}"]++|' + _STRING + rb"|[\[{]" + nested + rb"*+[\]}])"
    member = rb'(?:[^][{}",]++|' + _STRING + rb"|[\[{]" + nested + rb"*+[\]}])*+"
    return re.compile(rb"(?:" + member + rb",)*+(?:" + member + rb"(?=[\]}]))?+", re.DOTALL)


_BLANK = re.compile(rb"[ \t\n\r]*+")
_NAME = re.compile(rb"(" + _STRING + rb")[ \t\n\r]*+:[ \t\n\r]*+", re.DOTALL)
_SCALAR = re.compile(rb'[^][{}",: \t\n\r]*+')
# Two escapes may be one character together.
_TEXT = re.compile(
    rb'[^"\\]*+(?:(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\[^u])[^"\\]*+)*+',
    re.DOTALL,
)
_ESCAPED = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_PLACE = re.compile(r"\(byte (\d+)\)$")
_TOO_DEEP = "nested too deeply"
_TRUNCATED = "Input data was truncated"
_BYTES_OF_A_PAIR = 12
_decode = msgspec.json.Decoder().decode


def decode_bounded(
    data: bytes, levels: int = MAX_DEPTH, decode: Callable[[bytes], Any] = _decode, *, slice_bytes: int = _SLICE_BYTES
) -> Any:
    """Return the value of JSON. `decode` reads it, or a slice of it.

    Raises RecursionError where it has more than so many levels, msgspec.DecodeError where it is no JSON, and what `decode` raises.
    """
    takes_long = len(data) >= SLICED_BYTES and (
        len(data) >= _ALWAYS_SLICED_BYTES
        or not has_few_brackets(data, _MANY_BRACKETS)
        or len(data) - len(data.replace(b",", b"", _MANY_COMMAS + 1)) > _MANY_COMMAS
    )
    if takes_long or slice_bytes < _SLICE_BYTES:
        return _Slices(data, levels, decode, slice_bytes).value()
    value = decode(data)
    if is_too_deep(value, data, levels):
        raise RecursionError(_TOO_DEEP)
    return value


class _Slices:
    """Long JSON and the place up to which it was read. `_open` are the objects and arrays around that place, the innermost last."""

    def __init__(self, data: bytes, levels: int, decode: Callable[[bytes], Any], slice_bytes: int) -> None:
        self._data = data
        self._levels = levels
        self._decode = decode
        self._slice_bytes = slice_bytes
        self._place = 0
        self._open: list[Any] = []

    def value(self) -> Any:
        """Return the value of all of it."""
        begin = self._next()
        value: object = self._enter() if begin in (b"[", b"{") else self._plain()
        expects_member = False
        while self._open:
            if self._add_members(expects_member):
                expects_member = True
            elif self._next() in (b"]", b"}") or not self._add_long_member():
                expects_member = self._leave()
            else:
                expects_member = False
        if self._next():
            raise self._malformed("trailing characters")
        return value

    def _add_members(self, expects_member: bool) -> bool:
        """Add the members that a slice holds to the open container, and return whether a comma follows; else an end or a long one does."""
        around = self._open[-1]
        match = _members().match(self._data, self._place, self._place + self._slice_bytes)
        assert match is not None
        begin, end = self._place, match.end()
        ends_here = self._data[end : end + 1] in (b"]", b"}")
        has_comma = not ends_here and end > begin
        members = self._data[begin : end - has_comma]
        self._place = end
        if members.strip(_SPACE):
            part = b"[%b]" % members if type(around) is list else b"{%b}" % members
            added, levels = self._read(part, begin - 1), self._levels - len(self._open) + 1
            if levels <= _LEVELS and is_too_deep(added, part, levels):
                raise RecursionError(_TOO_DEEP)
            around.extend(added) if type(around) is list else around.update(added)
        elif has_comma or (ends_here and expects_member):
            raise self._malformed("expected a value")
        return has_comma

    def _add_long_member(self) -> bool:
        """Add a member that no slice holds to the open container: begin with it, and return True, if it is an object or an array itself."""
        around, name = self._open[-1], ""
        if type(around) is dict:
            match = _NAME.match(self._data, self._place)
            if match is None:
                raise self._malformed("expected a name")
            name = self._read(match[1], self._place)
            self._place = match.end()
        is_open = self._next() in (b"[", b"{")
        value = self._enter() if is_open else self._plain()
        around.append(value) if type(around) is list else around.update({name: value})
        return is_open

    def _enter(self) -> Any:
        """Begin with an object or an array, and return it."""
        value: object = [] if self._data[self._place : self._place + 1] == b"[" else {}
        self._open.append(value)
        if len(self._open) > self._levels:
            raise RecursionError(_TOO_DEEP)
        self._place += 1
        return value

    def _leave(self) -> bool:
        """Go behind the ends of objects and arrays, up to the next comma, and return whether one came."""
        while self._open:
            following = self._next()
            if following == b",":
                self._place += 1
                return True
            if following != (b"]" if type(self._open[-1]) is list else b"}"):
                raise self._malformed("expected ',' or an end")
            self._open.pop()
            self._place += 1
        return False

    def _plain(self) -> Any:
        """Read a text, a number or a word, a long text in parts."""
        begin = self._place
        if self._next() != b'"':
            match = _SCALAR.match(self._data, begin)
            assert match is not None
            if match.end() == begin:
                raise self._malformed("expected a value")
            self._place = match.end()
            return self._read(self._data[begin : self._place], begin)
        self._place, parts = begin + 1, []
        while True:
            match = _TEXT.match(self._data, self._place, self._place + _TEXT_BYTES)
            assert match is not None
            end = match.end()
            # No part ends within a character of several bytes.
            while 0x80 <= (self._data[end : end + 1] or b"\0")[0] < 0xC0:
                end += 1
            closes = self._data[end : end + 1] == b'"'
            if end == self._place and not closes:
                # An escape that is none, or half a character: the library says so, or `decode` mends it.
                return self._whole_text(begin)
            parts.append(self._read(b'"%b"' % self._data[self._place : end], self._place - 1))
            self._place = end + closes
            if closes:
                return "".join(parts)

    def _whole_text(self, begin: int) -> Any:
        self._place = begin + 1
        while True:
            match = _ESCAPED.match(self._data, self._place, self._place + _TEXT_BYTES)
            assert match is not None
            if self._data[match.end() : match.end() + 1] == b'"':
                self._place = match.end() + 1
                return self._read(self._data[begin : self._place], begin)
            if match.end() == self._place:
                raise msgspec.DecodeError(_TRUNCATED)
            self._place = match.end()

    def _next(self) -> bytes:
        """Go to the next byte that is no white space, and return it; nothing at the end."""
        match = _BLANK.match(self._data, self._place)
        assert match is not None
        self._place = match.end()
        return self._data[self._place : self._place + 1]

    def _read(self, data: bytes, place: int) -> Any:
        """Return the value of a piece that begins at a place. Raises DecodeError with the byte of the whole."""
        try:
            return self._decode(data)
        except msgspec.DecodeError as problem:
            text = _PLACE.sub(lambda match: f"(byte {int(match[1]) + place})", words_of(problem, data))
            raise msgspec.DecodeError(text) from None

    def _malformed(self, what: str) -> msgspec.DecodeError:
        if self._place >= len(self._data):
            return msgspec.DecodeError(_TRUNCATED)
        return msgspec.DecodeError(f"JSON is malformed: {what} (byte {self._place})")


def words_of(problem: Exception, data: bytes) -> str:
    """Return what a decoder says of JSON: half a character in the last bytes is a cut text to it, unless there is space behind them."""
    if str(problem) == _TRUNCATED and data.rstrip(_SPACE).endswith((b'"', b"]", b"}")) and len(data) < SLICED_BYTES:
        try:
            _decode(data + b" " * _BYTES_OF_A_PAIR)
        except msgspec.DecodeError as further:
            return str(further)
    return str(problem)


def is_too_deep(value: Any, data: bytes, levels: int = MAX_DEPTH) -> bool:
    """Whether the value of `data`, as a JSON decoder made it, has more than so many levels."""
    # For short texts, counting brackets is enough for all but a few.
    if len(data) <= levels or (len(data) < _LONG and has_few_brackets(data, levels)):
        return False
    return has_many_levels(value, levels)


def has_many_levels(value: Any, levels: int = FEW_LEVELS) -> bool:
    """Whether a value that a JSON decoder made has more than so many levels."""
    nested = [value] if type(value) is dict or type(value) is list else []
    for _ in range(levels):
        nested = [item for at in nested for item in (at.values() if type(at) is dict else at) if type(item) in _NESTED]
        if not nested:
            return False
    return bool(nested)


def has_few_brackets(data: bytes, levels: int = MAX_DEPTH) -> bool:
    """Whether at most so many objects and arrays begin in JSON; then it has at most so many levels, too."""
    # `replace` finds a byte with `memchr`, and takes a third to a tenth of the time of `count`, which compares one byte after the other.
    few = len(data) - len(data.replace(b"[", b"", levels + 1))
    return few <= levels and few + len(data) - len(data.replace(b"{", b"", levels + 1)) <= levels
