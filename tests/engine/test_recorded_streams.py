"""Recorded streams say the same and send the same bytes, whether frames that repeat are read in one go or all are read one by one."""

from __future__ import annotations

import pytest

from bardo.engine.forwarding import Forwarding
from bardo.engine.reply_reader import ReplyReader
from bardo.reasoning.control import observation
from bardo.values.events import ContentChunk, RefusalChunk, ReplyStart, ThinkChunk
from bardo.values.fold import ResponseFold
from bardo.values.response import Response
from dialects.openai_chat.test_chat_recordings import STREAMS, row_of
from recordings import Recording, each_recording

STAMP = ReplyStart(id="req_1", model="m", created=1)
PIECES = (1 << 20, 4096, 700)


def forwarded(recording: Recording, size: int, *, one_by_one: bool) -> tuple[Response, bytes]:
    reader = ReplyReader(row_of(recording), streamed=True, model="m", stamp=STAMP, forward=True)
    if one_by_one:
        reader._repeated, reader._passes_text = None, False
    forwarding = Forwarding(reader, forward=True, withhold_usage=False, hold_end=False)
    body = recording.body
    updates = [forwarding.update(body[begin : begin + size]) for begin in range(0, len(body), size)]
    updates.append(forwarding.rest())
    return reader.fold.response(), b"".join(one.raw for one in updates)


@pytest.mark.parametrize("size", PIECES)
@each_recording(STREAMS)
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
