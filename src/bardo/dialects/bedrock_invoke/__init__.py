"""Amazon Bedrock's InvokeModel: `POST /model/{modelId}/invoke` and `/invoke-with-response-stream`.

Bedrock only wraps what the model's family speaks: Anthropic Messages for Claude, Chat Completions for gpt-oss, Qwen and most others, and
nearly Converse for Nova. This dialect wraps and unwraps, and the dialects of those payloads do the rest.
"""

from __future__ import annotations

from bardo.dialects.bedrock_converse import DIALECT as CONVERSE
from bardo.dialects.bedrock_converse.errors import decode_error, encode_error, error_headers
from bardo.dialects.bedrock_invoke.operations import EMBEDDINGS, MODELS, TOKEN_COUNT
from bardo.dialects.bedrock_invoke.reply_in import Decoder
from bardo.dialects.bedrock_invoke.reply_out import Encoder, encode_response
from bardo.dialects.bedrock_invoke.request_in import decode_request
from bardo.dialects.bedrock_invoke.request_out import encode_body, encode_control, payload_dialect, request_path
from bardo.dialects.bedrock_invoke.wire import NAME
from bardo.dialects.shared.dialect import Dialect

DIALECT = Dialect(
    name=NAME,
    over_budget_status=400,
    model_field="",
    stream_framing="eventstream",
    decode_request=decode_request,
    declaration=CONVERSE.declaration,
    request_path=request_path,
    encode_body=encode_body,
    encode_control=encode_control,
    wraps=payload_dialect,
    reply=CONVERSE.reply,
    open_decoder=Decoder,
    open_encoder=Encoder,
    encode_response=encode_response,
    encode_error=encode_error,
    error_headers=error_headers,
    decode_error=decode_error,
    model_in_path=True,
    embeddings=EMBEDDINGS,
    token_count=TOKEN_COUNT,
    models=MODELS,
)
