"""OpenAI's Responses dialect, which xAI, DeepSeek, OpenRouter, LM Studio, Bedrock and Copilot speak too.

A reply is a list of items: messages, reasoning, function calls, and what server tools did. Reasoning is readable as summary parts or as
full text, and is given back by its ciphertext.
"""

from __future__ import annotations

from bardo.dialects.openai_responses.errors import decode_error, encode_error
from bardo.dialects.openai_responses.functions import TOOL_SEARCHES, as_functions, own_tools_as_functions
from bardo.dialects.openai_responses.reply_in import CALLS, DetectedDialectReply, tells_call, with_broken_calls
from bardo.dialects.openai_responses.reply_out import ReplyWriter, encode_response
from bardo.dialects.openai_responses.request_in import decode_request
from bardo.dialects.openai_responses.request_out import DECLARATION, encode_body, encode_control, gives_refused_thinking
from bardo.dialects.openai_responses.usage import TOKEN_COUNT
from bardo.dialects.openai_responses.wire import FRAMING, NAME, SEARCHES, STATUSES, USUAL, WITHIN
from bardo.dialects.shared.content_forms import RESPONSES_PICTURES, annotations_form, openai_logprobs
from bardo.dialects.shared.declaration import ReplyDeclaration, limitations
from bardo.dialects.shared.dialect import Dialect

DIALECT = Dialect(
    name=NAME,
    history="input",
    over_budget_status=429,
    stream_framing="sse",
    decode_request=decode_request,
    as_functions=as_functions,
    marks_messages=frozenset({"cache_control"}),
    own_tools_as_functions=own_tools_as_functions,
    declaration=DECLARATION,
    request_path=lambda request: "responses",
    encode_body=encode_body,
    mends=gives_refused_thinking,
    encode_control=encode_control,
    reply=ReplyDeclaration(
        searches=SEARCHES,
        tool_searches=TOOL_SEARCHES,
        citations=annotations_form("annotations"),
        pictures=RESPONSES_PICTURES,
        logprobs=openai_logprobs("logprobs", "block"),
        expresses=frozenset(
            {
                "usage.reasoning_tokens",
                "usage.cached_input_tokens",
                "usage.cache_write_tokens",
                "finish.refusal",
                "finish.error",
                "refusal",
            }
        ),
        lacks={
            **limitations("the client's dialect has no word for it", "finish.pause", "finish.unknown", sent="stop"),
            **limitations("the client's dialect has no place for it", "finish.stop_sequence"),
            **limitations("the client's dialect holds one answer", "choices"),
        },
        finish_words=frozenset(STATUSES),
        counts=("input_tokens", "output_tokens", "reasoning_tokens"),
        framing=FRAMING,
        within=WITHIN,
        usual=USUAL,
        shared=frozenset({"service_tier"}),
    ),
    open_decoder=DetectedDialectReply,
    calls_in_frames=CALLS,
    tells_call=tells_call,
    with_broken_calls=with_broken_calls,
    open_encoder=lambda request, arrival: ReplyWriter(request),
    encode_response=encode_response,
    encode_error=encode_error,
    decode_error=decode_error,
    token_count=TOKEN_COUNT,
)
