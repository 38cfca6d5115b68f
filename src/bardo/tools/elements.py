"""Arguments written as elements that may hold elements: `<city>Paris</city>`, with a mark of the format's own before each tag.

An element that holds elements is an object, or a list where they are named `item` and the tool's schema does not say otherwise.
Elements of one name in an object are a list under that name.
"""

from __future__ import annotations

import re

from bardo.tools.calls import ArgumentSink, OpenCall
from bardo.tools.declared import TEXT, Place
from bardo.tools.jsontext import CUT_OFF, TOO_DEEP, escape
from bardo.tools.scanner import Malformed, Reading, Scanner
from bardo.tools.values import Value

KEY = re.compile(r"[^<>\s/]*")
KEY_LIMIT = 256
DEPTH_LIMIT = 50
ITEM = "item"
_REPEATED = "an element is repeated where the first one has been given already: its key stands twice"
_BROKEN = "an element is broken"
_STRAY = "something else stands between the elements"


class ElementReader:
    """Reads the arguments of calls in one format. A value longer than `buffer_limit` that would need conversion stays text."""

    def __init__(self, scanner: Scanner, call: OpenCall, mark: str, *, buffer_limit: int) -> None:
        self._scanner = scanner
        self._call = call
        self._mark = mark
        self._opener = f"{mark}<"
        self._hold = buffer_limit

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
            yield from self._value(call, call.declared.parameter(call.name, key), key, 0)

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

    def _value(self, sink: ArgumentSink, place: Place, key: str, depth: int) -> Reading[None]:
        types = place.types
        closer = f"{self._mark}</{key}>"
        blank: list[str] = []
        if types != TEXT:
            yield from self._scanner.blank(blank.append)
            if (yield from self._scanner.stands((self._opener, closer))) == self._opener and (yield from self._opens()):
                yield from self._container(sink, place, closer, depth)
                return
        yield from self._text(sink, types, "".join(blank), closer)

    def _opens(self) -> Reading[bool]:
        """Whether a tag opens here, and does not close."""
        return not (yield from self._scanner.stands((f"{self._opener}/",)))

    def _text(self, sink: ArgumentSink, types: frozenset[str], begun: str, closer: str) -> Reading[None]:
        value = Value(sink, types or TEXT, self._hold)
        if begun:
            value.give(begun)
        if not (yield from self._scanner.pass_until((closer,), value.give)):
            value.cut_off()
            raise Malformed(CUT_OFF)
        yield from self._scanner.choose((closer,))
        value.close()

    def _container(self, sink: ArgumentSink, place: Place, closer: str, depth: int) -> Reading[None]:
        if depth >= DEPTH_LIMIT:
            raise Malformed(TOO_DEEP)
        yield from self._next((closer,))
        key = yield from self._key()
        members = _ListMembers(sink) if _is_list(place, key) else _ObjectMembers(sink, self._hold)
        try:
            while True:
                members.begin(key)
                inner = place.item() if isinstance(members, _ListMembers) else place.property(key)
                yield from self._value(members, inner, key, depth + 1)
                if not (yield from self._next((closer,))):
                    break
                key = yield from self._key()
        except Malformed:
            members.release()
            raise
        yield from self._scanner.choose((closer,))
        members.close()


class _ListMembers:
    """Passes the members of a list on as they arrive."""

    def __init__(self, sink: ArgumentSink) -> None:
        self._lead = "["
        self.arguments = sink.arguments
        self.note = sink.note

    def begin(self, key: str) -> None:
        """Begin a member; it has no name in JSON."""
        self.arguments(self._lead)
        self._lead = ", "

    def release(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        self.arguments("]")


class _ObjectMembers:
    """Holds the members of an object up to `hold` characters, because a later element of the same name makes a list of both."""

    def __init__(self, sink: ArgumentSink, hold: int) -> None:
        self._sink = sink
        self._room = hold
        self._held: dict[str, list[list[str]]] | None = {}
        self._names: set[str] = set()
        self._open: list[str] = []
        self._key = ""
        self._lead = "{"
        self.note = sink.note

    def begin(self, key: str) -> None:
        """Begin the value of a member."""
        if self._held is None:
            self._begin_released(key)
            return
        self._key, self._open = key, []
        self._held.setdefault(key, []).append(self._open)

    def arguments(self, text: str) -> None:
        """Take a piece of the open member's value."""
        if self._held is None:
            self._sink.arguments(text)
            return
        self._open.append(text)
        self._room -= len(text)
        if self._room < 0:
            self.release()

    def release(self) -> None:
        """Return what is held, the open member last and without an end: what follows goes on at once."""
        if self._held is None:
            return
        self._held[self._key].pop()
        self._give_held()
        self._begin_released(self._key)
        self._sink.arguments("".join(self._open))

    def close(self) -> None:
        """The object is complete."""
        self._give_held()
        self._sink.arguments("}")

    def _begin_released(self, key: str) -> None:
        if key in self._names:
            self.note(_REPEATED, key)
        self._names.add(key)
        self._lead_in(key)

    def _lead_in(self, key: str) -> None:
        self._sink.arguments(f'{self._lead}"{escape(key)}": ')
        self._lead = ", "

    def _give_held(self) -> None:
        held, self._held = self._held or {}, None
        for key, values in held.items():
            if values:
                self._give(key, ["".join(value) for value in values])

    def _give(self, key: str, texts: list[str]) -> None:
        self._names.add(key)
        self._lead_in(key)
        self._sink.arguments(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def _is_list(place: Place, first: str) -> bool:
    types = place.types
    if "object" in types and ("array" not in types or place.property(first).types):
        return False
    return "array" in types or first == ITEM
