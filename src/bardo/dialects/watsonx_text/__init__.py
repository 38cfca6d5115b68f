"""IBM watsonx.ai's text generation: `POST /ml/v1/text/generation` and `/text/generation_stream`.

A prompt goes in and text comes out: there are no roles, no tools and no reasoning in this language. A reply in the Chat form, which other
routes of the same host give, is read by that dialect.
"""

from __future__ import annotations

from bardo.dialects.base import Dialect
from bardo.dialects.watsonx_text.decode_reply import Decoder
from bardo.dialects.watsonx_text.encode_reply import Encoder, encode_response
from bardo.dialects.watsonx_text.errors import decode_error, encode_error
from bardo.dialects.watsonx_text.requests import decode_request, encode_request
from bardo.dialects.watsonx_text.words import NAME

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
