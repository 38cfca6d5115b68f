"""Ollama's `POST /api/generate`: a prompt and its completion, given by whoever gives replies to a chat.

Its client's request is decoded as the chat it stands for, and its reply has the fields of a chat's message at its top.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.dialects.ollama import DIALECT as CHAT
from bardo.dialects.shared.dialect import ReplyEncoder
from bardo.dialects.shared.json_values import JsonObject, decode_object, encode_json, optional, write_json
from bardo.streams.json_frames import encode_ndjson
from bardo.values.degradation import Degradation
from bardo.values.errors import Unsupported
from bardo.values.events import Event
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival

_PROMPT = ("prompt", "system", "images", "suffix", "raw")
_TO_A_CHAT = "every provider is asked for a chat"
# What changes the completion, and has no place in a chat.
_REFUSED = {
    "template": f"the model's own template is used, since {_TO_A_CHAT}",
    "context": "bardo gives no context of tokens, and reads none",
    "width": "bardo makes no pictures",
    "height": "bardo makes no pictures",
    "steps": "bardo makes no pictures",
}

# Editors write a gap in the tokens of the model that they take it for, and ask `raw`: the tokens before the prefix, before the suffix,
# and where the gap's text is to come. Sources, read 2026-11: zed-industries/zed, crates/ollama; continuedev/continue,
# core/autocomplete/templating.
_GAPS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"),
    ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    ("<PRE> ", " <SUF>", " <MID>"),
    ("[PREFIX]", "[SUFFIX]", ""),
)
_FILL = (
    "You fill the gap at the cursor in a text. What stands before the cursor is between <prefix> and </prefix>, and what stands after it "
    "between <suffix> and </suffix>. Answer with the missing text alone: no explanation, no code fence, and nothing that is there."
)
"""The instruction for a model that has to fill in a text before a suffix."""


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Return the chat that a prompt stands for. Raises InvalidRequest naming the field, and Unsupported for what no chat can say."""
    fields = decode_object(body)
    if optional(fields, "raw", bool):
        fields = {**fields, **_gap_of(optional(fields, "prompt", str) or "")}
    for name, why in _REFUSED.items():
        if fields.get(name):
            raise Unsupported(f"{name} is not taken: {why}", hint="leave it out, or use /api/chat", param=name)
    chat = {name: value for name, value in fields.items() if name not in (*_PROMPT, *_REFUSED)}
    request = CHAT.decode_request(write_json({**chat, "messages": _messages(fields)}), arrival)
    if not (optional(fields, "suffix", str) or fields.get("raw")) or not request.messages:
        return request
    told = Degradation(
        "suffix", sent="a question to a chat", why=f"the model is asked to fill the gap, since {_TO_A_CHAT}"
    )
    return msgspec.structs.replace(request, degraded=(*request.degraded, told))


def _gap_of(prompt: str) -> JsonObject:
    """Return the prompt and the suffix that a raw prompt writes in the tokens of a model. Raises Unsupported where it has none."""
    for prefix, suffix, middle in _GAPS:
        before, begins, rest = prompt.partition(prefix)
        if not middle and begins and suffix in before:
            return {"prompt": rest, "suffix": before.replace(suffix, "", 1)}
        text, parts, after = rest.partition(suffix)
        if middle and begins and parts and after.endswith(middle):
            return {"prompt": before + text, "suffix": after.removesuffix(middle)}
    raise Unsupported(
        f"raw is not taken: the prompt goes through the model's own template, since {_TO_A_CHAT}",
        hint="leave it out, write a gap in the tokens of a model, or use /api/chat",
        param="raw",
    )


def _messages(fields: JsonObject) -> list[JsonObject]:
    """Return the messages of the chat, or none for an empty request, which loads a model."""
    prompt, images = optional(fields, "prompt", str) or "", optional(fields, "images", list) or []
    system, suffix = optional(fields, "system", str), optional(fields, "suffix", str)
    if not prompt and not images:
        return []
    if suffix or fields.get("raw"):
        system = f"{system}\n\n{_FILL}" if system else _FILL
        prompt = f"<prefix>{prompt}</prefix>\n<suffix>{suffix or ''}</suffix>"
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


DIALECT = msgspec.structs.replace(
    CHAT,
    name="ollama_generate",
    decode_request=decode_request,
    open_encoder=lambda request, arrival: Encoder(CHAT.open_encoder(request, arrival)),
    encode_response=encode_response,
    encode_partial=lambda value, start: encode_ndjson(as_completion(CHAT.encode_partial(value, start))),
)
