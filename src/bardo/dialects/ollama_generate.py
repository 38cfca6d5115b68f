"""Ollama's `POST /api/generate`: a prompt and its completion, given by whoever gives replies to a chat.

Its client's request is decoded as the chat it stands for, and its reply has the fields of a chat's message at its top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from bardo.dialects.ollama import DIALECT as CHAT
from bardo.dialects.shared.dialect import ReplyEncoder
from bardo.dialects.shared.json_values import JsonObject, decode_object, encode_json, optional, write_json
from bardo.streams.ndjson import encode_ndjson
from bardo.values.degradation import Degradation
from bardo.values.errors import Unsupported
from bardo.values.events import Event
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival

_PROMPT = ("prompt", "system", "images", "suffix")
_TO_A_CHAT = "every provider is asked for a chat"
# What changes the completion, and has no place in a chat.
_REFUSED = {
    "raw": f"the prompt goes through the model's own template, since {_TO_A_CHAT}",
    "template": f"the model's own template is used, since {_TO_A_CHAT}",
    "context": "bardo gives no context of tokens, and reads none",
    "width": "bardo makes no pictures",
    "height": "bardo makes no pictures",
    "steps": "bardo makes no pictures",
}

_FILL = (
    "You fill the gap at the cursor in a text. What stands before the cursor is between <prefix> and </prefix>, and what stands after it "
    "between <suffix> and </suffix>. Answer with the missing text alone: no explanation, no code fence, and nothing that is there."
)
"""What a model is told that has to fill in a text before a suffix."""


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Return the chat that a prompt stands for. Raises InvalidRequest naming the field, and Unsupported for what no chat can say."""
    fields = decode_object(body)
    for name, why in _REFUSED.items():
        if fields.get(name):
            raise Unsupported(f"{name} is not taken: {why}", hint="leave it out, or use /api/chat", param=name)
    chat = {name: value for name, value in fields.items() if name not in (*_PROMPT, *_REFUSED)}
    request = CHAT.decode_request(write_json({**chat, "messages": _messages(fields)}), arrival)
    suffix = optional(fields, "suffix", str)
    if not suffix or not request.messages:
        return request
    told = Degradation(
        "suffix", sent="a question to a chat", why=f"the model is asked to fill the gap, since {_TO_A_CHAT}"
    )
    return msgspec.structs.replace(request, degraded=(*request.degraded, told))


def _messages(fields: JsonObject) -> list[JsonObject]:
    """Return the messages of the chat; none where nothing is asked, which loads a model."""
    prompt, images = optional(fields, "prompt", str) or "", optional(fields, "images", list) or []
    system, suffix = optional(fields, "system", str), optional(fields, "suffix", str)
    if not prompt and not images:
        return []
    if suffix:
        system = f"{system}\n\n{_FILL}" if system else _FILL
        prompt = f"<prefix>{prompt}</prefix>\n<suffix>{suffix}</suffix>"
    asked = {"role": "user", "content": prompt, **({"images": images} if images else {})}
    return [{"role": "system", "content": system}, asked] if system else [asked]


class Encoder:
    """Encode one streamed reply: the lines of a chat's reply, each with its message at the top."""

    def __init__(self, chat: ReplyEncoder) -> None:
        self._chat = chat
        self.content_type = chat.content_type
        self.keep_alive = chat.keep_alive

    def feed(self, item: Event) -> Sequence[bytes]:
        """Return the lines the event makes."""
        return [encode_ndjson(as_completion(line)) for line in self._chat.feed(item)]

    def finish(self) -> Sequence[bytes]:
        """Return the last lines."""
        return [encode_ndjson(as_completion(line)) for line in self._chat.finish()]


def as_completion(line: bytes) -> bytes:
    """Return a line of a chat's reply, or a whole one, as a completion has it; an error stays as it is."""
    fields = msgspec.json.decode(line)
    message = fields.pop("message", None)
    if message is None:
        return encode_json(fields)
    head = {name: fields.pop(name) for name in ("model", "created_at") if name in fields}
    message.pop("role", None)
    return encode_json({**head, "response": message.pop("content", ""), **message, **fields})


def encode_response(response: Response, request: Request) -> bytes:
    """Encode one whole reply."""
    return as_completion(CHAT.encode_response(response, request))


DIALECT = replace(
    CHAT,
    name="ollama_generate",
    decode_request=decode_request,
    open_encoder=lambda request, arrival: Encoder(CHAT.open_encoder(request, arrival)),
    encode_response=encode_response,
    encode_partial=lambda value, start: encode_ndjson(as_completion(CHAT.encode_partial(value, start))),
)
