"""Cohere's v2 chat: `POST /v2/chat`."""

from __future__ import annotations

from bardo.dialects.cohere.errors import decode_error, encode_error
from bardo.dialects.cohere.operations import EMBEDDINGS, MODELS
from bardo.dialects.cohere.reply_in import CALLS, Decoder
from bardo.dialects.cohere.reply_out import Encoder, encode_response
from bardo.dialects.cohere.request_in import decode_request
from bardo.dialects.cohere.request_out import DECLARATION, encode_body, encode_control
from bardo.dialects.cohere.wire import NAME
from bardo.dialects.shared.content_forms import COHERE_LOGPROBS
from bardo.dialects.shared.declaration import ReplyDeclaration, limitations
from bardo.dialects.shared.dialect import Dialect

DIALECT = Dialect(
    name=NAME,
    model_field="",
    stream_framing="sse",
    decode_request=decode_request,
    declaration=DECLARATION,
    request_path=lambda request: "chat",
    encode_body=encode_body,
    encode_control=encode_control,
    reply=ReplyDeclaration(
        expresses=frozenset({"usage.reasoning_tokens", "usage.cached_input_tokens", "finish.error"}),
        lacks={
            **limitations(
                "the client's dialect has no word for it",
                "finish.refusal",
                "finish.pause",
                "finish.unknown",
                sent="stop",
            ),
            **limitations(
                "the client's dialect has no place for it", "usage.cache_write_tokens", "finish.stop_sequence"
            ),
            **limitations("the client's dialect writes it as text", "refusal", sent="text"),
            **limitations("the client's dialect holds one answer", "choices"),
        },
        logprobs=COHERE_LOGPROBS,
    ),
    open_decoder=Decoder,
    calls_in_frames=CALLS,
    open_encoder=lambda request, arrival: Encoder(request),
    encode_response=encode_response,
    encode_error=encode_error,
    decode_error=decode_error,
    embeddings=EMBEDDINGS,
    models=MODELS,
)
