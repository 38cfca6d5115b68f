"""Recorded replies with one thing wrong: each gives a Response or a BardoError, whole and streamed, and can be written for every client.

`BARDO_MUTATIONS` says how many are made of each dialect's recordings; the same number makes the same replies.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from typing import Any

import pytest

import bardo
from bardo.replies.reply_reader import row_reader
from bardo.streams.eventstream import EventStreamDecoder, encode_message
from bardo.values.errors import BardoError
from conformance.replies import ALL, CLIENTS, row_of, written_stream, written_whole
from dialects.test_wrong_types import paths, put
from recordings import Recording

COUNT = int(os.environ.get("BARDO_MUTATIONS", "250"))
WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    1e308,
    10**30,
    "",
    "x",
    "null",
    "\ud800",
    [],
    [None],
    [[]],
    [{}],
    {},
    {"a": 1},
)
PUT = (
    b'"',
    b"\\",
    b"}",
    b"[",
    b"null",
    b"\xff",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\0",
    b"\n\n",
    b"data: ",
    b"NaN",
    b"1e999",
    b"\r",
)
BY_DIALECT: dict[str, list[Recording]] = {}
for _one in ALL:
    if len(_one.body) <= 20_000:
        BY_DIALECT.setdefault(row_of(_one).dialect, []).append(_one)


def flipped(body: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(body))
    return body[:at] + bytes([dice.randrange(256)]) + body[at + 1 :]


def cut(body: bytes, dice: random.Random) -> bytes:
    return body[: dice.randrange(len(body))]


def dropped(body: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(body))
    return body[:at] + body[at + dice.randrange(1, 200) :]


def doubled(body: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(body))
    return body[: at + dice.randrange(1, 400)] + body[at:]


def inserted(body: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(body))
    return body[:at] + dice.choice(PUT) + body[at:]


BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (flipped, cut, dropped, doubled, inserted)


def retyped(data: bytes, dice: random.Random) -> bytes:
    """Put a value of another type at some place of a JSON text."""
    try:
        value = json.loads(data)
    except ValueError:
        return data
    at = dice.choice(list(paths(value)))
    return json.dumps(put(value, at, dice.choice(WRONG))).encode()


def with_wrong_type(recording: Recording, dice: random.Random) -> bytes:
    body = recording.body
    if recording.framing == "eventstream":
        frames = list(EventStreamDecoder().feed(body))
        place = dice.randrange(len(frames))
        data = retyped(frames[place].data or b"", dice)
        raw = frames[place].raw
        changed = encode_message(data, raw[12 : 12 + int.from_bytes(raw[4:8])])
        return b"".join(changed if at == place else frame.raw for at, frame in enumerate(frames))
    if recording.framing == "json":
        return retyped(body, dice)
    lines = body.split(b"\n")
    place = dice.choice([at for at, line in enumerate(lines) if b"{" in line] or [0])
    begin = max(lines[place].find(b"{"), 0)
    lines[place] = lines[place][:begin] + retyped(lines[place][begin:], dice)
    return b"\n".join(lines)


def mutated(recording: Recording, dice: random.Random) -> bytes:
    if not recording.body or dice.random() < 0.5:
        return with_wrong_type(recording, dice)
    body = recording.body
    for _ in range(dice.choice((1, 1, 2, 4))):
        body = dice.choice(BYTES)(body, dice) if body else body
    return body


def check(recording: Recording, body: bytes, *, streamed: bool, step: int) -> None:
    row = row_of(recording)
    reader = row_reader(row, streamed=streamed)
    pieces = [body[at : at + step] for at in range(0, len(body), step)]
    events = [event for piece in pieces for event in reader.feed(piece)] + reader.finish()
    reply = reader.fold.response()
    assert bardo.decode(body, row.id, streamed=streamed).text is not None
    assert reply.error is None or isinstance(reply.error, BardoError)
    for client in CLIENTS:
        written_stream(events, client).decode()
        if reply.error is None:
            json.loads(written_whole(reply, client))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted(BY_DIALECT))
def test_a_mutated_reply_is_a_reply_or_an_error(name: str) -> None:
    for number in range(COUNT):
        dice = random.Random(f"{name} {number}")
        recording = dice.choice(BY_DIALECT[name])
        body = mutated(recording, dice)
        streamed = (recording.framing != "json") is (dice.random() < 0.9)
        try:
            check(recording, body, streamed=streamed, step=dice.choice((10**6, 1000, 7)))
        except Exception as mistake:
            raise AssertionError(f"mutation {number} of {name}: {recording.file}") from mistake
