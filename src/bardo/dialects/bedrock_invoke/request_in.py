"""A client's InvokeModel request to a Request.

It is a request of the payload's language, and stays one: `dialect` names that language, so that its fields keep their meaning.
"""

from __future__ import annotations

import msgspec

from bardo.dialects import dialect
from bardo.dialects.bedrock_converse.wire import ADDITIONAL
from bardo.dialects.bedrock_invoke.payloads import payload_of_body
from bardo.dialects.bedrock_invoke.signatures import message_of_bedrock
from bardo.dialects.shared.json_values import JsonObject, decode_object, optional, required
from bardo.values.errors import InvalidRequest
from bardo.values.request import Request
from bardo.values.wire import OF_CLOUD, Arrival

_CONFIG = ("maxTokens", "temperature", "topP", "stopSequences")


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    fields = decode_object(body)
    model = arrival.model or required(fields, "model", str)
    payload = payload_of_body(fields, model)
    arrival = msgspec.structs.replace(arrival, model=model)
    if payload == "anthropic_messages":
        request = dialect(payload).decode_request(body, msgspec.structs.replace(arrival, endpoint=OF_CLOUD))
    else:
        fields = _converse(fields) if payload == "bedrock_converse" else {**fields, "model": model}
        request = dialect(payload).decode_request(_encode(fields), arrival)
    return msgspec.structs.replace(
        request,
        stream=request.stream if arrival.stream is None else arrival.stream,
        messages=tuple(message_of_bedrock(message) for message in request.messages),
    )


def _encode(fields: JsonObject) -> bytes:
    try:
        return msgspec.json.encode(fields)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _converse(fields: JsonObject) -> JsonObject:
    """Return Nova's body as Converse's: the model's own settings among the additional fields."""
    given = optional(fields, "inferenceConfig", dict) or {}
    config = {"maxTokens" if name == "max_new_tokens" else name: value for name, value in given.items()}
    own = {name: value for name, value in config.items() if name not in _CONFIG}
    additional: JsonObject = {}
    if "topK" in own:
        additional["inferenceConfig"] = {"topK": own.pop("topK")}
    additional |= own
    body = {name: value for name, value in fields.items() if name != "schemaVersion"}
    body["inferenceConfig"] = {name: config[name] for name in _CONFIG if name in config}
    return {**body, ADDITIONAL: additional}
