"""Break an input: bytes, JSON values, words of the target's vocabulary, pieces of other inputs. The same dice give the same input."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fuzzing.inputs import MOST_BYTES

Mutator = Callable[[bytes, random.Random, Sequence[bytes]], bytes]

WRONG_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 1e308, 10**30, 2**63, -(2**63), "", "x", "null", "\ud800", "\0", "é🧠\u2028"),
    *([], [None], [[]], [{}], {}, {"a": 1}, {"": None}, [1, "a", {"type": "text"}], {"type": []}, {"type": "text"}),
)
BYTES = (
    *(b'"', b"\\", b"}", b"{", b"[", b"]", b",", b":", b"null", b"true", b"0", b"-", b"1e999", b"NaN", b"\\u0000"),
    *(
        b"\xff",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"\xf0\x9f",
        b"\0",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b" ",
        b"\t",
    ),
    *(b"\\ud800", b"\\n", b"data: ", b"event: ", b":", b"[DONE]", b"\xe2\x80\xa8", b"```", b"<", b">", b"</"),
)


def mutated(body: bytes, dice: random.Random, *, words: Sequence[bytes], others: Sequence[bytes]) -> bytes:
    """Return an input with one to six things wrong, at most MOST_BYTES long."""
    for _ in range(dice.choice((1, 1, 1, 2, 3, 6))):
        change = dice.choice(_CHANGES)
        body = change(body, dice, words or BYTES) if change is not _spliced else _spliced(body, dice, others)
    return body[:MOST_BYTES]


def _place(body: bytes, dice: random.Random) -> int:
    return dice.randrange(len(body) + 1)


def _flipped(body: bytes, dice: random.Random, _: Sequence[bytes]) -> bytes:
    at = _place(body, dice)
    return body[:at] + bytes([dice.randrange(256)]) + body[at + 1 :]


def _cut(body: bytes, dice: random.Random, _: Sequence[bytes]) -> bytes:
    return body[: _place(body, dice)]


def _dropped(body: bytes, dice: random.Random, _: Sequence[bytes]) -> bytes:
    at = _place(body, dice)
    return body[:at] + body[at + dice.choice((1, 2, 8, 60, 400)) :]


def _doubled(body: bytes, dice: random.Random, _: Sequence[bytes]) -> bytes:
    at = _place(body, dice)
    end = at + dice.choice((1, 4, 30, 200, 2000))
    return body[:end] + body[at:]


def _inflated(body: bytes, dice: random.Random, _: Sequence[bytes]) -> bytes:
    """Repeat a short piece many times: what is quadratic shows in the work that it takes."""
    at = _place(body, dice)
    end = at + dice.choice((1, 2, 5, 20, 100))
    return body[:at] + body[at:end] * dice.choice((10, 100, 1000, 3000)) + body[end:]


def _inserted(body: bytes, dice: random.Random, words: Sequence[bytes]) -> bytes:
    at = _place(body, dice)
    return body[:at] + dice.choice(words if dice.random() < 0.7 else BYTES) + body[at:]


def _replaced(body: bytes, dice: random.Random, words: Sequence[bytes]) -> bytes:
    """Put one word of the vocabulary where another one stands."""
    old = dice.choice(words)
    places = _places(body, old)
    if not places:
        return _inserted(body, dice, words)
    at = dice.choice(places)
    return body[:at] + dice.choice(words) + body[at + len(old) :]


def _places(body: bytes, word: bytes) -> list[int]:
    found: list[int] = []
    at = body.find(word)
    while at >= 0 and len(found) < 100:
        found.append(at)
        at = body.find(word, at + 1)
    return found


def _nested(body: bytes, dice: random.Random, _: Sequence[bytes]) -> bytes:
    at = _place(body, dice)
    return (
        body[:at]
        + dice.choice((b"[", b'{"a":', b"<think>", b"(", b"> ", b"*")) * dice.choice((3, 50, 1500))
        + body[at:]
    )


def _spliced(body: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    other = dice.choice(others) if others else body
    return body[: _place(body, dice)] + other[_place(other, dice) :]


def _swapped_lines(body: bytes, dice: random.Random, _: Sequence[bytes]) -> bytes:
    lines = body.split(b"\n")
    one, two = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]
    return b"\n".join(lines)


def _retyped(body: bytes, dice: random.Random, words: Sequence[bytes]) -> bytes:
    """Put a value of another type, another name or another value of the same text somewhere into one of its JSON texts."""
    lines = body.split(b"\n")
    at = dice.choice([place for place, line in enumerate(lines) if b"{" in line] or [0])
    begin = max(lines[at].find(b"{"), 0)
    try:
        value = json.loads(lines[at][begin:])
    except (ValueError, RecursionError):
        return _inserted(body, dice, words)
    lines[at] = lines[at][:begin] + json.dumps(_with_change(value, dice)).encode()
    return b"\n".join(lines)


def _with_change(value: Any, dice: random.Random) -> Any:
    places = list(_paths(value))
    where = dice.choice(places)
    kind = dice.random()
    if kind < 0.6:
        return _put(value, where, dice.choice(WRONG_VALUES))
    if kind < 0.85:
        return _put(value, where, _get(value, dice.choice(places)))
    return _without(value, where)


def _paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield from _paths(inner, (*at, name))


def _get(value: Any, at: tuple[Any, ...]) -> Any:
    for name in at:
        value = value[name]
    return value


def _put(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    if not at:
        return new
    copy = value.copy()
    copy[at[0]] = _put(copy[at[0]], at[1:], new)
    return copy


def _without(value: Any, at: tuple[Any, ...]) -> Any:
    if not at:
        return {}
    copy = value.copy()
    if len(at) == 1:
        del copy[at[0]]
    else:
        copy[at[0]] = _without(copy[at[0]], at[1:])
    return copy


_CHANGES: tuple[Mutator, ...] = (
    _flipped,
    _cut,
    _dropped,
    _doubled,
    _inflated,
    _inserted,
    _inserted,
    _replaced,
    _replaced,
    _nested,
    _spliced,
    _swapped_lines,
    _retyped,
    _retyped,
    _retyped,
)
