"""Gemini's generateContent, read and written in both directions.

Clients post to `/v1beta/models/{model}:generateContent` or `:streamGenerateContent`, so model and streaming come with the
Arrival. Every chunk of a stream is a whole GenerateContentResponse, and the encoder puts bardo's own fields in the last one.
"""

from __future__ import annotations

from bardo.dialects.base import Dialect
from bardo.dialects.gemini import decode_request as requests_in
from bardo.dialects.gemini import encode_reply as replies_out
from bardo.dialects.gemini import encode_request as requests_out
from bardo.dialects.gemini import errors
from bardo.dialects.gemini.decode_reply import GeminiDecoder
from bardo.dialects.gemini.stream_reply import GeminiEncoder
from bardo.dialects.gemini.words import NAME

DIALECT = Dialect(
    name=NAME,
    stream_framing="sse",
    decode_request=requests_in.decode_request,
    encode_request=requests_out.encode_request,
    open_decoder=lambda row: GeminiDecoder(provider=row.id, beside=row.quirks.reasoning_beside_output),
    open_encoder=lambda request, arrival: GeminiEncoder(arrival.framing),
    encode_response=lambda response, request: replies_out.encode_response(response),
    encode_error=errors.encode_error,
    decode_error=errors.decode_error,
    omits_call_ids=True,
)
