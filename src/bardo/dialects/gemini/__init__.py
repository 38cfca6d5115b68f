"""Gemini's generateContent, read and written in both directions.

Clients post to `/v1beta/models/{model}:generateContent` or `:streamGenerateContent`, so model and streaming come with the
Arrival. Every chunk of a stream is a whole GenerateContentResponse, and the encoder puts bardo's own fields in the last one.
"""

from __future__ import annotations

from bardo.catalog.rows import ProviderRow
from bardo.dialects.base import Framing, ReplyDecoder, ReplyEncoder
from bardo.dialects.gemini import decode_request as requests_in
from bardo.dialects.gemini import encode_reply as replies_out
from bardo.dialects.gemini import encode_request as requests_out
from bardo.dialects.gemini import errors
from bardo.dialects.gemini.decode_reply import GeminiDecoder
from bardo.dialects.gemini.stream_reply import GeminiEncoder
from bardo.dialects.gemini.words import NAME
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival, WireRequest


class Gemini:
    """The dialect."""

    name = NAME
    stream_framing: Framing = "sse"

    def decode_request(self, body: bytes, arrival: Arrival) -> Request:
        """Read a client's request."""
        return requests_in.decode_request(body, arrival)

    def encode_request(self, request: Request, row: ProviderRow) -> WireRequest:
        """Write a request for a provider."""
        return requests_out.encode_request(request, row)

    def open_decoder(self, row: ProviderRow) -> ReplyDecoder:
        """Begin to read a reply."""
        return GeminiDecoder(provider=row.id, beside=row.quirks.reasoning_beside_output)

    def open_encoder(self, request: Request, arrival: Arrival) -> ReplyEncoder:
        """Begin to write a streamed reply."""
        return GeminiEncoder(arrival.framing)

    def encode_response(self, response: Response, request: Request) -> bytes:
        """Write a whole reply."""
        return replies_out.encode_response(response)

    def encode_error(self, error: BardoError) -> bytes:
        """Write an error body."""
        return errors.encode_error(error)

    def decode_error(self, status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
        """Read a provider's error answer."""
        return errors.decode_error(status, body, headers, provider)


DIALECT = Gemini()
