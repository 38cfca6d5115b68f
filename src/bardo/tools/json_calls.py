"""Calls written as JSON: `{"name": …, "arguments": {…}}`, alone or in a list, with the keys in any order."""

from __future__ import annotations

import json

from bardo.tools.calls import OpenCall
from bardo.tools.jsontext import NOT_JSON, pass_value, read_string, read_value
from bardo.tools.scanner import Malformed, Reading, Scanner


def read_arguments(scanner: Scanner, call: OpenCall, stops: tuple[str, ...], *, raw: bool = False) -> Reading[None]:
    """Announce the call and pass its arguments on; where they are broken, all up to one of `stops` is passed on as it is.

    A JSON string that holds the JSON is unpacked; no arguments at all are an empty object. Raises Malformed where nothing like
    arguments stands here, and, after the announcement, where they are broken. `raw`: whatever stands here is the arguments.
    """
    call.check_name()
    yield from scanner.blank()
    character = yield from scanner.peek()
    if character == "{":
        call.begin()
        ended = yield from pass_value(scanner, call.arguments, stops)
        if not ended.complete:
            yield from scanner.pass_until(stops, call.arguments)
            raise Malformed(ended.why)
        if ended.why:
            call.note(NOT_JSON)
    elif character == '"':
        text = yield from read_string(scanner)
        call.begin()
        call.arguments(text or "{}")
        if text and not _is_object(text):
            call.note(NOT_JSON)
    elif (yield from scanner.choose(("null",))) or (yield from _nothing(scanner, stops)):
        call.begin()
        call.arguments("{}")
    elif raw:
        call.begin()
        yield from scanner.pass_until(stops, call.arguments)
        call.note(NOT_JSON)
    else:
        raise Malformed("arguments are missing")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _nothing(scanner: Scanner, stops: tuple[str, ...]) -> Reading[bool]:
    return bool((yield from scanner.stands((*stops, ",", "}"))))


NAME_KEYS = frozenset({"name", "tool_name", "tool"})
ARGUMENT_KEYS = frozenset({"arguments", "parameters", "args"})
ID_KEYS = frozenset({"id", "tool_call_id", "call_id"})
WRAPPER_KEYS = frozenset({"function"})
DULL_KEYS = frozenset({"type"})


def read_json_calls(scanner: Scanner, call: OpenCall, stops: tuple[str, ...], *, name_is_key: bool) -> Reading[None]:
    """Read one call, or a list of them. Raises Malformed."""
    yield from scanner.blank()
    if (yield from scanner.peek()) != "[":
        yield from _JsonCall(scanner, call, stops, name_is_key=name_is_key).read()
        return
    scanner.skip()
    yield from scanner.blank()
    while not (yield from scanner.choose(("]",))):
        yield from _JsonCall(scanner, call, stops, name_is_key=name_is_key).read()
        # From here on, what turns out to be no call is given back.
        scanner.mark()
        yield from scanner.blank()
        if not (yield from scanner.choose((",",))) and not (yield from scanner.stands(("]",))):
            raise Malformed("the list of calls is broken")
        yield from scanner.blank()
    if not call.count:
        raise Malformed("a list without calls")


class _JsonCall:
    """One object. A `function` key whose value is an object is read as if its members stood here."""

    def __init__(self, scanner: Scanner, call: OpenCall, stops: tuple[str, ...], *, name_is_key: bool) -> None:
        self._scanner = scanner
        self._call = call
        self._stops = stops
        self._name_is_key = name_is_key
        self._early: str | None = None
        self._depth = 0
        self._ignored: list[str] = []

    def read(self) -> Reading[None]:
        """Read to the end of the object, and tell of the call."""
        yield from self._scanner.expect("{")
        try:
            yield from self._members()
        except Malformed:
            if self._call.begun and (rest := self._scanner.release()):
                self._call.note("the end of the call is broken", rest)
            raise
        self._conclude()

    def _members(self) -> Reading[None]:
        self._depth = 1
        while self._depth:
            yield from self._scanner.blank()
            if (yield from self._scanner.choose(("}",))):
                self._depth -= 1
            elif not (yield from self._scanner.choose((",",))):
                yield from self._member()

    def _member(self) -> Reading[None]:
        key = yield from read_string(self._scanner)
        yield from self._scanner.expect(":")
        yield from self._scanner.blank()
        call, fresh = self._call, not self._call.begun
        opens = (yield from self._scanner.peek()) == "{"
        if self._name_is_key and fresh and opens:
            call.name = key
            yield from self._arguments()
        elif key in WRAPPER_KEYS and opens and fresh and self._depth == 1:
            self._scanner.skip()
            self._depth = 2
        elif key in NAME_KEYS and fresh and not call.name:
            yield from self._name()
        elif key in ARGUMENT_KEYS and fresh and self._early is None:
            yield from self._arguments()
        elif key in ID_KEYS and fresh:
            call.id = _plain((yield from read_value(self._scanner)))
        else:
            yield from self._skip_member(key)

    def _name(self) -> Reading[None]:
        self._call.name = yield from read_string(self._scanner)
        self._call.check_name()
        if self._early is not None:
            self._call.begin()
            self._call.arguments(self._early)
            self._scanner.mark()

    def _arguments(self) -> Reading[None]:
        if self._call.name:
            yield from read_arguments(self._scanner, self._call, self._stops)
            # What follows the arguments is remembered, so that none of it is lost where it is wrong.
            self._scanner.mark()
        else:
            self._early = _object((yield from read_value(self._scanner)))

    def _skip_member(self, key: str) -> Reading[None]:
        if self._call.strict and not self._call.begun and key not in DULL_KEYS:
            # JSON that nothing announced is an answer as soon as it is not like a call.
            raise Malformed("JSON that is no call")
        value = yield from read_value(self._scanner)
        if key not in DULL_KEYS | ID_KEYS:
            self._ignored.append(f"{json.dumps(key, ensure_ascii=False)}: {value}")

    def _conclude(self) -> None:
        call = self._call
        if not call.begun:
            if call.strict:
                raise Malformed("a call without arguments")
            call.begin()
            call.arguments("{}")
        if self._ignored:
            call.note("the call has members that mean nothing here", ", ".join(self._ignored))
        self._scanner.release()
        call.end()


def _plain(value: str) -> str:
    """Return an id, which may be a number."""
    try:
        decoded = json.loads(value)
    except ValueError:
        return ""
    return str(decoded) if isinstance(decoded, str | int) else ""


def _object(value: str) -> str:
    """Return arguments that may be JSON inside a JSON string. Raises Malformed for a string that is none."""
    if value.startswith('"'):
        try:
            return str(json.loads(value, strict=False))
        except ValueError as problem:
            raise Malformed("arguments are no JSON string") from problem
    return "{}" if value == "null" else value
