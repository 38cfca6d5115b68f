"""Frames that are alike are read in one go, and nothing but the number of events tells."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.rows import ProviderRow
from bardo.engine.reply_reader import ReplyReader
from bardo.values.events import ContentChunk
from bardo.values.response import Response

ROW = ProviderRow(id="lab", name="Lab", dialect="openai_chat")
TEXTS = st.lists(
    st.sampled_from(["", " a", 'quo"te', "back\\slash", "line\nend", "é🙂", "}}]}", '"},']), min_size=3, max_size=30
)
START = {"role": "assistant", "content": ""}


def frame(delta: Mapping[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


def stream(texts: Sequence[str], field: str = "content") -> bytes:
    frames = [frame(START), *(frame({field: text}) for text in texts), frame({}, "stop")]
    return b"".join(frames) + b"data: [DONE]\n\n"


def read(pieces: Sequence[bytes], *, joined: bool) -> tuple[Response, bytes]:
    reader = ReplyReader(ROW, streamed=True)
    taken = [one for piece in pieces for one in reader.read(piece, joined=joined)] + reader.read_rest()
    return reader.fold.response(), b"".join(said for _, said in taken)


@given(
    TEXTS, st.sampled_from(["content", "reasoning_content"]), st.lists(st.integers(0, 3000), max_size=6), st.booleans()
)
def test_any_cut_says_the_same_and_keeps_every_byte(
    texts: list[str], field: str, cuts: list[int], joined: bool
) -> None:
    data = stream(texts, field)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[begin:end] for begin, end in itertools.pairwise(edges)]
    one_by_one, _ = read([data[place : place + 1] for place in range(len(data))], joined=False)
    response, said = read(pieces, joined=joined)
    assert response == one_by_one
    assert said == data
    assert (response.text if field == "content" else response.reasoning.content or "") == "".join(texts)


def test_what_many_frames_say_is_one_event_where_that_is_wanted() -> None:
    reader = ReplyReader(ROW, streamed=True)
    reader.read(frame(START) + frame({"content": "a"}) * 2, joined=True)
    many = frame({"content": "b"}) + frame({"content": "c"}) + frame({"content": "d"})
    assert reader.read(many, joined=True) == [((ContentChunk(0, "bcd", 0),), many)]
    assert [event for events, _ in reader.read(many, joined=False) for event in events] == [
        ContentChunk(0, text, 0) for text in "bcd"
    ]


BROKEN = {
    "two strings": b'"a","b"',
    "half a string": b'"a',
    "halves that would make whole ones": b'"a","b"\x00"c\x00d"',
    "a line end": b'"a\nb"',
    "a number": b"1",
    "nothing": b"",
    "no UTF-8": b'"\xff"',
}


@pytest.mark.parametrize("values", BROKEN.values(), ids=BROKEN)
def test_frames_that_only_look_alike_are_read_one_by_one(values: bytes) -> None:
    head, tail = frame({"content": "x"}).split(b'"x"')
    frames = b"".join(head + value + tail for value in values.split(b"\x00"))
    data = frame(START) + frame({"content": "x"}) + frames
    at_once, _ = read([frame(START) + frame({"content": "x"}), frames], joined=True)
    byte_by_byte, _ = read([data[place : place + 1] for place in range(len(data))], joined=True)
    assert at_once == byte_by_byte
