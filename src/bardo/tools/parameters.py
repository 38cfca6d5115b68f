"""Calls written as a name and parameters, one by one: `<parameter=city>Paris</parameter>`."""

from __future__ import annotations

import re
from xml.sax.saxutils import unescape

from bardo.tools.calls import OpenCall
from bardo.tools.declared import TEXT
from bardo.tools.formats import ToolCallFormat
from bardo.tools.json_calls import read_arguments
from bardo.tools.jsontext import CUT_OFF
from bardo.tools.scanner import Give, Malformed, Reading, Scanner, markers
from bardo.tools.shapes import Shape, ShapeStep, shapes_of
from bardo.tools.values import TrimmedValue, Value, WrappedValue

KEY = re.compile(r"[^\"'<>\r\n{}|]*")
WORD = re.compile(r"[\w.\-]*")
KEY_LIMIT = 256
KEYS_LIMIT = 128
"""Declared parameters that end one without an end of its own."""
BLANKS_AT_END = 16
CDATA = "<![CDATA["
QUOTED_NAME = re.compile(r"[^\"\r\n]*")
ENTITIES = {"&quot;": '"', "&apos;": "'"}
NOT_TEXT = frozenset({"object", "array", "number", "integer", "boolean", "null"})
WRAPPERS = frozenset({"arguments", "parameters", "properties", "input"})
"""Parameters that models make up and write all arguments in, as one object."""
_HEADER = ["literal", "key", "literal"]


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
        found = yield from self._scanner.stands((*firsts, *stops))
        if not found:
            junk: list[str] = []
            found = yield from self._scanner.pass_until((*firsts, *stops), junk.append)
            if junk:
                self._call.note("something else stands between the parameters", "".join(junk))
            if not found:
                raise Malformed(CUT_OFF)
        return found in firsts

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
            pattern = QUOTED_NAME if self._quoted_names else KEY
            word = (yield from self._scanner.word(pattern, limit=KEY_LIMIT)).strip()
            self._key = unescape(word, ENTITIES) if self._quoted_names else word
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
        while (found := (yield from self._scanner.pass_to(ends, give))) and found not in closers:
            if (
                found in before_section
                or (found in headers and headers[found] not in self._seen | {self._key})
                or (found in last and (yield from self._is_last(found)))
            ):
                value.close()
                raise _NoEnd
            give(self._scanner.skip())
        if not found:
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
