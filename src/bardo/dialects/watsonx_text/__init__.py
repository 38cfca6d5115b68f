"""IBM watsonx.ai's text generation: `POST /ml/v1/text/generation` and `/text/generation_stream`. No client speaks it.

A prompt goes in and text comes out: there are no roles, no tools and no reasoning in this language. A reply in the Chat form, which other
routes of the same host give, is read by that dialect.
"""

from __future__ import annotations

from bardo.dialects.shared.dialect import Dialect
from bardo.dialects.watsonx_text.reply_in import Decoder, decode_error
from bardo.dialects.watsonx_text.request_out import DECLARATION, encode_body, encode_control, request_path
from bardo.dialects.watsonx_text.wire import NAME

DIALECT = Dialect(
    name=NAME,
    stream_framing="sse",
    declaration=DECLARATION,
    request_path=request_path,
    encode_body=encode_body,
    encode_control=encode_control,
    open_decoder=Decoder,
    decode_error=decode_error,
)
