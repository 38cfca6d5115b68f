"""Read one call by the shape its format gives it."""

from __future__ import annotations

import re

from bardo.tools.arguments import read_arguments
from bardo.tools.calls import OpenCall
from bardo.tools.formats import ToolCallFormat
from bardo.tools.json_calls import read_json_calls
from bardo.tools.notations import read_gemma_arguments, read_python_call, read_python_calls
from bardo.tools.parameters import ParameterReader
from bardo.tools.shapes import Shape, Step, shapes_of
from bardo.tools.tape import Malformed, Reading, Tape

NAME = re.compile(r"[\w.:/\-]*")
NAME_LIMIT = 256
_INDEX = re.compile(r":\d+$")
_BRACKETS = {"json": ("{", "["), "python": ("[",)}
_REPEATS = ("call",)


class CallGrammar:
    """Reads calls of one format from one tape."""

    def __init__(self, tape: Tape, call: OpenCall, row: ToolCallFormat, *, hold: int) -> None:
        self._tape = tape
        self._call = call
        self._name_is_key = row.name_is_key
        self._shapes = shapes_of(row)
        self._before = 0
        self._parameters = ParameterReader(tape, call, self._shapes, trims=row.trims_newlines, hold=hold)

    def fitting(self, *, again: bool = False) -> Reading[Shape | None]:
        """Return the shape that can begin here. After a call, a bare name is not taken for `again` one."""
        for shape in self._shapes.calls:
            first = shape[0]
            words = (first.text,) if first.kind == "literal" else _BRACKETS.get(first.kind, ())
            if (yield from self._tape.stands(words)):
                return shape
        named = (shape for shape in self._shapes.calls if shape[0].kind not in ("literal", *_BRACKETS))
        return next((shape for shape in named if not again or shape[0].kind in _REPEATS), None)

    def read(self, shape: Shape) -> Reading[None]:
        """Read a call. Raises Malformed; whether it had begun by then, the call itself says."""
        self._call.reset()
        self._before = self._call.count
        yield from self._walk(shape)

    def _walk(self, shape: Shape) -> Reading[None]:
        for step in shape:
            if step.kind == "literal":
                yield from self._literal(step)
            elif step.kind == "optional":
                yield from self._tape.blank()
                if (yield from self._tape.stands((step.group[0].text,))):
                    yield from self._walk(step.group)
            else:
                yield from self._hole(step)

    def _literal(self, step: Step) -> Reading[None]:
        yield from self._tape.blank()
        if (yield from self._tape.choose((step.text,))) or (
            self._call.count > self._before and (yield from self._over())
        ):
            return
        raise Malformed(f"{step.text!r} is missing")

    def _over(self) -> Reading[bool]:
        """Whether a call that was told of is over without all of its closing parts: servers cut the last ones off."""
        return not (yield from self._tape.peek()) or bool((yield from self._tape.stands(self._shapes.borders)))

    def _hole(self, step: Step) -> Reading[None]:
        tape, call = self._tape, self._call
        stops = (*step.until, *self._shapes.borders)
        match step.kind:
            case "arguments":
                yield from read_arguments(tape, call, stops)
            case "parameters":
                yield from self._parameters.read(step)
            case "json":
                yield from read_json_calls(tape, call, stops, name_is_key=self._name_is_key)
            case "python":
                yield from read_python_calls(tape, call, stops)
            case "call":
                yield from read_python_call(tape, call, stops)
            case "gemma":
                yield from read_gemma_arguments(tape, call, stops)
            case _:
                yield from tape.blank()
                self._told(step.kind, (yield from tape.word(NAME, limit=NAME_LIMIT)))

    def _told(self, kind: str, word: str) -> None:
        call = self._call
        if kind == "id":
            call.id = word
        elif kind == "identifier":
            call.id, call.name = word, _INDEX.sub("", word).removeprefix("functions.")
        elif kind == "recipient":
            call.name = word.removeprefix("functions.")
        elif kind == "name":
            call.name = word
