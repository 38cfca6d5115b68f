"""Ollama's own chat API: `POST /api/chat`, streamed as JSON lines."""

from __future__ import annotations

from bardo.dialects.ollama.errors import decode_error, encode_error
from bardo.dialects.ollama.operations import EMBEDDINGS, MODELS
from bardo.dialects.ollama.reply_in import Decoder, without_calls
from bardo.dialects.ollama.reply_out import Encoder, encode_partial, encode_response
from bardo.dialects.ollama.request_in import decode_request
from bardo.dialects.ollama.request_out import DECLARATION, encode_body, encode_control
from bardo.dialects.ollama.usage import time_fields
from bardo.dialects.ollama.wire import NAME, REASONS
from bardo.dialects.shared.content_forms import openai_logprobs
from bardo.dialects.shared.declaration import ReplyDeclaration, limitations
from bardo.dialects.shared.dialect import Dialect

DIALECT = Dialect(
    model_pictures=True,
    name=NAME,
    stream_framing="ndjson",
    decode_request=decode_request,
    declaration=DECLARATION,
    request_path=lambda request: "chat",
    encode_body=encode_body,
    encode_control=encode_control,
    reply=ReplyDeclaration(
        logprobs=openai_logprobs("logprobs", "reply"),
        expresses=frozenset({}),
        lacks={
            **limitations(
                "the client's dialect has no word for it",
                "finish.refusal",
                "finish.pause",
                "finish.error",
                "finish.unknown",
                sent="stop",
            ),
            **limitations(
                "the client's dialect has no place for it",
                "usage.reasoning_tokens",
                "usage.cached_input_tokens",
                "usage.cache_write_tokens",
                "finish.stop_sequence",
            ),
            **limitations("the client's dialect writes it as text", "refusal", sent="text"),
            **limitations("the client's dialect holds one answer", "choices"),
        },
        finish_words=frozenset(REASONS),
        framing=frozenset({"function", "id", "created_at"}),
    ),
    open_decoder=Decoder,
    open_encoder=lambda request, arrival: Encoder(request),
    encode_response=encode_response,
    encode_error=encode_error,
    encode_partial=encode_partial,
    decode_error=decode_error,
    embeddings=EMBEDDINGS,
    models=MODELS,
    omits_call_ids=True,
    without_calls=without_calls,
    time_fields=time_fields,
)
