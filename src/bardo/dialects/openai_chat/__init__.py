"""OpenAI Chat Completions, and the many servers compatible with it."""

from __future__ import annotations

from bardo.catalog.rows import ProviderRow
from bardo.dialects.base import Framing
from bardo.dialects.openai_chat.decode_reply import ChatDecoder
from bardo.dialects.openai_chat.decode_request import decode_request
from bardo.dialects.openai_chat.encode_reply import ChatEncoder
from bardo.dialects.openai_chat.encode_request import encode_request
from bardo.dialects.openai_chat.encode_whole import encode_response
from bardo.dialects.openai_chat.errors import decode_error, encode_error
from bardo.dialects.openai_chat.words import NAME
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival, WireRequest


class OpenAIChat:
    """The dialect, in both directions."""

    name = NAME
    stream_framing: Framing = "sse"

    def decode_request(self, body: bytes, arrival: Arrival) -> Request:
        """Read a client's request."""
        return decode_request(body)

    def encode_request(self, request: Request, row: ProviderRow) -> WireRequest:
        """Write a request for one provider."""
        return encode_request(request, row)

    def open_decoder(self, row: ProviderRow) -> ChatDecoder:
        """Begin to read one reply."""
        return ChatDecoder(provider=row.id, beside=row.quirks.reasoning_beside_output)

    def open_encoder(self, request: Request, arrival: Arrival) -> ChatEncoder:
        """Begin to write one streamed reply."""
        return ChatEncoder(request)

    def encode_response(self, response: Response, request: Request) -> bytes:
        """Write one whole reply."""
        return encode_response(response)

    def encode_error(self, error: BardoError) -> bytes:
        """Write an error body."""
        return encode_error(error)

    def decode_error(self, status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
        """Read a provider's error answer."""
        return decode_error(status, body, headers, provider)


DIALECT = OpenAIChat()
