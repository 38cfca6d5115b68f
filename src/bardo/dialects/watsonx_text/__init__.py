"""IBM watsonx.ai's text generation: `POST /ml/v1/text/generation` and `/text/generation_stream`.

A prompt goes in and text comes out: there are no roles, no tools and no reasoning in this language. A reply in the Chat form, which other
routes of the same host give, is read by that dialect.
"""

from __future__ import annotations

from typing import Literal

from bardo.catalog.rows import ProviderRow
from bardo.dialects.base import Dialect
from bardo.dialects.watsonx_text.decode_reply import Decoder
from bardo.dialects.watsonx_text.encode_reply import Encoder, encode_response
from bardo.dialects.watsonx_text.errors import decode_error, encode_error
from bardo.dialects.watsonx_text.requests import decode_request, encode_request
from bardo.dialects.watsonx_text.words import NAME
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival, WireRequest


class WatsonxText:
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


DIALECT: Dialect = WatsonxText()
