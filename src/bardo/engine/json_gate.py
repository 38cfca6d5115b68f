"""Tell, while a text arrives, which part of it is one JSON object or array: from its first bracket to the one that closes it."""

from __future__ import annotations

import re

_MARK = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'["\\]')


class JsonGate:
    """Lets text pass that begins as JSON does, to the end of that value. `closed`: nothing passes any more.

    Text that begins in another way, as a code fence does, does not pass: what its answer is shows at its end. Whether the text is sound
    JSON is not looked at.
    """

    def __init__(self) -> None:
        self.closed = False
        self.begun = False
        self._before = ""
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> tuple[str, str]:
        """Return what passes of a text, and what does not. Space before the first bracket waits for it."""
        if self.closed:
            return "", text
        if not self.begun:
            text = self._before + text
            begin = text.lstrip()[:1]
            if not begin:
                self._before = text
                return "", ""
            self._before = ""
            self.begun = begin in "{["
            self.closed = not self.begun
            if self.closed:
                return "", text
        end = self._end(text)
        self.closed = end is not None
        return (text, "") if end is None else (text[:end], text[end:])

    def _end(self, text: str) -> int | None:
        """Return where the value ends in this piece; None where it goes on."""
        at = 1 if self._escaped else 0
        self._escaped = False
        while True:
            found = (_IN_STRING if self._in_string else _MARK).search(text, at)
            if found is None:
                return None
            at = found.end()
            mark = found.group()
            if mark == "\\":
                self._escaped = at == len(text)
                at += 1
            elif mark == '"':
                self._in_string = not self._in_string
            elif mark in "{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == 0:
                    return at
