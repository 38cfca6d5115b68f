"""Recorded streams say the same and send the same bytes, whether frames that repeat are read in one go or all are read one by one."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.engine.citations import citations_between
from bardo.engine.foreign_content import ForeignContent
from bardo.engine.forwarding import Forwarding
from bardo.engine.reply_reader import ReplyReader
from bardo.engine.thinking_display import WithoutUnasked
from bardo.reasoning.control import observation
from bardo.streams.stage import Stage
from bardo.values.events import ContentChunk, Event, RefusalChunk, ReplyStart, ThinkChunk
from bardo.values.fold import ResponseFold
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival
from dialects.openai_chat.test_chat_recordings import STREAMS, row_of
from recordings import Recording, each_recording, rows

STAMP = ReplyStart(id="req_1", model="m", created=1)
PIECES = (1 << 20, 4096, 700)


MESSAGES = [one for one in rows("anthropic-messages") if one.framing == "sse"]
CLIENTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini")


def provider_of(recording: Recording) -> ProviderRow:
    if recording in MESSAGES:
        return ProviderRow(id="p", name="P", dialect="anthropic_messages")
    return row_of(recording)


def forwarded(recording: Recording, size: int, *, one_by_one: bool) -> tuple[Response, bytes]:
    reader = ReplyReader(provider_of(recording), streamed=True, model="m", stamp=STAMP, forward=True)
    if one_by_one:
        reader._repeated, reader._passes_text = None, False
    forwarding = Forwarding(reader, forward=True, withhold_usage=False, hold_end=False)
    body = recording.body
    updates = [forwarding.update(body[begin : begin + size]) for begin in range(0, len(body), size)]
    updates.append(forwarding.rest())
    return reader.fold.response(), b"".join(one.raw for one in updates)


def translated(recording: Recording, client: str, *, one_by_one: bool, shows: bool = True) -> list[Any]:
    """Return what a client of another dialect gets, a piece for each event that is not empty."""
    row = provider_of(recording)
    stages: list[Stage[Event, Event]] = [*citations_between(row.dialect, client), ForeignContent(client)]
    thinking = None if shows else WithoutUnasked()
    reader = ReplyReader(row, streamed=True, model="m", stamp=STAMP, stages=stages, thinking=thinking)
    if one_by_one:
        reader._repeated, reader._passes_text = None, False
    encoder = dialect(client).open_encoder(Request(model="m", messages=(), dialect=client), Arrival())
    body, size = recording.body, 4096
    events = [one for begin in range(0, len(body), size) for one in reader.feed(body[begin : begin + size])]
    written = [encoder.feed(event) for event in (*events, *reader.finish())]
    reasoning = reader.response_with_reasoning()
    kept = (reasoning.blocks, reasoning.reasoning, reasoning.usage)
    return [kept, *(b"".join(frames) for frames in (*written, encoder.finish()) if frames)]


@pytest.mark.parametrize("client", CLIENTS)
@each_recording(STREAMS + MESSAGES)
def test_clients_of_other_dialects_get_the_same_where_frames_are_read_in_one_go(
    recording: Recording, client: str
) -> None:
    for shows in (True, False):
        quick = translated(recording, client, one_by_one=False, shows=shows)
        assert quick == translated(recording, client, one_by_one=True, shows=shows)


@pytest.mark.parametrize("size", PIECES)
@each_recording(STREAMS + MESSAGES)
def test_frames_that_repeat_are_read_in_one_go_without_a_difference(recording: Recording, size: int) -> None:
    quick, sent = forwarded(recording, size, one_by_one=False)
    slow, sent_slowly = forwarded(recording, size, one_by_one=True)
    # Errors are equal by what they say.
    errors = [(type(one.error), str(one.error)) for one in (quick, slow)]
    assert errors[0] == errors[1]
    for name in (
        "id",
        "model",
        "created",
        "blocks",
        "reasoning",
        "usage",
        "finish",
        "degraded",
        "alternatives",
        "carried",
    ):
        assert getattr(quick, name) == getattr(slow, name), name
    assert observation(quick.reasoning) == observation(slow.reasoning)
    assert sent == sent_slowly


@pytest.mark.parametrize("most", [0, 3, 5, 6, 9, 100])
def test_a_run_of_pieces_is_held_as_far_as_each_of_them_would_be(most: int) -> None:
    for kind in (ContentChunk, ThinkChunk, RefusalChunk):
        pieces = [kind(0, text) for text in ("abc", "de", "f")]
        at_once, singly = ResponseFold(most_text=most), ResponseFold(most_text=most)
        at_once.feed_run(pieces)
        for piece in pieces:
            singly.feed(piece)
        assert (at_once.response(), at_once.whole) == (singly.response(), singly.whole)
