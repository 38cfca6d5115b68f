"""Deltas that repeat are read in one go only where nothing but their text is new."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages.reply_in import Decoder
from bardo.replies.reply_reader import row_reader
from bardo.streams.frames import Frame
from bardo.streams.sse import encode_sse
from bardo.values.events import ContentChunk, Event, ThinkChunk, ToolCallChunk

ROW = ProviderRow(id="p", name="P", dialect="anthropic_messages")
DELTAS: dict[str, tuple[dict[str, Any], str, str]] = {
    "text": ({"type": "text", "text": ""}, "text_delta", "text"),
    "thinking": ({"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking"),
    "a call": ({"type": "tool_use", "id": "t", "name": "f", "input": {}}, "input_json_delta", "partial_json"),
}
WORDS = ["one", " two", "", "\n", "“drei”", '"4"', "\\", "five\u2028", "text_delta", "0", "{}"]


def named(kind: str, **fields: Any) -> bytes:
    return encode_sse(json.dumps({"type": kind, **fields}, separators=(",", ":")).encode(), kind)


def delta(kind: str, text: str, index: int = 0, **fields: Any) -> bytes:
    _, name, field = DELTAS[kind]
    return named("content_block_delta", index=index, delta={"type": name, field: text, **fields})


def stream(kind: str, *deltas: bytes) -> bytes:
    begin = named(
        "message_start", message={"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    )
    opened = named("content_block_start", index=0, content_block=DELTAS[kind][0])
    end = (named("content_block_stop", index=0), named("message_delta", delta={"stop_reason": "end_turn"}))
    return b"".join([begin, opened, *deltas, *end, named("message_stop")])


def events_of(body: bytes, *, one_by_one: bool) -> tuple[list[Event], int]:
    """Return the events of a stream that comes in one piece, and how many of its frames were read in one go."""
    reader = row_reader(ROW, streamed=True, model="m")
    repeated, taken = reader._repeated, 0
    assert repeated is not None
    reader._repeated = None if one_by_one else repeated
    decoder = repeated.decoder
    read = decoder.again

    def counted(values: Any, *, joined: bool) -> Any:
        nonlocal taken
        found = read(values, joined=joined)
        taken += 0 if found is None else len(values)
        return found

    decoder.again = counted  # type: ignore[method-assign]
    return [*reader.feed(body), *reader.finish()], taken


def check(body: bytes) -> int:
    found, taken = events_of(body, one_by_one=False)
    assert found == events_of(body, one_by_one=True)[0]
    return taken


@pytest.mark.parametrize("kind", DELTAS)
def test_deltas_of_one_block_are_read_in_one_go(kind: str) -> None:
    assert check(stream(kind, *(delta(kind, word) for word in WORDS * 4))) >= len(WORDS) * 2


def test_other_deltas_among_them_are_read_by_themselves() -> None:
    words = [delta("text", word) for word in WORDS * 2]
    others = [
        delta("text", "a", estimated_tokens=3),
        named("ping"),
        delta("text", "b", 1),
        delta("thinking", "c"),
        named("content_block_delta", index=0, delta={"type": "citations_delta", "citation": {"url": "u"}}),
    ]
    for other in others:
        check(stream("text", *words, other, *words))


def test_a_block_that_begins_again_is_another_block() -> None:
    words = [delta("text", word) for word in WORDS * 2]
    again = (
        named("content_block_stop", index=0),
        named("content_block_start", index=0, content_block=DELTAS["text"][0]),
    )
    body = stream("text", *words, *again, *words)
    check(body)
    events, _ = events_of(body, one_by_one=False)
    assert {event.block for event in events if isinstance(event, ContentChunk)} == {0, 1}


def test_an_estimate_beside_thinking_is_not_passed_over() -> None:
    check(stream("thinking", *(delta("thinking", word, estimated_tokens=place) for place, word in enumerate(WORDS))))


def test_a_text_that_stands_elsewhere_in_its_frame_is_told_from_it() -> None:
    for text in ("text", "text_delta", "content_block_delta", "type"):
        check(stream("text", *[delta("text", text)] * 4, delta("text", "b"), delta("text", "c")))


def test_frames_without_a_name_are_read_too() -> None:
    bare = [one.partition(b"\n")[2] for one in (delta("text", word) for word in WORDS * 3)]
    assert check(stream("text", *bare)) > len(WORDS)


def test_events_that_are_joined_hold_all_of_the_text() -> None:
    for kind, made in (("text", ContentChunk), ("thinking", ThinkChunk), ("a call", ToolCallChunk)):
        decoder = Decoder(ROW)
        for one in (named("content_block_start", index=0, content_block=DELTAS[kind][0]), *[delta(kind, "a")] * 2):
            name, _, data = one[:-2].partition(b"\ndata: ")
            decoder.feed(Frame(data, name.removeprefix(b"event: ").decode(), one))
        assert decoder.repeated() is not None
        (event,) = decoder.again([b'"b"', b'"c"'], joined=True) or ()
        assert type(event) is made
        assert (event.arguments if isinstance(event, ToolCallChunk) else event.text) == "bc"
        assert decoder.again([b'"b"', b"1"], joined=False) is None
