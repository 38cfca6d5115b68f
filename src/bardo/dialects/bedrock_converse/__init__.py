"""Amazon Bedrock's Converse: `POST /model/{modelId}/converse` and `/converse-stream`, one language for all of its models.

Model and streaming stand in the path, so they come with the Arrival. Streams are AWS's binary event stream.
"""

from __future__ import annotations

from bardo.dialects.base import Dialect
from bardo.dialects.bedrock_converse.decode_reply import Decoder
from bardo.dialects.bedrock_converse.decode_request import decode_request
from bardo.dialects.bedrock_converse.encode_reply import Encoder
from bardo.dialects.bedrock_converse.encode_request import encode_request
from bardo.dialects.bedrock_converse.encode_whole import encode_response
from bardo.dialects.bedrock_converse.errors import decode_error, encode_error
from bardo.dialects.bedrock_converse.words import NAME

DIALECT = Dialect(
    name=NAME,
    stream_framing="eventstream",
    decode_request=decode_request,
    encode_request=encode_request,
    open_decoder=Decoder,
    open_encoder=lambda request, arrival: Encoder(request),
    encode_response=encode_response,
    encode_error=encode_error,
    decode_error=decode_error,
)
