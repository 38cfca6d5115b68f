"""Anthropic's Messages API: `POST /v1/messages`."""

from __future__ import annotations

from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages.decode_reply import Decoder
from bardo.dialects.anthropic_messages.decode_request import decode_request
from bardo.dialects.anthropic_messages.encode_reply import Encoder, encode_response
from bardo.dialects.anthropic_messages.encode_request import encode_request
from bardo.dialects.anthropic_messages.errors import decode_error, encode_error
from bardo.dialects.anthropic_messages.words import NAME
from bardo.dialects.base import Dialect, Framing
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival, WireRequest


class AnthropicMessages:
    """The dialect, both ways."""

    name = NAME
    stream_framing: Framing = "sse"

    def decode_request(self, body: bytes, arrival: Arrival) -> Request:
        """Read a client's request."""
        return decode_request(body, arrival)

    def encode_request(self, request: Request, row: ProviderRow) -> WireRequest:
        """Write a request for one provider."""
        return encode_request(request, row)

    def open_decoder(self, row: ProviderRow) -> Decoder:
        """Begin to read one reply."""
        return Decoder(row)

    def open_encoder(self, request: Request, arrival: Arrival) -> Encoder:
        """Begin to write one streamed reply."""
        return Encoder(request)

    def encode_response(self, response: Response, request: Request) -> bytes:
        """Write one whole reply."""
        return encode_response(response, request)

    def encode_error(self, error: BardoError) -> bytes:
        """Write an error body."""
        return encode_error(error)

    def decode_error(self, status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
        """Read a provider's error answer."""
        return decode_error(status, body, headers, provider)


DIALECT: Dialect = AnthropicMessages()
