"""Read one call by the shape that its format gives it, also in a model's own notation: Python's `[f(a=1), g()]`, and Gemma's objects."""

from __future__ import annotations

import re
from xml.sax.saxutils import unescape

from bardo.tools.calls import OpenCall
from bardo.tools.elements import ElementReader
from bardo.tools.formats import ToolCallFormat
from bardo.tools.json_calls import read_arguments, read_json_calls
from bardo.tools.literals import ARGUMENT, LISTED_ARGUMENT, NOTATIONS, PYTHON, Following, pass_literal
from bardo.tools.parameters import ENTITIES, QUOTED_NAME, ParameterReader
from bardo.tools.scanner import Malformed, Reading, Scanner
from bardo.tools.shapes import Shape, ShapeStep, shapes_of

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


def _beginnings(shape: Shape) -> tuple[str, ...]:
    """Return the texts with which a call of this shape begins; none where it begins with a bare name."""
    first, follows = shape[0], shape[1] if len(shape) > 1 else None
    if first.kind != "literal":
        return _BRACKETS.get(first.kind, ())
    brackets = _BRACKETS.get(follows.kind, ()) if follows else ()
    return tuple(f"{first.text}{blank}{bracket}" for bracket in brackets for blank in _BLANKS) or (first.text,)


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
            if (yield from self._scanner.stands(_beginnings(shape))):
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
                self._emit(step.kind, unescape(word, ENTITIES) if quoted else word)

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
