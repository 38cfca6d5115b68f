"""Anthropic's Messages API: `POST /v1/messages`."""

from __future__ import annotations

from bardo.dialects.anthropic_messages.decode_reply import Decoder
from bardo.dialects.anthropic_messages.decode_request import decode_request
from bardo.dialects.anthropic_messages.encode_reply import Encoder, encode_response
from bardo.dialects.anthropic_messages.encode_request import encode_request
from bardo.dialects.anthropic_messages.errors import decode_error, encode_error
from bardo.dialects.anthropic_messages.words import NAME
from bardo.dialects.base import Dialect

DIALECT = Dialect(
    name=NAME,
    stream_framing="sse",
    decode_request=decode_request,
    encode_request=encode_request,
    open_decoder=Decoder,
    open_encoder=lambda request, arrival: Encoder(request),
    encode_response=encode_response,
    encode_error=encode_error,
    decode_error=decode_error,
)
