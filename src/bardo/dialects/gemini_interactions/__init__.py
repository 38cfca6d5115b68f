"""Google's Interactions API: `POST /v1beta/interactions`, whole or streamed.

An interaction is a list of steps: what the user put in, thoughts (a signature, and summaries where they are asked for), the model's
output, and calls of tools with their results. Streams tell it step by step.
"""

from __future__ import annotations

from typing import Literal

from bardo.catalog.rows import ProviderRow
from bardo.dialects.base import Dialect
from bardo.dialects.gemini_interactions.decode_reply import Decoder
from bardo.dialects.gemini_interactions.decode_request import decode_request
from bardo.dialects.gemini_interactions.encode_reply import Encoder
from bardo.dialects.gemini_interactions.encode_request import encode_request
from bardo.dialects.gemini_interactions.encode_whole import encode_response
from bardo.dialects.gemini_interactions.errors import decode_error, encode_error
from bardo.dialects.gemini_interactions.words import NAME
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival, WireRequest


class GeminiInteractions:
    """The dialect, both ways."""

    name = NAME
    stream_framing: Literal["sse"] = "sse"

    def decode_request(self, body: bytes, arrival: Arrival) -> Request:
        """Read a client's request."""
        return decode_request(body, arrival)

    def encode_request(self, request: Request, row: ProviderRow) -> WireRequest:
        """Write a request for one provider."""
        return encode_request(request, row)

    def open_decoder(self, row: ProviderRow) -> Decoder:
        """Begin to read one reply."""
        return Decoder(provider=row.id, beside=row.quirks.reasoning_beside_output)

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


DIALECT: Dialect = GeminiInteractions()
