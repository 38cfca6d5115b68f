"""Bytes to frames and back: the WHATWG rules, for bytes cut anywhere."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bardo.streams.frames import Frame, OversizedFrame
from bardo.streams.sse import KEEP_ALIVE, FrameEnds, SseDecoder, encode_sse
from recordings import Recording, rows

pytestmark = pytest.mark.each_python


def frames_of(pieces: list[bytes], *, limit: int | None = None) -> list[Frame]:
    decoder = SseDecoder() if limit is None else SseDecoder(limit)
    return [frame for piece in pieces for frame in decoder.feed(piece)] + list(decoder.finish())


def said(pieces: list[bytes]) -> list[tuple[bytes | None, str, bool]]:
    return [(frame.data, frame.event, frame.complete) for frame in frames_of(pieces)]


def cut(body: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(body) + 1) for place in places), len(body)]
    return [body[begin:end] for begin, end in itertools.pairwise(edges)]


CASES: dict[str, tuple[bytes, list[tuple[bytes | None, str, bool]]]] = {
    "one frame": (b"data: a\n\n", [(b"a", "", True)]),
    "two frames": (b"data: a\n\ndata: b\n\n", [(b"a", "", True), (b"b", "", True)]),
    "no space after the colon": (b"data:a\n\n", [(b"a", "", True)]),
    "only the first space is not data": (b"data:  a \n\n", [(b" a ", "", True)]),
    "carriage returns and newlines": (b"data: a\r\n\r\ndata: b\r\n\r\n", [(b"a", "", True), (b"b", "", True)]),
    "carriage returns alone": (b"data: a\r\rdata: b\r\r", [(b"a", "", True), (b"b", "", True)]),
    "line ends mixed": (b"data: a\r\n\ndata: b\n\r\n", [(b"a", "", True), (b"b", "", True)]),
    "several lines of data": (b"data: a\ndata: b\ndata\n\n", [(b"a\nb\n", "", True)]),
    "an event name": (b"event: ping\ndata: {}\n\n", [(b"{}", "ping", True)]),
    "the name after the data": (b"data: {}\nevent: ping\n\n", [(b"{}", "ping", True)]),
    "a name that is no UTF-8": (b"event: \xff\ndata: {}\n\n", [(b"{}", "\ufffd", True)]),
    "a comment is a frame without data": (b": hello\n\ndata: a\n\n", [(None, "", True), (b"a", "", True)]),
    "a comment within a frame": (b": hello\ndata: a\n\n", [(b"a", "", True)]),
    "fields bardo has no use for": (b"id: 7\nretry: 100\ndata: a\n\n", [(b"a", "", True)]),
    "a byte-order mark": (b"\xef\xbb\xbfdata: a\n\n", [(b"a", "", True)]),
    "a byte-order mark that does not begin the stream": (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [(b"a", "", True), (None, "", True)]),
    "a rest": (b"data: a\n\ndata: b", [(b"a", "", True), (b"b", "", False)]),
    "a rest after one line end": (b"data: a\n", [(b"a", "", False)]),
    "a rest cut inside a carriage return and newline": (b"data: a\r\n\r", [(b"a", "", True)]),
    "a rest of white space": (b"data: a\n\n\n", [(b"a", "", True)]),
    "the beginning of a byte-order mark": (b"\xef\xbb", [(None, "", False)]),
    "nothing": (b"", []),
}  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), CASES.values(), ids=CASES.keys())
def test_frames(body: bytes, expected: list[tuple[bytes | None, str, bool]]) -> None:
    assert said([body]) == expected


@pytest.mark.parametrize(("body", "expected"), CASES.values(), ids=CASES.keys())
def test_a_stream_byte_by_byte_says_the_same(body: bytes, expected: list[tuple[bytes | None, str, bool]]) -> None:
    assert frames_of([bytes([byte]) for byte in body]) == frames_of([body])
    assert said([bytes([byte]) for byte in body]) == expected


WORDS = b"data: a|data:b|data|event: e|: c||\n|\r|\r\n|\n\n|\r\n\r\n|\r\r|\xef\xbb\xbf|\xc3".split(b"|")
lines = st.sampled_from(WORDS)


@given(st.lists(lines, max_size=12).map(b"".join), st.lists(st.integers(0, 200), max_size=6))
@example(b"data: a\n\r\n\r\r\n", [9, 10, 11])
def test_no_cut_changes_a_frame(body: bytes, places: list[int]) -> None:
    assert frames_of(cut(body, places)) == frames_of([body])


@given(st.lists(lines, max_size=12).map(b"".join))
def test_frames_keep_the_bytes_they_stood_in(body: bytes) -> None:
    raw = b"".join(frame.raw for frame in frames_of([body]))
    assert raw.rstrip() == body.removeprefix(b"\xef\xbb\xbf").rstrip()


@given(st.binary(max_size=300), st.text("abc.", max_size=5))
def test_what_is_written_reads_back(data: bytes, event: str) -> None:
    one_line_ends = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert said([encode_sse(data, event)]) == [(one_line_ends, event, True)]


def test_a_sign_of_life_never_becomes_data() -> None:
    assert said([KEEP_ALIVE]) == [(None, "", True)]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_frame_over_the_limit_is_refused_however_it_is_cut(size: int) -> None:
    body = b"data: " + b"a" * 100 + b"\n\n"
    with pytest.raises(OversizedFrame, match="over 50 bytes"):
        frames_of(cut(body, list(range(0, len(body), size))), limit=50)


def test_frames_before_an_oversized_one_are_given_first() -> None:
    decoder = SseDecoder(50)
    given = decoder.feed(b"data: a\n\ndata: b\n\ndata: " + b"c" * 100)
    assert [frame.data for frame in given] == [b"a", b"b"]
    with pytest.raises(OversizedFrame):
        decoder.feed(b"d")


def test_a_long_stream_of_small_frames_is_within_the_limit() -> None:
    assert len(frames_of([b"data: a\n\n" * 1000], limit=50)) == 1000


@pytest.mark.parametrize("folder", ["groq", "perplexity", "gemini", "anthropic-messages", "openrouter"])
def test_recorded_streams_say_the_same_however_they_are_cut(folder: str) -> None:
    recordings: list[Recording] = [one for one in rows(folder) if one.framing == "sse"]
    for recording in recordings[:8]:
        body = recording.body
        places = random.Random(recording.file).choices(range(len(body)), k=40)
        assert frames_of(cut(body, places)) == frames_of([body]), recording.file


PARTS = st.lists(st.text('ab"}\n', max_size=4).map(str.encode), min_size=2, max_size=8)


@given(PARTS, st.text('ab"', max_size=40).map(str.encode), st.text("}a", min_size=1, max_size=60).map(str.encode))
def test_frames_of_a_run_are_the_bytes_they_were_cut_from(values: list[bytes], head: bytes, tail: bytes) -> None:
    """Whatever stands between: what was cut out, with head and tail around it, is the beginning of the item."""
    item = b"".join(b"data: " + head + value + tail + b"\n\n" for value in values) + b"data: [DONE]\n\n"
    found, end = SseDecoder().run(item, 0, FrameEnds(head, tail))
    assert b"".join(b"data: " + head + value + tail + b"\n\n" for value in found) == item[:end]
    if not any(b"\n" in value or b"}" in value for value in values):
        assert [*found] == values


FILLED = st.lists(
    st.tuples(st.text('ab"}\n,', max_size=4), st.text('aZ0"}\n,', max_size=4)).map(lambda pair: (pair[0].encode(), pair[1].encode())),
    min_size=1, max_size=8,
)  # fmt: skip


@given(FILLED)
def test_frames_that_end_with_random_letters_are_the_bytes_they_were_cut_from(pairs: list[tuple[bytes, bytes]]) -> None:
    head, tail = b'{"a":', b',"p":"'
    frames = [b"data: " + head + value + tail + filler + b'"}\n\n' for value, filler in pairs]
    item = b"".join(frames) + b"data: [DONE]\n\n"
    found, end = SseDecoder().run(item, 0, FrameEnds(head, tail, filled=True))
    if not any(b"\n" in part for pair in pairs for part in pair):
        assert item[:end] == b"".join(frames[: len(found)])
        assert [*found] == [value for value, _ in pairs[: len(found)]]
    if all(value.isalpha() and (filler.isalnum() or not filler) for value, filler in pairs):
        assert len(found) == len(pairs)


@pytest.mark.parametrize(
    ("raw", "alone"),
    [
        (b"data: a\n\n", True),
        (b"data: a\r\n\r\n", True),
        (b"event: e\ndata: a\n\n", True),
        (b"event: e\r\ndata: a\r\n\r\n", True),
        (b"data:a\n\n", False),
        (b": c\ndata: a\n\n", False),
        (b"id: 1\ndata: a\n\n", False),
        (b"data: a\ndata: b\n\n", False),
        (b"event: \xff\ndata: a\n\n", False),
    ],
)
def test_a_frame_knows_whether_it_holds_more_than_its_data(raw: bytes, alone: bool) -> None:
    decoder, behind_others = SseDecoder(), SseDecoder()
    assert [frame.alone for frame in decoder.feed(raw + raw)] == [alone, alone]
    behind_others.feed(b": a\r\n\n")
    assert [frame.alone for frame in behind_others.feed(raw + b": b\r\n\n")] == [alone, False]


@given(st.text("a\r\n", max_size=40).map(str.encode), st.integers(0, 40))
def test_frames_end_at_the_first_blank_line_whatever_their_line_ends_are(text: bytes, place: int) -> None:
    body = b"data: x\r\n\r\n" + text + b"\r\n\r\ndata: y\r\n\r\n"
    whole = frames_of([body])
    assert frames_of(cut(body, [place])) == whole
    assert [line for frame in whole for line in frame.raw.splitlines()] == body.splitlines()
    ends = [match.end() for match in re.finditer(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)", body)]
    assert [len(frame.raw) for frame in whole] == [end - begin for begin, end in itertools.pairwise([0, *ends])]
