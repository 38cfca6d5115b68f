"""OpenAI's Responses dialect, which xAI, DeepSeek, OpenRouter, LM Studio, Bedrock and Copilot speak too.

A reply is a list of items: messages, reasoning, function calls, and what server tools did. Reasoning is readable as summary parts or as
full text, and is given back by its ciphertext.
"""

from __future__ import annotations

from bardo.dialects.base import Dialect
from bardo.dialects.openai_responses.decode_request import decode_request
from bardo.dialects.openai_responses.encode_reply import ReplyWriter
from bardo.dialects.openai_responses.encode_request import encode_request
from bardo.dialects.openai_responses.encode_whole import encode_response
from bardo.dialects.openai_responses.errors import decode_error, encode_error
from bardo.dialects.openai_responses.first_frame import EitherReply
from bardo.dialects.openai_responses.state import NAME

DIALECT = Dialect(
    name=NAME,
    stream_framing="sse",
    decode_request=decode_request,
    encode_request=encode_request,
    open_decoder=EitherReply,
    open_encoder=lambda request, arrival: ReplyWriter(request),
    encode_response=encode_response,
    encode_error=encode_error,
    decode_error=decode_error,
)
