"""Arguments that are JSON already: passed on as they arrive, verbatim."""

from __future__ import annotations

import json

from bardo.tools.calls import OpenCall
from bardo.tools.jsontext import NOT_JSON, pass_value, read_string
from bardo.tools.tape import Malformed, Reading, Tape


def read_arguments(tape: Tape, call: OpenCall, stops: tuple[str, ...]) -> Reading[None]:
    """Announce the call and pass its arguments on; where they are broken, all up to one of `stops` is passed on as it is.

    A JSON string that holds the JSON is unpacked; no arguments at all are an empty object. Raises Malformed where nothing like
    arguments stands here, and, after the announcement, where they are broken.
    """
    call.check_name()
    yield from tape.blank()
    character = yield from tape.peek()
    if character == "{":
        call.begin()
        yield from _object(tape, call, stops)
    elif character == '"':
        text = yield from read_string(tape)
        call.begin()
        call.arguments(text or "{}")
        if text and not _is_object(text):
            call.note(NOT_JSON)
    elif (yield from tape.choose(("null",))) or (yield from _nothing(tape, stops)):
        call.begin()
        call.arguments("{}")
    else:
        raise Malformed("arguments are missing")


def _object(tape: Tape, call: OpenCall, stops: tuple[str, ...]) -> Reading[None]:
    ended = yield from pass_value(tape, call.arguments, stops)
    if not ended.complete:
        yield from tape.pass_until(stops, call.arguments)
        raise Malformed(ended.why)
    if ended.why:
        call.note(NOT_JSON)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _nothing(tape: Tape, stops: tuple[str, ...]) -> Reading[bool]:
    return bool((yield from tape.stands((*stops, ",", "}"))))
