"""AWS's binary messages: any cut says the same, every byte is kept, and what is corrupt is refused."""

from __future__ import annotations

import struct
from itertools import pairwise
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.streams.eventstream import (
    CorruptFrame,
    EventStreamDecoder,
    encode_event,
    encode_headers,
    encode_message,
    message_headers,
)
from bardo.streams.frames import Frame, OversizedFrame

pytestmark = pytest.mark.each_python

HEADERS = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
TWO = encode_event(b'{"a":1}', HEADERS) + encode_event(b"", {":event-type": "last", ":message-type": "event"})


def read(body: bytes, cuts: list[int] | None = None, limit: int = 1 << 20) -> list[Frame]:
    decoder = EventStreamDecoder(limit)
    places = [0, *sorted(place % (len(body) + 1) for place in cuts or []), len(body)]
    pieces = [body[begin:end] for begin, end in pairwise(places)]
    return [frame for piece in pieces for frame in decoder.feed(piece)] + list(decoder.finish())


def message(payload: bytes, headers: bytes) -> bytes:
    """Write a message with raw header bytes, by the format's page and not by our encoder."""
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    body = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return body + struct.pack(">I", crc32(body))


def header(name: str, kind: int, value: bytes) -> bytes:
    return bytes([len(name)]) + name.encode() + bytes([kind]) + value


def test_a_message_is_its_payload_and_its_event() -> None:
    assert read(TWO) == [
        Frame(b'{"a":1}', "chunk", encode_event(b'{"a":1}', HEADERS)),
        Frame(b"", "last", encode_event(b"", {":event-type": "last", ":message-type": "event"})),
    ]


def test_our_messages_are_those_of_the_format() -> None:
    text = header(":event-type", 7, struct.pack(">H", 5) + b"chunk")
    assert encode_event(b"{}", {":event-type": "chunk"}) == message(b"{}", text)
    assert encode_message(b"{}", encode_headers({":event-type": "chunk"})) == message(b"{}", text)


def test_the_smallest_message_is_sixteen_known_bytes() -> None:
    # The empty message of the format's own test data.
    assert encode_event(b"", {}) == bytes.fromhex("000000100000000005c248eb7d98c8ff")


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(0, 1000), max_size=20))
def test_any_cut_says_the_same_and_keeps_every_byte(payloads: list[bytes], cuts: list[int]) -> None:
    body = b"".join(encode_event(payload, HEADERS) for payload in payloads)
    frames = read(body, cuts)
    assert frames == read(body)
    assert [frame.data for frame in frames] == payloads
    assert b"".join(frame.raw for frame in frames) == body


@pytest.mark.parametrize("cut", range(1, len(TWO)))
def test_a_cut_stream_ends_with_an_incomplete_frame(cut: int) -> None:
    frames = read(TWO[:cut])
    assert b"".join(frame.raw for frame in frames) == TWO[:cut]
    ended = cut == len(encode_event(b'{"a":1}', HEADERS))
    assert frames[-1].complete is ended


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (0, b""),
        (1, b""),
        (2, b"\x01"),
        (3, b"\x00\x01"),
        (4, b"\x00" * 4),
        (5, b"\x00" * 8),
        (6, b"\x00\x03abc"),
        (8, b"\x00" * 8),
        (9, b"\x00" * 16),
    ],
)
def test_headers_of_other_types_are_passed_over(kind: int, value: bytes) -> None:
    body = message(b"x", header("other", kind, value) + header(":event-type", 7, b"\x00\x02ok"))
    assert [frame.event for frame in read(body)] == ["ok"]


@pytest.mark.parametrize("name", [":event-type", ":exception-type", ":error-code"])
def test_an_exception_is_named_like_an_event(name: str) -> None:
    assert read(encode_event(b"{}", {name: "throttlingException"}))[0].event == "throttlingException"


def test_the_headers_of_a_message_can_be_read() -> None:
    raw = encode_event(b"", {":error-code": "500", ":error-message": "no"})
    assert message_headers(raw) == {":error-code": "500", ":error-message": "no"}
    assert message_headers(b"") == {}


@pytest.mark.parametrize("place", range(len(encode_event(b"payload", HEADERS))))
def test_a_flipped_bit_anywhere_is_noticed(place: int) -> None:
    body = bytearray(encode_event(b"payload", HEADERS))
    body[place] ^= 0x10
    with pytest.raises((CorruptFrame, OversizedFrame)):
        read(bytes(body))


@pytest.mark.parametrize(
    "headers",
    [
        b"\x05ab",
        header("n", 7, b"\x00"),
        header("n", 7, b"\x00\x09abc"),
        header("n", 9, b"\x00"),
        header("n", 77, b""),
    ],
    ids=["name", "length", "text", "uuid", "type"],
)
def test_broken_headers_are_refused(headers: bytes) -> None:
    with pytest.raises(CorruptFrame):
        read(message(b"", headers))


def test_a_message_shorter_than_its_headers_is_refused() -> None:
    prelude = struct.pack(">II", 16, 40)
    with pytest.raises(CorruptFrame, match="shorter"):
        read(prelude + struct.pack(">I", crc32(prelude)) + b"\x00" * 40)


def test_a_message_over_the_limit_is_refused_before_it_is_held() -> None:
    body = encode_event(b"x" * 200, HEADERS)
    decoder = EventStreamDecoder(100)
    with pytest.raises(OversizedFrame):
        decoder.feed(body[:12])
    assert len(read(body, limit=len(body))) == 1


def test_messages_before_a_bad_one_are_given() -> None:
    good = encode_event(b"good", HEADERS)
    decoder = EventStreamDecoder()
    assert [frame.data for frame in decoder.feed(good + b"\x00" * 20)] == [b"good"]
    for _ in range(2):
        with pytest.raises(CorruptFrame):
            decoder.feed(b"")
    assert [(frame.raw, frame.complete) for frame in decoder.finish()] == [(b"\x00" * 20, False)]


@given(st.binary(max_size=80))
def test_no_bytes_raise_anything_else(body: bytes) -> None:
    try:
        frames = read(TWO + body)
    except (CorruptFrame, OversizedFrame):
        return
    assert b"".join(frame.raw for frame in frames) == TWO + body
