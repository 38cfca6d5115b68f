"""OpenAI Chat Completions, and the many servers compatible with it."""

from __future__ import annotations

from bardo.dialects.base import Dialect
from bardo.dialects.openai_chat.decode_reply import ChatDecoder
from bardo.dialects.openai_chat.decode_request import decode_request
from bardo.dialects.openai_chat.encode_reply import ChatEncoder
from bardo.dialects.openai_chat.encode_request import encode_request
from bardo.dialects.openai_chat.encode_whole import encode_response
from bardo.dialects.openai_chat.errors import decode_error, encode_error
from bardo.dialects.openai_chat.words import NAME

DIALECT = Dialect(
    name=NAME,
    stream_framing="sse",
    decode_request=lambda body, arrival: decode_request(body),
    encode_request=encode_request,
    open_decoder=lambda row: ChatDecoder(
        provider=row.id,
        beside=row.quirks.reasoning_beside_output,
        returns_details=row.quirks.replay == "reasoning_details",
    ),
    open_encoder=lambda request, arrival: ChatEncoder(request),
    encode_response=lambda response, request: encode_response(response),
    encode_error=encode_error,
    decode_error=decode_error,
)
