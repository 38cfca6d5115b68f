"""A frame with a field that nobody knows says what it says without: the second look reads what the first does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects import dialect
from bardo.streams.eventstream import EventStreamDecoder
from bardo.streams.frames import Frame, WholeBody
from bardo.streams.json_frames import NdjsonDecoder
from bardo.streams.sse import SseDecoder
from bardo.surfaces.library.decoding import provider_row
from recordings import Recording, each_recording, rows

FOLDERS = {"bedrock-converse": "bedrock", "cohere": "cohere", "ollama": "ollama"}
FRAMINGS: dict[str, Any] = {"eventstream": EventStreamDecoder, "ndjson": NdjsonDecoder, "sse": SseDecoder}


@each_recording([one for folder in FOLDERS for one in rows(folder)], by_day=0.3)
def test_a_null_under_an_unknown_name_changes_nothing(recording: Recording) -> None:
    framing = FRAMINGS[recording.framing]() if recording.stream else WholeBody()
    frames = [*framing.feed(recording.body), *framing.finish()]
    assert _said(recording, frames) == _said(recording, [_with_null(frame) for frame in frames])


def _said(recording: Recording, frames: Sequence[Frame]) -> list[Any]:
    row = provider_row(FOLDERS[recording.file.partition("/")[0]])
    decoder = dialect(row.dialect).open_decoder(row)
    events = [event for frame in frames for event in decoder.feed(frame)]
    return [getattr(event, "error", event).__class__ if hasattr(event, "error") else event for event in events]


def _with_null(frame: Frame) -> Frame:
    """Return the frame with a null at its end; what is no object stays."""
    try:
        value = msgspec.json.decode(frame.data or b"")
    except msgspec.DecodeError:
        return frame
    data = (frame.data or b"").rstrip()
    if not isinstance(value, dict) or not value:
        return frame
    return msgspec.structs.replace(frame, data=data[:-1] + b',"unheard_of":null}')
