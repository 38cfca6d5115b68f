"""Google's Interactions API: `POST /v1beta/interactions`, whole or streamed.

An interaction is a list of steps: what the user put in, thoughts (a signature, and summaries where they are asked for), the model's
output, and calls of tools with their results. Streams tell it step by step.
"""

from __future__ import annotations

from bardo.dialects.gemini_interactions.errors import decode_error, encode_error
from bardo.dialects.gemini_interactions.reply_in import Decoder
from bardo.dialects.gemini_interactions.reply_out import Encoder, encode_response
from bardo.dialects.gemini_interactions.request_in import decode_request, with_plain_choice
from bardo.dialects.gemini_interactions.request_out import DECLARATION, encode_body, encode_control
from bardo.dialects.gemini_interactions.wire import NAME, REASONS
from bardo.dialects.shared.content_forms import INTERACTIONS_PICTURES, annotations_form
from bardo.dialects.shared.declaration import ReplyDeclaration, limitations
from bardo.dialects.shared.dialect import Dialect

DIALECT = Dialect(
    model_pictures=True,
    name=NAME,
    over_budget_status=429,
    stream_framing="sse",
    decode_request=decode_request,
    as_functions=with_plain_choice,
    declaration=DECLARATION,
    request_path=lambda request: "interactions",
    encode_body=encode_body,
    encode_control=encode_control,
    reply=ReplyDeclaration(
        # Places count bytes (Google's SDK, types of the Interactions API).
        citations=annotations_form("annotations", in_bytes=True),
        pictures=INTERACTIONS_PICTURES,
        expresses=frozenset({"usage.reasoning_tokens", "usage.cached_input_tokens", "finish.error"}),
        lacks={
            **limitations("the client's dialect has no word for it", "finish.refusal", "finish.unknown", sent="stop"),
            **limitations("the client's dialect has no word for it", "finish.pause", sent="length"),
            **limitations(
                "the client's dialect has no place for it", "usage.cache_write_tokens", "finish.stop_sequence"
            ),
            **limitations("the client's dialect writes it as text", "refusal", sent="text"),
            **limitations("the client's dialect holds one answer", "choices"),
        },
        finish_words=frozenset(REASONS),
        # The answer is counted apart from the thinking, so of an unknown output the thinking is left.
        counts_instead={"output_tokens": "reasoning_tokens"},
        framing=frozenset({"updated"}),
        usual={"service_tier": ("standard",)},
    ),
    open_decoder=lambda row: Decoder(provider=row.id, excludes_reasoning=row.quirks.output_excludes_reasoning),
    open_encoder=lambda request, arrival: Encoder(request),
    encode_response=encode_response,
    encode_error=encode_error,
    decode_error=decode_error,
)
