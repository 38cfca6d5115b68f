"""Google's Interactions API: `POST /v1beta/interactions`, whole or streamed.

An interaction is a list of steps: what the user put in, thoughts (a signature, and summaries where they are asked for), the model's
output, and calls of tools with their results. Streams tell it step by step.
"""

from __future__ import annotations

from bardo.dialects.base import Dialect
from bardo.dialects.gemini_interactions.decode_reply import Decoder
from bardo.dialects.gemini_interactions.decode_request import decode_request
from bardo.dialects.gemini_interactions.encode_reply import Encoder
from bardo.dialects.gemini_interactions.encode_request import encode_request
from bardo.dialects.gemini_interactions.encode_whole import encode_response
from bardo.dialects.gemini_interactions.errors import decode_error, encode_error
from bardo.dialects.gemini_interactions.words import NAME

DIALECT = Dialect(
    name=NAME,
    stream_framing="sse",
    decode_request=decode_request,
    encode_request=encode_request,
    open_decoder=lambda row: Decoder(provider=row.id, beside=row.quirks.reasoning_beside_output),
    open_encoder=lambda request, arrival: Encoder(request),
    encode_response=encode_response,
    encode_error=encode_error,
    decode_error=decode_error,
)
