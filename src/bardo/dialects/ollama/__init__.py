"""Ollama's own chat API: `POST /api/chat`, streamed as JSON lines."""

from __future__ import annotations

from bardo.dialects.base import Dialect
from bardo.dialects.ollama.decode_reply import Decoder
from bardo.dialects.ollama.decode_request import decode_request
from bardo.dialects.ollama.encode_reply import Encoder
from bardo.dialects.ollama.encode_request import encode_request
from bardo.dialects.ollama.encode_whole import encode_response
from bardo.dialects.ollama.errors import decode_error, encode_error
from bardo.dialects.ollama.words import NAME

DIALECT = Dialect(
    name=NAME,
    stream_framing="ndjson",
    decode_request=decode_request,
    encode_request=encode_request,
    open_decoder=Decoder,
    open_encoder=lambda request, arrival: Encoder(request),
    encode_response=encode_response,
    encode_error=encode_error,
    decode_error=decode_error,
    omits_call_ids=True,
)
