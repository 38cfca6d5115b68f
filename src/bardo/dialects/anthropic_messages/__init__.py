"""Anthropic's Messages API: `POST /v1/messages`."""

from __future__ import annotations

from bardo.dialects.anthropic_messages.errors import decode_error, encode_error
from bardo.dialects.anthropic_messages.operations import MODELS, TOKEN_COUNT
from bardo.dialects.anthropic_messages.reply_in import CALLS, Decoder
from bardo.dialects.anthropic_messages.reply_out import Encoder, encode_response
from bardo.dialects.anthropic_messages.request_in import decode_request
from bardo.dialects.anthropic_messages.request_out import (
    DECLARATION,
    encode_body,
    encode_control,
    has_blank_stop,
    has_blank_text,
    yields_to_calls,
)
from bardo.dialects.anthropic_messages.searches import CITATIONS, SEARCHES, TOOL_SEARCHES
from bardo.dialects.anthropic_messages.wire import NAME, REASONS
from bardo.dialects.shared.declaration import ReplyDeclaration, limitations
from bardo.dialects.shared.dialect import Dialect

DIALECT = Dialect(
    name=NAME,
    history="messages",
    stream_framing="sse",
    limit_prefix="anthropic-ratelimit-",
    decode_request=decode_request,
    declaration=DECLARATION,
    request_path=lambda request: "messages",
    encode_body=encode_body,
    encode_control=encode_control,
    mends=lambda request, row, facts: (
        has_blank_stop(request) or has_blank_text(facts.blocks) or yields_to_calls(request)
    ),
    reply=ReplyDeclaration(
        expresses=frozenset(
            {
                "usage.reasoning_tokens",
                "usage.cached_input_tokens",
                "usage.cache_write_tokens",
                "finish.refusal",
                "finish.pause",
                "finish.stop_sequence",
            }
        ),
        lacks={
            **limitations("the client's dialect has no word for it", "finish.error", "finish.unknown", sent="stop"),
            **limitations("the client's dialect writes it as text", "refusal", sent="text"),
            **limitations("the client's dialect holds one answer", "choices"),
        },
        citations=CITATIONS,
        searches=SEARCHES,
        tool_searches=TOOL_SEARCHES,
        # Anthropic's SDK, types/refusal_stop_details.py, 2026-11.
        refusal_words="stop_details.explanation",
        finish_words=frozenset(REASONS),
        counts=("input_tokens", "output_tokens"),
        counts_always=True,
        framing=frozenset({"amazon-bedrock-invocationMetrics"}),
        usual={"caller": ({"type": "direct"},)},
    ),
    open_decoder=Decoder,
    calls_in_frames=CALLS,
    open_encoder=lambda request, arrival: Encoder(request),
    encode_response=encode_response,
    encode_error=encode_error,
    decode_error=decode_error,
    search_results=True,
    starts_with_usage=True,
    token_count=TOKEN_COUNT,
    models=MODELS,
)
