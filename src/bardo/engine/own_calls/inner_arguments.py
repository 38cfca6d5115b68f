"""The JSON object that stands within the arguments of another call, piece by piece, up to where it closes."""

from __future__ import annotations

import re

_TOKEN = re.compile(r'["\\{}\[\]]')


class InnerObject:
    """Cuts off what comes behind the end of a JSON object. Its first piece begins with the brace that opens it."""

    __slots__ = ("_depth", "_escaped", "_in_text", "closed")

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = self._escaped = False
        self.closed = False

    def feed(self, piece: str) -> str:
        """Return what of a piece belongs to the object."""
        if self.closed:
            return ""
        at = 1 if self._escaped and piece else 0
        self._escaped = self._escaped and not piece
        while (token := _TOKEN.search(piece, at)) is not None:
            at = token.end()
            if self._in_text and token[0] == "\\":
                self._escaped = at == len(piece)
                at += 1
            elif self._closes(token[0]):
                self.closed = True
                return piece[:at]
        return piece

    def _closes(self, token: str) -> bool:
        """Take a quote or a bracket, and return whether the object ends with it."""
        if token == '"':
            self._in_text = not self._in_text
        elif not self._in_text and token in "{[":
            self._depth += 1
        elif not self._in_text and token in "}]":
            self._depth -= 1
            return self._depth == 0
        return False
