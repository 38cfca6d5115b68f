"""Recorded streams say the same and send the same bytes, whether frames that repeat are read in one go or all are read one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.reasoning.control import observation
from bardo.replies.citations import citations_between
from bardo.replies.forwarding import Forwarding, ReplyUpdate
from bardo.replies.reply_reader import ReplyHandling, row_reader
from bardo.replies.reply_stages import WithoutUnasked
from bardo.replies.translation_stages import ForeignContent
from bardo.streams.stage import Stage
from bardo.values.events import ContentChunk, Event, RefusalChunk, ReplyStart, ThinkChunk
from bardo.values.fold import ResponseFold
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival
from dialects.openai_chat.test_chat_recordings import STREAMS, row_of
from recordings import Recording, each_recording, rows

STAMP = ReplyStart(id="req_1", model="m", created=1)
FRAMES = 0
PIECES = (1 << 20, 4096, 700, FRAMES)


MESSAGES = [one for one in rows("anthropic-messages") if one.framing == "sse"]
SAME = ("id", "model", "created", "blocks", "reasoning", "usage", "finish", "degraded", "alternatives", "carried")
CLIENTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini")


def provider_of(recording: Recording) -> ProviderRow:
    if recording in MESSAGES:
        return ProviderRow(id="p", name="P", dialect="anthropic_messages")
    return row_of(recording)


def pieces_of(body: bytes, size: int) -> list[bytes]:
    """Return a body in pieces of so many bytes, or in its frames."""
    if size == FRAMES:
        return [frame for frame in re.split(rb"(?<=\n\n)", body) if frame]
    return [body[begin : begin + size] for begin in range(0, len(body), size)]


def updates_of(forwarding: Forwarding, pieces: Sequence[bytes], *, directly: bool) -> list[ReplyUpdate]:
    """Return what the network reads give: `directly`, where only a text goes on in them, and to a task that waits for all others."""
    updates = []
    for piece in pieces:
        quick = forwarding.repeated(piece) if directly else None
        updates.append(forwarding.update(piece) if quick is None else quick)
    return [*updates, forwarding.rest()]


def forwarded(recording: Recording, size: int, *, one_by_one: bool, directly: bool = False) -> tuple[Response, bytes]:
    reader = row_reader(
        provider_of(recording), streamed=True, model="m", handling=ReplyHandling(stamp=STAMP, forward=True)
    )
    if one_by_one:
        reader._repeated = None
    forwarding = Forwarding(reader, forward=True, withhold_usage=False, hold_end=False)
    updates = updates_of(forwarding, pieces_of(recording.body, size), directly=directly)
    return reader.fold.response(), b"".join(one.raw for one in updates)


def translated(
    recording: Recording, client: str, *, one_by_one: bool, shows: bool = True, directly: bool = False
) -> list[Any]:
    """Return what a client of another dialect gets, a piece for each event that is not empty."""
    row = provider_of(recording)
    stages: list[Stage[Event, Event]] = [*citations_between(row.dialect, client), ForeignContent(client)]
    thinking = None if shows else WithoutUnasked()
    reader = row_reader(
        row, streamed=True, model="m", handling=ReplyHandling(stamp=STAMP, stages=stages, thinking=thinking)
    )
    if one_by_one:
        reader._repeated = None
    encoder = dialect(client).open_encoder(Request(model="m", messages=(), dialect=client), Arrival())
    forwarding = Forwarding(reader, forward=False, withhold_usage=False, hold_end=False)
    pieces = pieces_of(recording.body, FRAMES if directly else 4096)
    events = [one for update in updates_of(forwarding, pieces, directly=directly) for one in update.events]
    written = [encoder.feed(event) for event in events]
    reasoning = reader.fold_with_reasoning.response()
    kept = (reasoning.blocks, reasoning.reasoning, reasoning.usage)
    return [kept, *(b"".join(frames) for frames in (*written, encoder.finish()) if frames)]


@pytest.mark.parametrize("client", CLIENTS)
@each_recording(STREAMS + MESSAGES, by_day=0.3)
def test_clients_of_other_dialects_get_the_same_where_frames_are_read_in_one_go(
    recording: Recording, client: str
) -> None:
    for shows in (True, False):
        quick = translated(recording, client, one_by_one=False, shows=shows)
        assert quick == translated(recording, client, one_by_one=True, shows=shows)
        assert quick == translated(recording, client, one_by_one=False, shows=shows, directly=True)


@pytest.mark.parametrize("size", PIECES)
@each_recording(STREAMS + MESSAGES, by_day=0.3)
def test_frames_that_repeat_are_read_in_one_go_without_a_difference(recording: Recording, size: int) -> None:
    quick, sent = forwarded(recording, size, one_by_one=False)
    for other, also_sent in (
        forwarded(recording, size, one_by_one=True),
        forwarded(recording, size, one_by_one=False, directly=True),
    ):
        # Errors are equal by what they say.
        errors = [(type(one.error), str(one.error)) for one in (quick, other)]
        assert errors[0] == errors[1]
        for name in SAME:
            assert getattr(quick, name) == getattr(other, name), name
        assert observation(quick.reasoning) == observation(other.reasoning)
        assert sent == also_sent


@pytest.mark.parametrize("most", [0, 3, 5, 6, 9, 100])
def test_a_run_of_pieces_is_held_as_far_as_each_of_them_would_be(most: int) -> None:
    for kind in (ContentChunk, ThinkChunk, RefusalChunk):
        pieces = [kind(0, text) for text in ("abc", "de", "f")]
        at_once, singly = ResponseFold(most_text=most), ResponseFold(most_text=most)
        at_once.feed_run(pieces)
        for piece in pieces:
            singly.feed(piece)
        assert (at_once.response(), at_once.whole) == (singly.response(), singly.whole)
