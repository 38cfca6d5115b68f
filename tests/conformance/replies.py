"""Every recorded reply as bardo reads it under the name of its folder, kept for all suites of this folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.replies.citations import citations_between
from bardo.replies.reply_reader import row_reader
from bardo.replies.reply_stages import FillMissingFields
from bardo.replies.translation_stages import ForeignContent
from bardo.streams.stage import Stage
from bardo.surfaces.library.decoding import provider_row
from bardo.values.events import ContentChunk, Event, ReplyStart, ThinkChunk, ToolCallChunk
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival
from recordings import Recording, folders, rows

CLIENTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini")
ALL = tuple(recording for folder in folders() for recording in rows(folder))
STAMP = ReplyStart(id="req_1", model="asked", created=7)
_BY_FILE = {recording.file: recording for recording in ALL}


@dataclass(frozen=True)
class Reply:
    """One recording, the events it was read as, and what they come to."""

    recording: Recording
    events: tuple[Event, ...]
    response: Response

    def for_client(self, client: str) -> Reply:
        """Return the reply as the engine hands it to a client's encoder: stamped, and with a note of all its dialect cannot hold."""
        events: Sequence[Event] = self.events
        citations = citations_between(row_of(self.recording).dialect, client, self.response.model)
        stages: list[Stage[Event, Event]] = [FillMissingFields(STAMP), *citations, ForeignContent(client)]
        for stage in stages:
            events = [*(given for event in events for given in stage.feed(event)), *stage.finish()]
        return Reply(self.recording, tuple(events), fold(events))


def row_of(recording: Recording) -> ProviderRow:
    """Return the catalog's row of a recording's folder."""
    return provider_row(recording.file.split("/")[0])


def read(recording: Recording, pieces: Iterable[bytes]) -> tuple[list[Event], Response]:
    """Read a reply that arrives in pieces."""
    reader = row_reader(row_of(recording), streamed=recording.framing != "json")
    events = [event for piece in pieces for event in reader.feed(piece)]
    events += reader.finish()
    return events, reader.fold.response()


def reply_of(recording: Recording) -> Reply:
    """Return a recording as it is read in one piece."""
    return _reply(recording.file)


@cache
def _reply(file: str) -> Reply:
    recording = _BY_FILE[file]
    events, response = read(recording, [recording.body])
    return Reply(recording, tuple(events), response)


def written_whole(response: Response, client: str) -> bytes:
    """Write a reply for a client, in one piece."""
    return dialect(client).encode_response(response, _request(client))


def written_stream(events: Sequence[Event], client: str) -> bytes:
    """Write a reply for a client, as a stream."""
    encoder = dialect(client).open_encoder(_request(client), Arrival())
    return b"".join([piece for event in events for piece in encoder.feed(event)] + list(encoder.finish()))


def _request(client: str) -> Request:
    return Request(model="m", messages=(), dialect=client)


def in_fewer_pieces(events: Sequence[Event], together: int = 8) -> list[Event]:
    """Return the events with up to `together` neighbouring pieces of one text joined: the libraries take their time for each."""
    joined: list[Event] = []
    count = 0
    for event in events:
        last = joined[-1] if joined else None
        count = count + 1 if last is not None and _is_next_piece(last, event) and count < together else 1
        if count > 1:
            joined[-1] = _with_more(last, event)
        else:
            joined.append(event)
    return joined


def _is_next_piece(last: Event, event: Event) -> bool:
    if not isinstance(event, ThinkChunk | ContentChunk | ToolCallChunk) or type(last) is not type(event):
        return False
    return _place(last) == _place(event)


def _place(piece: Any) -> tuple[int, int, int | None]:
    return piece.choice, piece.block, getattr(piece, "part", None)


def _with_more(last: Any, event: Any) -> Event:
    field = "arguments" if isinstance(event, ToolCallChunk) else "text"
    more: Event = msgspec.structs.replace(last, **{field: getattr(last, field) + getattr(event, field)})
    return more
