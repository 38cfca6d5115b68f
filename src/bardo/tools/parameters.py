"""Calls written as a name and parameters, one by one: `<parameter=city>Paris</parameter>`."""

from __future__ import annotations

import re
from collections.abc import Callable

from bardo.tools.calls import OpenCall
from bardo.tools.declared import TEXT, as_json
from bardo.tools.json_calls import read_arguments
from bardo.tools.jsontext import CUT_OFF, escape
from bardo.tools.scanner import Give, Malformed, Reading, Scanner
from bardo.tools.shapes import Shape, Shapes, ShapeStep

KEY = re.compile(r"[^\"'<>\r\n{}|]*")
WORD = re.compile(r"[\w.\-]*")
KEY_LIMIT = 256


class ParameterReader:
    """Reads the parameters of calls in one format. A value longer than `hold` that would need conversion stays text."""

    def __init__(self, scanner: Scanner, call: OpenCall, shapes: Shapes, *, trims: bool, hold: int) -> None:
        self._scanner = scanner
        self._call = call
        self._shapes = shapes
        self._trims = trims
        self._hold = hold
        self._key = ""
        self._types = TEXT

    def read(self, step: ShapeStep) -> Reading[None]:
        """Read parameters until something else stands here. Raises Malformed."""
        stops = (*step.until, *self._shapes.borders)
        firsts = self._shapes.parameter_firsts
        yield from self._scanner.blank()
        if (yield from self._scanner.peek()) == "{":
            yield from read_arguments(self._scanner, self._call, stops)
            return
        if not self._call.begun and not (yield from self._scanner.stands((*firsts, *stops))):
            raise Malformed("neither parameters nor an end stand where they should")
        self._call.begin()
        while (yield from self._next(firsts, stops)):
            yield from self._one()
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

    def _one(self) -> Reading[None]:
        first = yield from self._scanner.stands(self._shapes.parameter_firsts)
        shape = next(shape for shape in self._shapes.parameters if shape[0].text == first)
        self._key, self._types = "", frozenset[str]()
        self._scanner.mark()
        try:
            yield from self._walk(shape)
        except Malformed:
            if header := self._scanner.release():
                self._call.note("a parameter is broken", header)
            raise

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
            self._key = (yield from self._scanner.word(KEY, limit=KEY_LIMIT)).strip()
        elif step.kind == "value":
            yield from self._value(step.until)
        else:
            word = yield from self._scanner.word(WORD, limit=KEY_LIMIT)
            if step.kind == "type":
                self._types = frozenset({word.lower()})
            elif word.lower() != "true":
                self._types = frozenset({"object", "array", "number", "integer", "boolean", "null"})

    def _value(self, closers: tuple[str, ...]) -> Reading[None]:
        call = self._call
        self._scanner.release()
        types = self._types or call.declared.types(call.name, self._key)
        call.key(self._key)
        value = _Value(call, types, self._hold)
        sink = _Trimmed(value.give) if self._trims else None
        if sink:
            yield from self._scanner.choose(("\r\n", "\n"))
        found = yield from self._scanner.pass_until(closers, sink.give if sink else value.give)
        if not found:
            if sink:
                sink.release()
            value.cut_off()
            raise Malformed(CUT_OFF)
        value.close()


class _Value:
    """One parameter's value on its way to JSON. Text goes on at once; what must be converted is held."""

    def __init__(self, call: OpenCall, types: frozenset[str], hold: int) -> None:
        self._call = call
        self._types = types
        self._hold = hold
        self._held: list[str] = []
        self._size = 0
        self._text = False
        if types <= TEXT:
            self._go_on_as_text()

    def give(self, text: str) -> None:
        if self._text:
            self._call.arguments(escape(text))
            return
        self._held.append(text)
        self._size += len(text)
        if self._size > self._hold:
            self._call.note("a value is too long to be read by its type, and stays text")
            self._go_on_as_text()

    def close(self) -> None:
        if self._text:
            self._call.arguments('"')
            return
        text = "".join(self._held)
        converted = as_json(text, self._types)
        if converted is None:
            self._call.note("a value is not of its declared type, and stays text", text)
        self._call.arguments(f'"{escape(text)}"' if converted is None else converted)

    def cut_off(self) -> None:
        """The reply ended inside: nothing is closed, so that nobody takes the value for whole."""
        self._call.arguments("".join(self._held))

    def _go_on_as_text(self) -> None:
        self._text = True
        self._call.arguments('"' + escape("".join(self._held)))
        self._held = []


class _Trimmed:
    """Passes text on but for a line break at its very end."""

    def __init__(self, give: Give) -> None:
        self._give: Callable[[str], None] = give
        self._held = ""

    def give(self, text: str) -> None:
        text = self._held + text
        kept = text[:-1] if text.endswith(("\n", "\r")) else text
        kept = kept[:-1] if text.endswith("\r\n") else kept
        self._held = text[len(kept) :]
        if kept:
            self._give(kept)

    def release(self) -> None:
        """Give the line break back after all."""
        if self._held:
            self._give(self._held)
