"""What a decoder reads of a plain frame is what it reads of any frame, and any strict reader can read the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.shared.dialect import PlainReplyDecoder, ReplyDecoder
from bardo.streams.frames import Frame
from bardo.streams.sse import SseDecoder
from bardo.values.events import Event
from recordings import RECORDINGS, Recording, rows

FOLDERS = {
    "anthropic-messages": "anthropic_messages",
    "openai-responses": "openai_responses",
}
STREAMS = {name: [one for one in rows(name) if one.framing == "sse"] for name in FOLDERS}


def open_decoder(name: Any) -> ReplyDecoder:
    return dialect(name).open_decoder(ProviderRow(id="p", name="P", dialect=name))


def shown(events: Sequence[Event]) -> list[Any]:
    """Return events; errors are equal by what they say."""
    return [event if (error := getattr(event, "error", None)) is None else str(error) for event in events]


def frames_of(recording: Recording) -> list[Frame]:
    framing = SseDecoder()
    return [*framing.feed(recording.body), *framing.finish()]


def plain_frames(name: str, frames: Sequence[Frame]) -> int:
    """Return how many frames are plain; all of them say what they say when they are fed."""
    quick, slow, count = open_decoder(name), open_decoder(name), 0
    assert isinstance(quick, PlainReplyDecoder)
    for frame in frames:
        found = quick.read_plain_frame(frame)
        if found is not None:
            count += 1
            msgspec.json.decode(frame.data or b"")
            (frame.data or b"").decode()
        assert shown(quick.feed(frame) if found is None else found) == shown(slow.feed(frame))
    assert shown(quick.finish()) == shown(slow.finish())
    return count


@pytest.mark.parametrize("folder", FOLDERS)
def test_plain_frames_of_recorded_streams_say_what_others_say(folder: str) -> None:
    count = sum(plain_frames(FOLDERS[folder], frames_of(one)) for one in STREAMS[folder])
    assert count > (100 if RECORDINGS else 5)
