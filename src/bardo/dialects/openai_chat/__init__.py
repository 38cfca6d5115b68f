"""OpenAI Chat Completions, and the many servers compatible with it."""

from __future__ import annotations

from bardo.catalog.rows import ProviderRow
from bardo.dialects.openai_chat.errors import decode_error, encode_error
from bardo.dialects.openai_chat.operations import EMBEDDINGS, MODELS
from bardo.dialects.openai_chat.reply_in import ChatDecoder
from bardo.dialects.openai_chat.reply_out import ChatEncoder, encode_partial, encode_response
from bardo.dialects.openai_chat.request_in import decode_request, with_plain_choice
from bardo.dialects.openai_chat.request_out import DECLARATION, differs, encode_body, encode_control
from bardo.dialects.openai_chat.wire import FRAMING, NAME, USUAL, WITHIN
from bardo.dialects.shared.content_forms import CHAT_PICTURES, annotations_form, openai_logprobs
from bardo.dialects.shared.declaration import ReplyDeclaration, limitations
from bardo.dialects.shared.dialect import Dialect


def _open_decoder(row: ProviderRow) -> ChatDecoder:
    return ChatDecoder(
        provider=row.id,
        excludes_reasoning=row.quirks.output_excludes_reasoning,
        returns_details=row.quirks.replay == "reasoning_details",
    )


DIALECT = Dialect(
    name=NAME,
    history="messages",
    over_budget_status=429,
    stream_framing="sse",
    decode_request=lambda body, arrival: decode_request(body),
    declaration=DECLARATION,
    request_path=lambda request: "chat/completions",
    encode_body=encode_body,
    encode_control=encode_control,
    mends=differs,
    reply=ReplyDeclaration(
        refusal_field="message.refusal",
        citations=annotations_form("message.annotations", of_choice=True, nested=True),
        pictures=CHAT_PICTURES,
        logprobs=openai_logprobs("logprobs.content", "choice"),
        expresses=frozenset(
            {
                "usage.reasoning_tokens",
                "usage.cached_input_tokens",
                "usage.cache_write_tokens",
                "finish.refusal",
                "refusal",
                "choices",
            }
        ),
        lacks={
            **limitations(
                "the client's dialect has no word for it", "finish.pause", "finish.error", "finish.unknown", sent="stop"
            ),
            **limitations("the client's dialect has no place for it", "finish.stop_sequence"),
        },
        counts=("input_tokens", "output_tokens"),
        framing=FRAMING,
        within=WITHIN,
        usual=USUAL,
        shared=frozenset({"service_tier"}),
    ),
    as_functions=with_plain_choice,
    marks_messages=frozenset({"cache_control"}),
    open_decoder=_open_decoder,
    open_encoder=lambda request, arrival: ChatEncoder(request),
    encode_response=encode_response,
    encode_error=encode_error,
    encode_partial=encode_partial,
    decode_error=decode_error,
    usage_option=("stream_options", "include_usage"),
    embeddings=EMBEDDINGS,
    models=MODELS,
)
