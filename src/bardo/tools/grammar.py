"""Grammars of tool calls in text: elements of a markup, and the parameters that stand in them."""

from __future__ import annotations

import re

from bardo.tools.calls import ArgumentSink, OpenCall
from bardo.tools.declared import TEXT, Place
from bardo.tools.formats import ToolCallFormat
from bardo.tools.json_calls import read_arguments, read_json_calls
from bardo.tools.jsontext import (
    ARGUMENT,
    CUT_OFF,
    LISTED_ARGUMENT,
    NOTATIONS,
    PYTHON,
    TOO_DEEP,
    Following,
    escape,
    pass_literal,
)
from bardo.tools.scanner import Give, Malformed, Reading, Scanner, Shape, ShapeStep, markers, shapes_of
from bardo.tools.values import TrimmedValue, Value, WrappedValue

ELEMENT_KEY = re.compile(r"[^<>\s/]*")
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
        word = yield from self._scanner.stands(words)
        if not word:
            stray: list[str] = []
            word = yield from self._scanner.pass_until(words, stray.append)
            self._call.note(_STRAY, "".join(stray))
            if not word:
                raise Malformed(CUT_OFF)
        if word != self._opener:
            return False
        yield from self._scanner.choose((self._opener,))
        return True

    def _key(self) -> Reading[str]:
        key = yield from self._scanner.word(ELEMENT_KEY, limit=KEY_LIMIT)
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
        """Return the held members, the open one last and without an end: the text that follows goes on at once."""
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


PARAMETER_KEY = re.compile(r"[^\"'<>\r\n{}|]*")
WORD = re.compile(r"[\w.\-]*")
KEYS_LIMIT = 128
"""Declared parameters that end one without an end of its own."""
BLANKS_AT_END = 16
CDATA = "<![CDATA["
QUOTED_NAME = re.compile(r"[^\"\r\n]*")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}
"""The escapes of characters in quoted names, the ampersand last: it may be part of another escape."""
NOT_TEXT = frozenset({"object", "array", "number", "integer", "boolean", "null"})
WRAPPERS = frozenset({"arguments", "parameters", "properties", "input"})
"""Parameters that models make up and write all arguments in, as one object."""
_HEADER = ["literal", "key", "literal"]


def _unescaped(word: str) -> str:
    # `xml.sax.saxutils` does the same, and loads an HTTP client for it.
    for entity, letter in _ENTITIES.items():
        word = word.replace(entity, letter)
    return word


class _NoEnd(Exception):
    """A parameter ended where the next one begins, or where the call ends. Caught in this module."""


