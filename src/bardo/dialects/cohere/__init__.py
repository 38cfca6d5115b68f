"""Cohere's v2 chat: `POST /v2/chat`."""

from __future__ import annotations

from bardo.dialects.base import Dialect
from bardo.dialects.cohere.decode_reply import Decoder
from bardo.dialects.cohere.decode_request import decode_request
from bardo.dialects.cohere.encode_reply import Encoder
from bardo.dialects.cohere.encode_request import encode_request
from bardo.dialects.cohere.encode_whole import encode_response
from bardo.dialects.cohere.errors import decode_error, encode_error
from bardo.dialects.cohere.words import NAME

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
