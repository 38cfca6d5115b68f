"""OpenAI's Responses dialect, which xAI, DeepSeek, OpenRouter, LM Studio, Bedrock and Copilot speak too.

A reply is a list of items: messages, reasoning, function calls, and what server tools did. Reasoning is readable as summary parts or as
full text, and is given back by its ciphertext.
"""

from __future__ import annotations

from bardo.catalog.rows import ProviderRow
from bardo.dialects.base import Dialect, Framing, ReplyDecoder, ReplyEncoder
from bardo.dialects.openai_responses.decode_request import decode_request
from bardo.dialects.openai_responses.encode_reply import ReplyWriter
from bardo.dialects.openai_responses.encode_request import encode_request
from bardo.dialects.openai_responses.encode_whole import encode_response
from bardo.dialects.openai_responses.errors import decode_error, encode_error
from bardo.dialects.openai_responses.first_frame import EitherReply
from bardo.dialects.openai_responses.state import NAME
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival, WireRequest


class OpenAIResponses:
    """The dialect; see `Dialect` for what each method promises."""

    name = NAME
    stream_framing: Framing = "sse"

    def decode_request(self, body: bytes, arrival: Arrival) -> Request:
        return decode_request(body, arrival)

    def encode_request(self, request: Request, row: ProviderRow) -> WireRequest:
        return encode_request(request, row)

    def open_decoder(self, row: ProviderRow) -> ReplyDecoder:
        return EitherReply(row)

    def open_encoder(self, request: Request, arrival: Arrival) -> ReplyEncoder:
        return ReplyWriter(request)

    def encode_response(self, response: Response, request: Request) -> bytes:
        return encode_response(response, request)

    def encode_error(self, error: BardoError) -> bytes:
        return encode_error(error)

    def decode_error(self, status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
        return decode_error(status, body, headers, provider)


DIALECT: Dialect = OpenAIResponses()
