"""Arguments written as elements that may hold elements: `<city>Paris</city>`, with a mark of the format's own before each tag.

An element that holds elements is an object, or a list where they are named `item` and the tool's schema does not say otherwise.
"""

from __future__ import annotations

import re

from bardo.tools.calls import OpenCall
from bardo.tools.declared import TEXT, Place
from bardo.tools.jsontext import CUT_OFF, TOO_DEEP, escape
from bardo.tools.scanner import Malformed, Reading, Scanner
from bardo.tools.values import Value

KEY = re.compile(r"[^<>\s/]*")
KEY_LIMIT = 256
DEPTH_LIMIT = 50
ITEM = "item"
_BROKEN = "an element is broken"
_STRAY = "something else stands between the elements"


class ElementReader:
    """Reads the arguments of calls in one format. A value longer than `hold` that would need conversion stays text."""

    def __init__(self, scanner: Scanner, call: OpenCall, mark: str, *, hold: int) -> None:
        self._scanner = scanner
        self._call = call
        self._mark = mark
        self._opener = f"{mark}<"
        self._hold = hold

    def read(self, stops: tuple[str, ...]) -> Reading[None]:
        """Announce the call, and read elements up to one of `stops`. Raises Malformed."""
        call = self._call
        yield from self._scanner.blank()
        if not (yield from self._scanner.stands((self._opener, *stops))):
            raise Malformed("neither a parameter nor the end of the call follows")
        call.begin()
        try:
            yield from self._elements(stops)
        except Malformed:
            rest: list[str] = []
            yield from self._scanner.pass_until(stops, rest.append)
            if rest:
                call.note(_BROKEN, "".join(rest))
            raise
        call.close_parameters()

    def _elements(self, stops: tuple[str, ...]) -> Reading[None]:
        call = self._call
        while (yield from self._next(stops)):
            key = yield from self._key()
            call.key(key)
            yield from self._value(call.declared.parameter(call.name, key), key, 0)

    def _next(self, stops: tuple[str, ...]) -> Reading[bool]:
        """Read the beginning of the next tag; False before one of `stops`."""
        yield from self._scanner.blank()
        words = (self._opener, *stops)
        found = yield from self._scanner.stands(words)
        if not found:
            stray: list[str] = []
            found = yield from self._scanner.pass_until(words, stray.append)
            self._call.note(_STRAY, "".join(stray))
            if not found:
                raise Malformed(CUT_OFF)
        if found != self._opener:
            return False
        yield from self._scanner.choose((self._opener,))
        return True

    def _key(self) -> Reading[str]:
        key = yield from self._scanner.word(KEY, limit=KEY_LIMIT)
        if not key or not (yield from self._scanner.choose((">",))):
            self._call.note(_BROKEN, key)
            raise Malformed("an element has no name")
        return key

    def _value(self, place: Place, key: str, depth: int) -> Reading[None]:
        types = place.types
        closer = f"{self._mark}</{key}>"
        blank: list[str] = []
        if types != TEXT:
            yield from self._scanner.blank(blank.append)
            if (yield from self._scanner.stands((self._opener, closer))) == self._opener and (yield from self._opens()):
                yield from self._container(place, closer, depth)
                return
        yield from self._text(types, "".join(blank), closer)

    def _opens(self) -> Reading[bool]:
        """Whether a tag opens here, and does not close."""
        return not (yield from self._scanner.stands((f"{self._opener}/",)))

    def _text(self, types: frozenset[str], begun: str, closer: str) -> Reading[None]:
        value = Value(self._call, types or TEXT, self._hold)
        if begun:
            value.give(begun)
        if not (yield from self._scanner.pass_until((closer,), value.give)):
            value.cut_off()
            raise Malformed(CUT_OFF)
        yield from self._scanner.choose((closer,))
        value.close()

    def _container(self, place: Place, closer: str, depth: int) -> Reading[None]:
        if depth >= DEPTH_LIMIT:
            raise Malformed(TOO_DEEP)
        call, listed, lead = self._call, False, ""
        while (yield from self._next((closer,))):
            key = yield from self._key()
            if not lead:
                listed = _is_list(place, key)
                call.arguments("[" if listed else "{")
            call.arguments(lead if listed else f'{lead}"{escape(key)}": ')
            yield from self._value(place.item() if listed else place.property(key), key, depth + 1)
            lead = ", "
        yield from self._scanner.choose((closer,))
        call.arguments("]" if listed else "}")


def _is_list(place: Place, first: str) -> bool:
    types = place.types
    if "object" in types and ("array" not in types or place.property(first).types):
        return False
    return "array" in types or first == ITEM
