"""Amazon Bedrock's Converse: `POST /model/{modelId}/converse` and `/converse-stream`, one language for all of its models.

Model and streaming stand in the path, so they come with the Arrival. Streams are AWS's binary event stream.
"""

from __future__ import annotations

from bardo.dialects.bedrock_converse.errors import decode_error, encode_error, error_headers
from bardo.dialects.bedrock_converse.reply_in import Decoder
from bardo.dialects.bedrock_converse.reply_out import Encoder, encode_response
from bardo.dialects.bedrock_converse.request_in import decode_request, with_markers
from bardo.dialects.bedrock_converse.request_out import DECLARATION, encode_body, encode_control, request_path
from bardo.dialects.bedrock_converse.usage import TOKEN_COUNT, time_fields
from bardo.dialects.bedrock_converse.wire import CITATIONS, MARKER, NAME, REASONS
from bardo.dialects.shared.declaration import ReplyDeclaration, limitations
from bardo.dialects.shared.dialect import Dialect

DIALECT = Dialect(
    name=NAME,
    over_budget_status=400,
    model_field="",
    marks_messages=frozenset({MARKER}),
    stream_framing="eventstream",
    decode_request=decode_request,
    declaration=DECLARATION,
    request_path=request_path,
    encode_body=encode_body,
    encode_control=encode_control,
    as_functions=with_markers,
    reply=ReplyDeclaration(
        citations=CITATIONS,
        expresses=frozenset(
            {
                "usage.cached_input_tokens",
                "usage.cache_write_tokens",
                "finish.refusal",
                "finish.error",
                "finish.stop_sequence",
            }
        ),
        lacks={
            **limitations("the client's dialect has no word for it", "finish.pause", "finish.unknown", sent="stop"),
            **limitations("the client's dialect writes it as text", "refusal", sent="text"),
            **limitations("the client's dialect has no place for it", "usage.reasoning_tokens"),
            **limitations("the client's dialect holds one answer", "choices"),
        },
        finish_words=frozenset(REASONS),
        counts=("input_tokens", "output_tokens"),
        counts_always=True,
        framing=frozenset({"metrics", "toolUse", "amazon-bedrock-invocationMetrics"}),
    ),
    open_decoder=Decoder,
    open_encoder=lambda request, arrival: Encoder(request),
    encode_response=encode_response,
    encode_error=encode_error,
    error_headers=error_headers,
    decode_error=decode_error,
    model_in_path=True,
    token_count=TOKEN_COUNT,
    time_fields=time_fields,
)
