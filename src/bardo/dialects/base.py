"""What a dialect is: one wire language, read and written in both directions.

As a server it decodes what a client sends (`decode_request`) and encodes the reply (`open_encoder`, `encode_response`,
`encode_error`); as a client it encodes what a provider gets (`encode_request`) and decodes its reply (`open_decoder`,
`decode_error`). All of it is pure, and nothing is shared between two replies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from bardo.catalog.rows import ProviderRow
from bardo.streams.frames import Frame
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.events import Event
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival, WireRequest

Framing = Literal["sse", "ndjson", "json_array", "eventstream"]
"""How a streamed reply is cut into frames; a whole one is a frame of its own."""


class ReplyDecoder(Protocol):
    """Frames of one reply to events. A whole body is one frame."""

    def feed(self, item: Frame) -> Sequence[Event]: ...

    def finish(self) -> Sequence[Event]: ...


class RepeatingDecoder:
    """A decoder that reads many frames in one go, as long as nothing but their text is new.

    Most frames of a stream are like the one before. What is done once for many of them costs next to nothing for each.
    """

    def repeated(self) -> tuple[bytes, bytes] | None:
        """Return the bytes before and after the text of the frames that repeat at present."""
        raise NotImplementedError

    def again(self, values: Sequence[bytes], *, joined: bool) -> Sequence[Event] | None:
        """Return the events of frames with these JSON values as their text, `joined` into one; None where they must be fed."""
        raise NotImplementedError


class ReturningDecoder:
    """A decoder of replies with fields that the provider takes back unmodified in the next request."""

    def fields_to_return(self) -> dict[int, dict[str, Any]]:
        """Return these fields of the message of each choice, as far as the reply has come."""
        raise NotImplementedError


class ReplyEncoder(Protocol):
    """Events of one reply to the bytes of a stream. `finish` closes the stream as the dialect does.

    `keep_alive` is what may be said at any time between two events, and readers skip; empty where there is no such thing.
    """

    @property
    def content_type(self) -> str: ...

    @property
    def keep_alive(self) -> bytes: ...

    def feed(self, item: Event) -> Sequence[bytes]: ...

    def finish(self) -> Sequence[bytes]: ...


class Dialect(Protocol):
    """One wire language."""

    @property
    def name(self) -> str: ...

    @property
    def stream_framing(self) -> Framing: ...

    def decode_request(self, body: bytes, arrival: Arrival) -> Request:
        """Read a client's request. Raises InvalidRequest, naming the field."""
        ...

    def encode_request(self, request: Request, row: ProviderRow) -> WireRequest:
        """Write a request for one provider; what cannot be said is in `degraded`."""
        ...

    def open_decoder(self, row: ProviderRow) -> ReplyDecoder:
        """Begin to read one reply, whole or streamed: the frames tell which."""
        ...

    def open_encoder(self, request: Request, arrival: Arrival) -> ReplyEncoder:
        """Begin to write one streamed reply."""
        ...

    def encode_response(self, response: Response, request: Request) -> bytes:
        """Write one whole reply. `response.bardo` goes under `bardo` where it is not empty."""
        ...

    def encode_error(self, error: BardoError) -> bytes:
        """Write an error body as this dialect's own servers do."""
        ...

    def decode_error(self, status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
        """Read a provider's error answer; a body that is not its dialect's is quoted, shortened."""
        ...
