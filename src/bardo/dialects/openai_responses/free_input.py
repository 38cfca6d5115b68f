"""The input of a custom tool, read from the arguments of the function that stands for it: `{"input": "…"}`, as they arrive."""

from __future__ import annotations

import re

import msgspec

from bardo.dialects.openai_responses.function_names import INPUT

_OPENING = re.compile(r'\s*\{\s*"' + INPUT + r'"\s*:\s*"')
_PLAIN = re.compile(r'[^"\\]+')
_HIGH = range(0xD800, 0xDC00)
_LOW = range(0xDC00, 0xE000)
_LONGEST_OPENING = 64
"""Characters that are waited for at the beginning before the arguments are taken for something else."""


class FreeInput:
    """Reads the text piece by piece. Arguments of another form are the text themselves, given at the end."""

    __slots__ = ("_buffer", "_closed", "_in_text", "_is_other", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._buffer = ""
        self._in_text = self._is_other = self._closed = False

    def feed(self, arguments: str) -> str:
        """Take a piece of the arguments, and return what it adds to the text."""
        if self._closed:
            return ""
        if self._in_text:
            return self._unescape(self._buffer + arguments)
        self._pieces.append(arguments)
        if self._is_other:
            return ""
        start = "".join(self._pieces)
        opening = _OPENING.match(start)
        if opening is None:
            self._is_other = len(start) > _LONGEST_OPENING
            return ""
        self._in_text = True
        self._pieces = []
        return self._unescape(start[opening.end() :])

    def finish(self) -> str:
        """Return the rest of the text."""
        if self._in_text:
            return ""
        whole = "".join(self._pieces)
        self._pieces = []
        return only_text(whole)

    def _unescape(self, text: str) -> str:
        """Return the text up to an escape that is cut off, or to the closing quote."""
        self._buffer = ""
        found: list[str] = []
        at = 0
        while at < len(text):
            plain = _PLAIN.match(text, at)
            if plain is not None:
                taken, end = plain.group(), plain.end()
            elif text[at] == '"':
                self._closed = True
                break
            elif (escape := _escape(text, at)) is not None:
                taken, end = escape
            else:
                self._buffer = text[at:]
                break
            found.append(taken)
            at = end
        return "".join(found)


def _escape(text: str, at: int) -> tuple[str, int] | None:
    """Return the character of the escape at `at`, and where it ends; None where it is cut off."""
    if len(text) < at + 2:
        return None
    if text[at + 1] != "u":
        return _SHORT.get(text[at + 1], text[at : at + 2]), at + 2
    if len(text) < at + 6:
        return None
    code = _code(text, at)
    if code in _HIGH:
        if len(text) < at + 12 and text.startswith("\\u"[: len(text) - at - 6], at + 6):
            return None
        low = _code(text, at + 6) if text.startswith("\\u", at + 6) else -1
        if low in _LOW:
            return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), at + 12
    return "\ufffd" if code in _HIGH or code in _LOW or code < 0 else chr(code), at + 6


def _code(text: str, at: int) -> int:
    try:
        return int(text[at + 2 : at + 6], 16)
    except ValueError:
        return -1


_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}


def only_text(arguments: str) -> str:
    """Return the one text that arguments of another form hold, or the arguments as they are."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return arguments
    if isinstance(value, dict):
        texts = [one for one in value.values() if isinstance(one, str)]
        if isinstance(value.get(INPUT), str):
            return str(value[INPUT])
        if len(value) == len(texts) == 1:
            return texts[0]
    return value if isinstance(value, str) else arguments
