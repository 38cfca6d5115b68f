"""Calls in a model's own notation: Python's `[f(a=1), g()]`, and Gemma's `{city:<|"|>Paris<|"|>}`."""

from __future__ import annotations

import re

from bardo.tools.calls import OpenCall
from bardo.tools.literals import NOTATIONS, PYTHON, pass_literal
from bardo.tools.tape import Malformed, Reading, Tape

NAME = re.compile(r"[\w.\-]*")
KEY = re.compile(r"\w*")
NAME_LIMIT = 256


def read_python_calls(tape: Tape, call: OpenCall, stops: tuple[str, ...]) -> Reading[None]:
    """Read a list of calls with keyword arguments. Raises Malformed."""
    yield from tape.expect("[")
    yield from tape.blank()
    while not (yield from tape.choose(("]",))):
        yield from read_python_call(tape, call, stops)
        tape.mark()
        yield from tape.blank()
        if not (yield from tape.choose((",",))) and not (yield from tape.stands(("]",))):
            raise Malformed("the list of calls is broken")
        yield from tape.blank()
    if not call.count:
        raise Malformed("a list without calls")


def read_gemma_arguments(tape: Tape, call: OpenCall, stops: tuple[str, ...]) -> Reading[None]:
    """Announce the call and pass its arguments on as JSON. Raises Malformed."""
    yield from tape.blank()
    if (yield from tape.peek()) != "{":
        raise Malformed("arguments are missing")
    call.begin()
    try:
        yield from pass_literal(tape, call.arguments, NOTATIONS["gemma"])
    except Malformed:
        yield from tape.pass_until(stops, call.arguments)
        raise


def read_python_call(tape: Tape, call: OpenCall, stops: tuple[str, ...]) -> Reading[None]:
    """Read one call with keyword arguments. Raises Malformed."""
    call.name = yield from tape.word(NAME, limit=NAME_LIMIT)
    if not call.name or call.name[0].isdigit():
        raise Malformed("a tool's name is missing")
    yield from tape.expect("(")
    yield from tape.blank()
    try:
        while not (yield from tape.choose((")",))):
            yield from _keyword(tape, call)
    except Malformed:
        if call.begun:
            yield from tape.pass_until(stops, call.arguments)
        raise
    call.begin()
    call.close_parameters()
    call.end()


def _keyword(tape: Tape, call: OpenCall) -> Reading[None]:
    key = yield from tape.word(KEY, limit=NAME_LIMIT)
    yield from tape.blank()
    if not key or not (yield from tape.choose(("=",))):
        if call.begun:
            call.arguments(key)
        raise Malformed("an argument has no name")
    call.begin()
    call.key(key)
    yield from pass_literal(tape, call.arguments, PYTHON)
    yield from tape.blank()
    if not (yield from tape.choose((",",))) and not (yield from tape.stands((")",))):
        raise Malformed("arguments are broken")
    yield from tape.blank()
