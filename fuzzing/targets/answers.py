"""Targets `repair` and `partial`: JSON in the text of models, whole and while it arrives."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Literal

from bardo.structured import PartialJson, checker, extract
from bardo.structured.validation import Checker
from fuzzing.inputs import Input
from fuzzing.laws import Laws, hold, same
from fuzzing.target import Target

_SCHEMAS: dict[str, Any] = {
    "any": True,
    "person": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer"},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
            "pay": {"type": ["number", "null"]},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    "tree": {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}, "v": {}},
            }
        },
    },
    "either": {
        "anyOf": [
            {"type": "object", "properties": {"kind": {"const": "x"}, "n": {"type": "number"}}},
            {"type": "array"},
            {"type": "string"},
        ]
    },
}
_TEXTS = (
    b'{"name": "Ada", "age": 36, "tags": ["a", "b"], "pay": 1.5e3}',
    b'Sure:\n```json\n{"name": "A\\u00e9", "age": "36", tags: [\'a\', ], // note\n "pay": null}\n```\nDone.',
    b'<think>{"age": 1}</think>{"kids": [{"kids": [], "v": {"a": [1, true, null]}}], "v": "x\\"y"}',
    b'{"kind": "x", "n": NaN} or [1, 2, {"a": "b"}]',
    b'"{\\"name\\": \\"Ada\\", \\"age\\": 3}"',
    b"name: Ada\nage: 36\n- a\n- b\n",
    b"<answer><name>Ada</name><age>36</age></answer>",
    b'{"name": "Ada", "age": 36, "tags": ["a"',
)
_WORDS = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b'"',
        b"'",
        b"\\",
        b'\\"',
        b"\\u00",
        b"\n",
        b"```json\n",
        b"```",
        b"null",
        b"None",
        b"True",
        b"true",
    ),
    *(
        b"NaN",
        b"-",
        b"1e5",
        b".5",
        b'"name"',
        b'"age"',
        b"//",
        b"/*",
        b"*/",
        b"#",
        b"...",
        b"<think>",
        b"</think>",
        b"\xe2\x80\x9c",
        b"<|im_end|>",
    ),
)


_FINISHES: tuple[Literal["stop", "length"], ...] = ("stop", "length")


@cache
def _schema(name: str) -> Checker:
    return checker(_SCHEMAS[name])


def _seeds() -> Sequence[Input]:
    return [Input(name, text) for name in _SCHEMAS for text in _TEXTS]


def _text(one: Input) -> str:
    return one.body.decode("utf-8", "replace")


def _check_repair(one: Input, laws: Laws) -> None:
    text = _text(one)
    for finish in laws.some(_FINISHES):
        found = extract(text, _schema(one.variant), finish=finish)
        hold((found.error is None) == found.ok, "an answer is sound, or says what is wrong")
        if found.ok:
            json.dumps(found.value, allow_nan=False)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    if one.variant == "any" and isinstance(value, dict) and "<" not in text and _is_plain(text, value):
        same(extract(text, True).value, value, "sound JSON is unharmed")


def _is_plain(text: str, value: Any) -> bool:
    """Whether a JSON text says nothing twice and holds no number that JSON has not."""
    try:
        again = json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return (
        len(text) < 5_000
        and text.count(":") == again.count(":")
        and not any(word in text for word in ("e", "E", ".", "```"))
        and _depth(value) < 50
    )


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)


REPAIR = Target(
    name="repair",
    says="JSON found in, and repaired from, the text of models",
    seeds=_seeds,
    check=_check_repair,
    work=lambda one: extract(_text(one), _schema(one.variant)),
    words=lambda variant: _WORDS,
    per_byte=1500,
    beside=1_500_000,
)


def _fed(one: Input, pieces: Iterable[str], *, grow: bool) -> tuple[list[Any], bool, bool]:
    partial = PartialJson(_SCHEMAS[one.variant], strings_grow=grow)
    values = [value for piece in pieces for value in partial.feed(piece)] + partial.finish()
    return values, partial.done, partial.broken


def _grown(before: Any, after: Any) -> bool:
    if isinstance(before, dict):
        return isinstance(after, dict) and all(
            key in after and _grown(inner, after[key]) for key, inner in before.items()
        )
    if isinstance(before, list):
        return isinstance(after, list) and len(before) <= len(after) and all(map(_grown, before, after))
    if isinstance(before, str):
        return isinstance(after, str) and after.startswith(before)
    return type(before) is type(after) and (before == after or (isinstance(before, float) and math.isnan(before)))


def _check_partial(one: Input, laws: Laws) -> None:
    text = _text(one)
    for grow in laws.some((False, True)):
        values, done, broken = _fed(one, [text], grow=grow)
        for pieces in laws.cuts_of(text):
            other = _fed(one, pieces, grow=grow)
            same((other[0][-1:], other[1:]), (values[-1:], (done, broken)), "any cut ends in the same value")
            hold(all(map(_grown, other[0], other[0][1:])), "what was given only grows")


PARTIAL = Target(
    name="partial",
    says="JSON while it arrives",
    seeds=_seeds,
    check=_check_partial,
    work=lambda one: _grow(one),
    words=lambda variant: _WORDS,
    per_byte=100,
)


def _grow(one: Input) -> None:
    partial, text = PartialJson(_SCHEMAS[one.variant], strings_grow=True), _text(one)
    for at in range(0, len(text), 20):
        partial.grow(text[at : at + 20])
