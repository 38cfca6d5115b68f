"""Calls written as JSON: `{"name": …, "arguments": {…}}`, alone or in a list, with the keys in any order."""

from __future__ import annotations

import json

from bardo.tools.arguments import read_arguments
from bardo.tools.calls import OpenCall
from bardo.tools.jsontext import read_string, read_value
from bardo.tools.tape import Malformed, Reading, Tape

NAME_KEYS = frozenset({"name", "tool_name", "tool"})
ARGUMENT_KEYS = frozenset({"arguments", "parameters", "args"})
ID_KEYS = frozenset({"id", "tool_call_id", "call_id"})
WRAPPER_KEYS = frozenset({"function"})
DULL_KEYS = frozenset({"type"})


def read_json_calls(tape: Tape, call: OpenCall, stops: tuple[str, ...], *, name_is_key: bool) -> Reading[None]:
    """Read one call, or a list of them. Raises Malformed."""
    yield from tape.blank()
    if (yield from tape.peek()) != "[":
        yield from _JsonCall(tape, call, stops, name_is_key=name_is_key).read()
        return
    tape.skip()
    yield from tape.blank()
    while not (yield from tape.choose(("]",))):
        yield from _JsonCall(tape, call, stops, name_is_key=name_is_key).read()
        # From here on, what turns out to be no call is given back.
        tape.mark()
        yield from tape.blank()
        if not (yield from tape.choose((",",))) and not (yield from tape.stands(("]",))):
            raise Malformed("the list of calls is broken")
        yield from tape.blank()
    if not call.count:
        raise Malformed("a list without calls")


class _JsonCall:
    """One object. A `function` key whose value is an object is read as if its members stood here."""

    def __init__(self, tape: Tape, call: OpenCall, stops: tuple[str, ...], *, name_is_key: bool) -> None:
        self._tape = tape
        self._call = call
        self._stops = stops
        self._name_is_key = name_is_key
        self._early: str | None = None
        self._depth = 0
        self._ignored: list[str] = []

    def read(self) -> Reading[None]:
        """Read to the end of the object, and tell of the call."""
        yield from self._tape.expect("{")
        try:
            yield from self._members()
        except Malformed:
            if self._call.begun and (rest := self._tape.release()):
                self._call.note("the end of the call is broken", rest)
            raise
        self._conclude()

    def _members(self) -> Reading[None]:
        self._depth = 1
        while self._depth:
            yield from self._tape.blank()
            if (yield from self._tape.choose(("}",))):
                self._depth -= 1
            elif not (yield from self._tape.choose((",",))):
                yield from self._member()

    def _member(self) -> Reading[None]:
        key = yield from read_string(self._tape)
        yield from self._tape.expect(":")
        yield from self._tape.blank()
        call, fresh = self._call, not self._call.begun
        opens = (yield from self._tape.peek()) == "{"
        if self._name_is_key and fresh and opens:
            call.name = key
            yield from self._arguments()
        elif key in WRAPPER_KEYS and opens and fresh and self._depth == 1:
            self._tape.skip()
            self._depth = 2
        elif key in NAME_KEYS and fresh and not call.name:
            yield from self._name()
        elif key in ARGUMENT_KEYS and fresh and self._early is None:
            yield from self._arguments()
        elif key in ID_KEYS and fresh:
            call.id = _plain((yield from read_value(self._tape)))
        else:
            yield from self._other(key)

    def _name(self) -> Reading[None]:
        self._call.name = yield from read_string(self._tape)
        self._call.check_name()
        if self._early is not None:
            self._call.begin()
            self._call.arguments(self._early)
            self._tape.mark()

    def _arguments(self) -> Reading[None]:
        if self._call.name:
            yield from read_arguments(self._tape, self._call, self._stops)
            # What follows the arguments is remembered, so that none of it is lost where it is wrong.
            self._tape.mark()
        else:
            self._early = _object((yield from read_value(self._tape)))

    def _other(self, key: str) -> Reading[None]:
        if self._call.strict and not self._call.begun and key not in DULL_KEYS:
            # JSON that nothing announced is an answer as soon as it is not like a call.
            raise Malformed("JSON that is no call")
        value = yield from read_value(self._tape)
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
        self._tape.release()
        call.end()


def _plain(value: str) -> str:
    """Return an id, which may be a number."""
    try:
        decoded = json.loads(value)
    except ValueError:
        return ""
    return str(decoded) if isinstance(decoded, str | int) else ""


def _object(value: str) -> str:
    """Return arguments that may be JSON inside a JSON string."""
    if value.startswith('"'):
        return str(json.loads(value, strict=False))
    return "{}" if value == "null" else value