class ParameterReader:
    """Reads the parameters of calls in one format. A value longer than `hold` that would need conversion stays text."""

    def __init__(self, scanner: Scanner, call: OpenCall, row: ToolCallFormat, *, hold: int) -> None:
        self._scanner = scanner
        self._call = call
        self._shapes = shapes_of(row)
        self._trims = row.trims_newlines
        self._cdata = row.cdata
        self._quoted_names = row.quoted_names
        self._hold = hold
        self._stops: tuple[str, ...] = ()
        self._closers: tuple[str, ...] = ()
        self._key = ""
        self._types = self._default = TEXT
        self._seen: set[str] = set()
        self._wrapper: WrappedValue | None = None

    def read(self, step: ShapeStep) -> Reading[None]:
        """Read parameters until something else stands here. Raises Malformed."""
        stops = self._stops = (*step.until, *self._shapes.borders)
        self._closers = step.until
        firsts = self._shapes.parameter_firsts
        yield from self._scanner.blank()
        if (yield from self._scanner.peek()) == "{":
            yield from read_arguments(self._scanner, self._call, stops)
            return
        if not self._call.begun and not (yield from self._scanner.stands((*firsts, *stops))):
            raise Malformed("neither a parameter nor the end of the call follows")
        self._call.begin()
        self._seen.clear()
        while (yield from self._next(firsts, stops)):
            yield from self._read_parameter()
        self._call.close_parameters()

    def _next(self, firsts: tuple[str, ...], stops: tuple[str, ...]) -> Reading[bool]:
        """Say whether another parameter begins here; what stands before it and means nothing is told."""
        yield from self._scanner.blank()
        word = yield from self._scanner.stands((*firsts, *stops))
        if not word:
            junk: list[str] = []
            word = yield from self._scanner.pass_until((*firsts, *stops), junk.append)
            if junk:
                self._call.note("something else stands between the parameters", "".join(junk))
            if not word:
                raise Malformed(CUT_OFF)
        return word in firsts

    def _read_parameter(self) -> Reading[None]:
        first = yield from self._scanner.stands(self._shapes.parameter_firsts)
        shape = next(shape for shape in self._shapes.parameters if shape[0].text == first)
        self._key, self._types, self._default = "", frozenset[str](), TEXT
        self._scanner.mark()
        try:
            yield from self._walk(shape)
        except _NoEnd:
            self._call.note("a parameter has no end: the next one began, or the call ended", self._key)
        except Malformed:
            header = self._scanner.release()
            if header:
                self._call.note("a parameter is broken", header)
            if not header or not (yield from self._scanner.stands((*self._shapes.parameter_firsts, *self._stops))):
                raise
        finally:
            self._seen.add(self._key)
        if self._wrapper is not None:
            yield from self._unwrap(self._wrapper)

    def _unwrap(self, wrapper: WrappedValue) -> Reading[None]:
        self._wrapper = None
        yield from self._scanner.blank()
        followed = yield from self._scanner.stands(self._shapes.parameter_firsts)
        wrapper.settle(alone=not followed)

    def _walk(self, shape: Shape) -> Reading[None]:
        for step in shape:
            if step.kind == "literal":
                yield from self._literal(step.text)
            elif step.kind == "optional":
                yield from self._scanner.blank()
                if (yield from self._scanner.stands((step.group[0].text,))):
                    yield from self._walk(step.group)
            else:
                yield from self._hole(step)

    def _literal(self, text: str) -> Reading[None]:
        yield from self._scanner.blank()
        if not (yield from self._scanner.choose((text,))):
            raise Malformed(f"a parameter is broken: {text!r} is missing")

    def _hole(self, step: ShapeStep) -> Reading[None]:
        if step.kind == "key":
            yield from self._scanner.blank()
            pattern = QUOTED_NAME if self._quoted_names else PARAMETER_KEY
            word = (yield from self._scanner.word(pattern, limit=KEY_LIMIT)).strip()
            self._key = _unescaped(word) if self._quoted_names else word
        elif step.kind == "value":
            yield from self._value(step.until)
        else:
            word = yield from self._scanner.word(WORD, limit=KEY_LIMIT)
            if step.kind == "type":
                self._types = frozenset({word.lower()})
            elif word.lower() != "true":
                self._default = NOT_TEXT

    def _value(self, closers: tuple[str, ...]) -> Reading[None]:
        self._scanner.release()
        value = self._begin_value()
        lead: list[str] = []
        if self._cdata:
            yield from self._scanner.blank(lead.append)
        if self._cdata and (yield from self._scanner.choose((CDATA,))):
            yield from self._to(("]]>",), value, value.give)
            yield from self._scanner.choose(("]]>",))
        elif self._trims:
            yield from self._lines(closers, value)
        else:
            value.give("".join(lead))
            yield from self._to(closers, value, value.give)
        if isinstance(value, WrappedValue):
            self._wrapper = value
        else:
            value.close()

    def _begin_value(self) -> Value:
        call, key = self._call, self._key
        declared = call.declared.keys(call.name)
        if key in WRAPPERS and declared and key not in declared and not self._seen:
            return WrappedValue(call, key, declared, self._hold)
        if key in self._seen:
            call.note("a parameter is written twice", key)
        types = self._types or call.declared.parameter(call.name, key).types or self._default
        call.key(key)
        return Value(call, types, self._hold)

    def _lines(self, closers: tuple[str, ...], value: Value) -> Reading[None]:
        """Read a value that may stand on lines of its own. It also ends at a line with another declared parameter or the call's end."""
        on_lines = bool((yield from self._scanner.choose(("\r\n", "\n"))))
        trimmed = TrimmedValue(value.give) if on_lines else None
        give = trimmed.give if trimmed else value.give
        headers = self._headers()
        last, before_section = self._ends_of_call()
        ends = markers((*closers, *headers, *last, *before_section))
        while (word := (yield from self._scanner.pass_to(ends, give))) and word not in closers:
            if (
                word in before_section
                or (word in headers and headers[word] not in self._seen | {self._key})
                or (word in last and (yield from self._is_last(word)))
            ):
                value.close()
                raise _NoEnd
            give(self._scanner.skip())
        if not word:
            if trimmed:
                trimmed.release()
            value.cut_off()
            raise Malformed(CUT_OFF)

    def _ends_of_call(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return what ends the call on a line of its own: alone, and with the end of the section or the next call after it."""
        alone = tuple(f"\n{closer}" for closer in self._closers)
        return alone, tuple(
            f"{end}{blank}{border}" for end in alone for blank in ("", "\n", "\r\n") for border in self._shapes.borders
        )

    def _is_last(self, end: str) -> Reading[bool]:
        """Whether the reply ends after what ends a call, but for white space."""
        count = len(end)
        while not (text := (yield from self._scanner.ahead(count + 1)))[len(end) :].strip():
            if len(text) <= count:
                return True
            if count > len(end) + BLANKS_AT_END:
                break
            count += 1
        return False

    def _headers(self) -> dict[str, str]:
        """Return what the declared parameters begin with on a line of their own, and which they are."""
        keys = sorted(self._call.declared.keys(self._call.name))[:KEYS_LIMIT]
        shapes = [shape for shape in self._shapes.parameters if [step.kind for step in shape[:3]] == _HEADER]
        return {f"\n{shape[0].text}{key}{shape[2].text}": key for shape in shapes for key in keys}

    def _to(self, closers: tuple[str, ...], value: Value, give: Give) -> Reading[None]:
        if not (yield from self._scanner.pass_until(closers, give)):
            value.cut_off()
            raise Malformed(CUT_OFF)


NAME = re.compile(r"[\w.:/\-]*")
PYTHON_NAME = re.compile(r"[\w.\-]*")
KEY = re.compile(r"\w*")
NAME_LIMIT = 256
_INDEX = re.compile(r":\d+$")
_BLANKS = ("", " ", "\n", "\r\n")
_OBJECTS = ("{", "[{", *(f"[{line}{indent}{{" for line in ("", "\n") for indent in (" ", "  ", "    ", "\t")), "[\n{")
_BRACKETS = {"json": ("{", "["), "objects": _OBJECTS, "python": ("[",)}
_REPEATS = ("call",)


def read_python_calls(scanner: Scanner, call: OpenCall, stops: tuple[str, ...]) -> Reading[None]:
    """Read a list of calls with keyword arguments. Raises Malformed."""
    yield from scanner.expect("[")
    yield from scanner.blank()
    while not (yield from scanner.choose(("]",))):
        yield from read_python_call(scanner, call, stops, following=LISTED_ARGUMENT)
        scanner.mark()
        yield from scanner.blank()
        if not (yield from scanner.choose((",",))) and not (yield from scanner.stands(("]",))):
            raise Malformed("the list of calls is broken")
        yield from scanner.blank()
    if not call.count:
        raise Malformed("a list without calls")


def read_gemma_arguments(scanner: Scanner, call: OpenCall, stops: tuple[str, ...]) -> Reading[None]:
    """Announce the call and pass its arguments on as JSON. Raises Malformed."""
    yield from scanner.blank()
    if (yield from scanner.peek()) != "{":
        raise Malformed("arguments are missing")
    call.begin()
    try:
        yield from pass_literal(scanner, call.arguments, NOTATIONS["gemma"])
    except Malformed:
        yield from scanner.pass_until(stops, call.arguments)
        raise


def read_python_call(
    scanner: Scanner, call: OpenCall, stops: tuple[str, ...], *, following: Following = ARGUMENT
) -> Reading[None]:
    """Read one call with keyword arguments. Raises Malformed."""
    call.name = yield from scanner.word(PYTHON_NAME, limit=NAME_LIMIT)
    if not call.name or call.name[0].isdigit():
        raise Malformed("a tool's name is missing")
    yield from scanner.expect("(")
    yield from scanner.blank()
    try:
        while not (yield from scanner.choose((")",))):
            yield from _keyword(scanner, call, following)
    except Malformed:
        if call.begun:
            yield from scanner.pass_until(stops, call.arguments)
        raise
    call.begin()
    call.close_parameters()
    call.end()


def _keyword(scanner: Scanner, call: OpenCall, following: Following) -> Reading[None]:
    key = yield from scanner.word(KEY, limit=NAME_LIMIT)
    yield from scanner.blank()
    if not key or not (yield from scanner.choose(("=",))):
        if call.begun:
            call.arguments(key)
        raise Malformed("an argument has no name")
    call.begin()
    call.key(key)
    yield from pass_literal(scanner, call.arguments, PYTHON, following=following)
    yield from scanner.blank()
    if not (yield from scanner.choose((",",))) and not (yield from scanner.stands((")",))):
        raise Malformed("arguments are broken")
    yield from scanner.blank()


class CallGrammar:
    """Reads calls of one format from one scanner."""

    def __init__(self, scanner: Scanner, call: OpenCall, row: ToolCallFormat, *, hold: int) -> None:
        self._scanner = scanner
        self._call = call
        self._name_is_key = row.name_is_key
        self._raw_arguments = row.raw_arguments
        self._doubled_names = row.doubled_names
        self._quoted_names = row.quoted_names
        self._shapes = shapes_of(row)
        self._before = 0
        self._word = ""
        self._parameters = ParameterReader(scanner, call, row, hold=hold)
        self._elements = ElementReader(scanner, call, row.element_mark, buffer_limit=hold)

    def fitting(self, *, again: bool = False) -> Reading[Shape | None]:
        """Return the shape that can begin here. After a call, a bare name is not taken for `again` one."""
        for shape in self._shapes.calls:
            first, follows = shape[0], shape[1] if len(shape) > 1 else None
            if first.kind != "literal":
                beginnings = _BRACKETS.get(first.kind, ())
            else:
                brackets = _BRACKETS.get(follows.kind, ()) if follows else ()
                beginnings = tuple(f"{first.text}{blank}{bracket}" for bracket in brackets for blank in _BLANKS) or (
                    first.text,
                )
            if (yield from self._scanner.stands(beginnings)):
                return shape
        named = (shape for shape in self._shapes.calls if shape[0].kind not in ("literal", *_BRACKETS))
        return next((shape for shape in named if not again or shape[0].kind in _REPEATS), None)

    def read(self, shape: Shape) -> Reading[None]:
        """Read a call. Raises Malformed; whether it had begun by then, the call itself says."""
        self._call.reset()
        self._before = self._call.count
        yield from self._walk(shape)
        if self._call.count == self._before:
            raise Malformed("what follows the tool's name is no call")

    def _walk(self, shape: Shape) -> Reading[None]:
        for step in shape:
            if step.kind == "literal":
                yield from self._literal(step)
            elif step.kind == "optional":
                if (yield from self._option(step.group[0].text)):
                    yield from self._walk(step.group)
            else:
                yield from self._hole(step)

    def _option(self, first: str) -> Reading[bool]:
        """Whether a part that may be missing begins here. After a call, white space is read only before such a part."""
        after_call = self._call.count > self._before
        if after_call and not (yield from self._scanner.stands(tuple(f"{blank}{first}" for blank in _BLANKS))):
            return False
        yield from self._scanner.blank()
        return bool((yield from self._scanner.stands((first,))))

    def _literal(self, step: ShapeStep) -> Reading[None]:
        yield from self._scanner.blank()
        if (yield from self._scanner.choose((step.text,))) or (
            self._call.count > self._before and (yield from self._over())
        ):
            return
        raise Malformed(f"{step.text!r} is missing")

    def _over(self) -> Reading[bool]:
        """Whether a call that was told of is over without all of its closing parts: servers cut the last ones off."""
        return not (yield from self._scanner.peek()) or bool((yield from self._scanner.stands(self._shapes.borders)))

    def _hole(self, step: ShapeStep) -> Reading[None]:
        scanner, call = self._scanner, self._call
        stops = (*step.until, *self._shapes.borders)
        match step.kind:
            case "arguments":
                yield from read_arguments(scanner, call, stops, raw=self._raw_arguments)
            case "named":
                call.name = self._word
            case "empty":
                call.begin()
                call.close_parameters()
            case "parameters":
                yield from self._parameters.read(step)
            case "elements":
                yield from self._elements.read(stops)
            case "json" | "objects":
                yield from read_json_calls(scanner, call, stops, name_is_key=self._name_is_key)
            case "python":
                yield from read_python_calls(scanner, call, stops)
            case "call":
                yield from read_python_call(scanner, call, stops)
            case "gemma":
                yield from read_gemma_arguments(scanner, call, stops)
            case _:
                yield from scanner.blank()
                quoted = self._quoted_names and step.kind == "name"
                word = yield from scanner.word(QUOTED_NAME if quoted else NAME, limit=NAME_LIMIT)
                self._emit(step.kind, _unescaped(word) if quoted else word)

    def _emit(self, kind: str, word: str) -> None:
        call = self._call
        if kind == "id":
            call.id = word
        elif kind == "identifier":
            call.id, call.name = word, _INDEX.sub("", word).removeprefix("functions.")
        elif kind == "recipient":
            call.name = word.removeprefix("functions.")
        elif kind == "word":
            self._word = word
        elif kind == "name":
            call.name = self._declared_name(word)

    def _declared_name(self, word: str) -> str:
        """Return the name of the declared tool that a doubled name means, in formats that double names; else the word."""
        before, dot, after = word.partition(".")
        doubled = self._doubled_names and bool(dot) and before == after
        declared = self._call.declared
        return before if doubled and declared.knows(before) and not declared.knows(word) else word
