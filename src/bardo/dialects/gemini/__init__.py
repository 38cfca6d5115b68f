"""Gemini's generateContent, read and written in both directions.

Clients post to `/v1beta/models/{model}:generateContent` or `:streamGenerateContent`, so model and streaming come with the
Arrival. Every chunk of a stream is a whole GenerateContentResponse, and the encoder puts bardo's own fields in the last one.
"""

from __future__ import annotations

from bardo.catalog.request_shapes import shape_at
from bardo.dialects.gemini import errors
from bardo.dialects.gemini import request_in as requests_in
from bardo.dialects.gemini import request_out as requests_out
from bardo.dialects.gemini.operations import EMBEDDINGS, MODELS, TOKEN_COUNT, encode_partial
from bardo.dialects.gemini.reply_in import GeminiDecoder, without_calls
from bardo.dialects.gemini.reply_out import GeminiEncoder, encode_response
from bardo.dialects.gemini.request_out import has_stray_references
from bardo.dialects.gemini.wire import CITATIONS, NAME, REASONS
from bardo.dialects.shared.content_forms import GEMINI_LOGPROBS, GEMINI_PICTURES
from bardo.dialects.shared.declaration import ReplyDeclaration, limitations
from bardo.dialects.shared.dialect import Dialect

DIALECT = Dialect(
    model_pictures=True,
    name=NAME,
    history="contents",
    over_budget_status=429,
    model_field="modelVersion",
    stream_framing="sse",
    decode_request=requests_in.decode_request,
    as_functions=requests_in.with_plain_choice,
    mends=lambda request, row, facts: (
        has_stray_references((request.body or {}).get("contents"))
        or requests_out.lacks_signatures(request)
        or bool(requests_out.untaken_words(request, shape_at(row, request.model).schema_fields))
    ),
    declaration=requests_out.DECLARATION,
    request_path=requests_out.request_path,
    encode_body=requests_out.encode_body,
    encode_control=requests_out.encode_control,
    reply=ReplyDeclaration(
        expresses=frozenset(
            {"usage.reasoning_tokens", "usage.cached_input_tokens", "finish.refusal", "finish.unknown", "choices"}
        ),
        lacks={
            **limitations("the client's dialect has no word for it", "finish.pause", "finish.error", sent="unknown"),
            **limitations(
                "the client's dialect has no place for it", "usage.cache_write_tokens", "finish.stop_sequence"
            ),
            **limitations("the client's dialect writes it as text", "refusal", sent="text"),
        },
        logprobs=GEMINI_LOGPROBS,
        citations=CITATIONS,
        pictures=GEMINI_PICTURES,
        finish_words=frozenset(REASONS),
        # The answer is counted apart from the thinking, so of an unknown output the thinking is left.
        counts_instead={"output_tokens": "reasoning_tokens"},
        framing=frozenset({"functionCall", "functionResponse", "createTime"}),
    ),
    open_decoder=lambda row: GeminiDecoder(provider=row.id, excludes_reasoning=row.quirks.output_excludes_reasoning),
    without_calls=without_calls,
    open_encoder=lambda request, arrival: GeminiEncoder(arrival.framing),
    encode_response=lambda response, request: encode_response(response),
    encode_error=errors.encode_error,
    encode_partial=encode_partial,
    decode_error=errors.decode_error,
    embeddings=EMBEDDINGS,
    token_count=TOKEN_COUNT,
    models=MODELS,
    omits_call_ids=True,
    model_in_path=True,
)
