"""Encode a reply as an Anthropic message: as the frames of a stream, or collected into one whole message by the same writers.

`message_start` waits for the first block, so that usage and fields known by then can stand in it. Stop reason, totals and bardo's own
`bardo` object close the reply in `message_delta`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bardo.dialects.anthropic_messages.errors import error_object
from bardo.dialects.anthropic_messages.usage import encode_usage
from bardo.dialects.anthropic_messages.wire import NAME, REASONS, SIGNED_BLOCKS
from bardo.dialects.shared.blocks import BlockWriter, Kind
from bardo.dialects.shared.json_values import JsonObject, JsonValue, encode_json, input_of
from bardo.dialects.shared.serial_encoder import SerialEncoder, write_response
from bardo.dialects.shared.states import NEXT
from bardo.streams.sse import encode_sse
from bardo.values.blocks import ToolCallBlock
from bardo.values.errors import BardoError
from bardo.values.events import Event, Finish, FinishReason
from bardo.values.request import Request
from bardo.values.response import Response

_EMPTY: dict[Kind, JsonObject] = {
    "text": {"type": "text", "text": ""},
    "thinking": SIGNED_BLOCKS.thinking("", ""),
    "tool_call": {"type": "tool_use", "id": "", "name": "", "input": {}},
}
_OWN_FIELDS = {empty["type"]: frozenset(empty) for empty in _EMPTY.values()}
"""The fields of each kind of block: a provider's field of the same name may not stand there."""
_PIECES: dict[Kind, tuple[str, str]] = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_call": ("input_json_delta", "partial_json"),
}
_DELTA_END = b"}}\n\n"
_TELLING = ("type", "delta", "content", "error")
"""Fields by which readers tell what a frame is."""


def _with_added(own: JsonObject, added: JsonObject) -> JsonObject:
    """Return a frame's own fields and those that a provider added, but for such that would make another frame of it."""
    return own | {name: value for name, value in added.items() if name not in own and name not in _TELLING}


class MessageFrames:
    """The frames in order, and the index of the next block."""

    streamed = True

    def __init__(self) -> None:
        self.index = 0
        self._out: list[bytes] = []

    def take(self) -> list[bytes]:
        """Return the frames written since the last time."""
        out, self._out = self._out, []
        return out

    def write(self, kind: str, fields: JsonObject) -> None:
        """Write one event, named as the real API names them."""
        self._out.append(encode_sse(encode_json({"type": kind, **fields}), kind))

    def piece(self, block: MessageBlockWriter, text: str) -> None:
        """Write a piece of text or of arguments of the block that is open."""
        self._out.append(block.frame(text))

    def delta(self, fields: JsonObject) -> None:
        """Write a piece of the block that is open."""
        self.write("content_block_delta", {"index": self.index, "delta": fields})

    def start(self, block: JsonObject) -> None:
        """Begin a block."""
        self.write("content_block_start", {"index": self.index, "content_block": block})

    def stop(self, fields: JsonObject) -> None:
        """End the open block; fields that came too late for its start go along."""
        self.write("content_block_stop", _with_added({"index": self.index}, fields))
        self.index += 1

    def put_before_text(self, block: JsonValue) -> bool:
        """Return False: written blocks stay where they are."""
        return False

    def write_block(self, block: JsonObject) -> None:
        """Write a block that is complete. The input of a tool goes in a delta, where clients look for it."""
        given = block.get("input")
        if str(block.get("type")).endswith("tool_use") and isinstance(given, dict) and given:
            self.start({**block, "input": {}})
            self.delta({"type": "input_json_delta", "partial_json": encode_json(given).decode()})
        else:
            self.start(block)
        self.stop({})


class MessageCollector(MessageFrames):
    """Collect one whole message, as a client would. `message` is complete after the encoder's end."""

    streamed = False

    def __init__(self) -> None:
        super().__init__()
        self.message: JsonObject = {}
        self._block: JsonObject = {}
        self._pieces: list[str] = []

    def write(self, kind: str, fields: JsonObject) -> None:
        """Take the start of the message, or its end."""
        if kind == "message_start":
            self.message = fields["message"]
        elif kind == "message_delta":
            self.message |= fields.pop("delta") | fields

    def piece(self, block: MessageBlockWriter, text: str) -> None:
        """Take a piece of text or of arguments."""
        self._pieces.append(text)

    def start(self, block: JsonObject) -> None:
        """Begin a block."""
        self._block, self._pieces = dict(block), []

    def delta(self, fields: JsonObject) -> None:
        """Add fields to the block: citations to their list, a signature and an estimate in their place."""
        kind = fields["type"]
        if kind == "citations_delta":
            self._block.setdefault("citations", []).append(fields["citation"])
        elif kind == "signature_delta":
            self._block["signature"] = fields["signature"]
        elif kind == "thinking_delta":
            self._block["estimated_tokens"] = fields["estimated_tokens"]
        else:
            self._block.setdefault(kind, []).append({name: value for name, value in fields.items() if name != "type"})

    def stop(self, fields: JsonObject) -> None:
        """End the block."""
        text = "".join(self._pieces)
        match self._block["type"]:
            case "tool_use":
                self._block["input"] = input_of(text)
            case "thinking" | "text" as field:
                self._block[field] = text
        own = _OWN_FIELDS[self._block["type"]]
        self.write_block(self._block | {name: value for name, value in fields.items() if name not in own})

    def put_before_text(self, block: JsonValue) -> bool:
        """Put a block before the last one, if that is text."""
        content = self.message["content"]
        if not content or content[-1].get("type") != "text":
            return False
        content.insert(-1, block)
        return True

    def write_block(self, block: JsonValue) -> None:
        """Add a block that is complete."""
        self.message["content"].append(block)

    def text(self, text: str) -> None:
        """Add a text."""
        self.write_block({**_EMPTY["text"], "text": text})

    def thinking(self, parts: Iterable[str]) -> None:
        """Add thinking."""
        self.write_block(SIGNED_BLOCKS.thinking("\n\n".join(parts), ""))

    def call(self, call: ToolCallBlock) -> None:
        """Add a tool call."""
        self.write_block({**_EMPTY["tool_call"], "id": call.id, "name": call.name, "input": input_of(call.arguments)})


class MessageBlockWriter(BlockWriter):
    """Write one block. Its start is written with its first piece, so that fields which follow at once can stand in it.

    The opaque state of thinking becomes its signature when the block ends. Hidden thinking without opaque state is not written at all.
    """

    __slots__ = ("_frames", "_header", "_late", "_prefix")

    def __init__(self, number: int, kind: Kind, frames: MessageFrames, *, hidden: bool = False) -> None:
        super().__init__(number, kind, hidden=hidden)
        self._frames = frames
        self._header = dict(_EMPTY[kind])
        self._prefix = b""
        self._late: JsonObject = {}

    @property
    def owner(self) -> str:
        """The id of a tool call, "" for any other block."""
        return str(self._header["id"]) if self.kind == "tool_call" else ""

    def frame(self, text: str) -> bytes:
        """Return the frame of one further piece of text."""
        return self._prefix + encode_json(text) + _DELTA_END

    def piece(self, text: str) -> None:
        """Write a piece of text or of arguments. A text begins with its first character, because its state stands before it."""
        if not text and self.kind == "text":
            return
        self._begin()
        self._frames.piece(self, text)

    def name_call(self, call_id: str, name: str) -> None:
        """Take the id and the name of a tool call, until its start is written."""
        if not self.begun:
            self._header |= {"id": call_id or self._header["id"], "name": name or self._header["name"]}

    def add_fields(self, fields: JsonObject) -> None:
        """Write the dialect's own fields: citations and deltas as they are, others in the start or else the stop."""
        for name, value in fields.items():
            if name == "citations" and isinstance(value, list) and self.kind == "text":
                self._cite(value)
            elif name.endswith("_delta") and isinstance(value, list):
                self._begin()
                for item in value:
                    given = item if isinstance(item, dict) else {"value": item}
                    self._frames.delta({"type": name} | given | {"type": name})
            elif name == "estimated_tokens" and self.kind == "thinking":
                self._begin()
                self._frames.delta({"type": "thinking_delta", "thinking": "", "estimated_tokens": value})
            elif self.begun or name in _EMPTY[self.kind]:
                self._late[name] = value
            else:
                self._header[name] = value

    def abandon(self) -> None:
        """Leave the block without an end."""
        if self.begun:
            self._frames.index += 1

    def end(self) -> None:
        """Write the rest of the block, and the blocks its opaque state needs."""
        if self.kind == "thinking":
            self._end_thinking()
            return
        if self.kind == "text" and self.states and not self.begun and self._header == _EMPTY["text"]:
            return
        self._begin()
        self._frames.stop(self._late)
        if self.states and self.kind == "tool_call":
            self._frames.write_block(SIGNED_BLOCKS.carrier(self.states.states(), self.owner))

    def _begin(self) -> None:
        if self.begun:
            return
        if self.kind == "text" and self.states:
            self._frames.write_block(SIGNED_BLOCKS.carrier(self.states.take(), NEXT))
        self.begun, self.repeats = True, self._frames.streamed and not self.hidden
        self._frames.start(self._header)
        kind, name = _PIECES[self.kind]
        head = f'{{"type":"content_block_delta","index":{self._frames.index},"delta":{{"type":"{kind}","{name}":'
        self._prefix = b"event: content_block_delta\ndata: " + head.encode()

    def _cite(self, citations: list[JsonValue]) -> None:
        if not self.begun:
            self._header["citations"] = []
        if citations:
            self._begin()
        for citation in citations:
            self._frames.delta({"type": "citations_delta", "citation": citation})

    def _end_thinking(self) -> None:
        if self.hidden and not self.states:
            return
        signed = SIGNED_BLOCKS.sign(self.states.states())
        behind = signed.behind
        if signed.only_behind and not self.begun:
            added = {name: value for name, value in self._header.items() if name not in _EMPTY["thinking"]}
            behind = ({**behind[0], **added}, *behind[1:])
        else:
            self._begin()
            if signed.signature:
                self._frames.delta({"type": "signature_delta", "signature": signed.signature})
            self._frames.stop(self._late)
        for block in behind:
            self._frames.write_block(block)


_STOP_REASONS: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "refusal",
    "pause": "pause_turn",
}
# Where these stand in `message_delta`, clients overwrite what `message_start` said of them.
_AT_STOP = ("stop_reason", "container", "stop_details")


class Encoder(SerialEncoder[MessageBlockWriter, MessageFrames]):
    """Encode one streamed reply."""

    name = NAME
    signed_blocks = SIGNED_BLOCKS
    content_type = "text/event-stream"
    keep_alive = encode_sse(b'{"type": "ping"}', "ping")

    def __init__(self, request: Request, frames: MessageFrames | None = None) -> None:
        super().__init__(request, frames or MessageFrames())

    def put_before_text(self, block: JsonObject) -> bool:
        """Put a block before the last one of a whole reply; False where that is no text."""
        return self.frames.put_before_text(block)

    def open_block(self, number: int, kind: Kind) -> MessageBlockWriter:
        """Return the writer of a new block."""
        return MessageBlockWriter(number, kind, self.frames, hidden=self.hides_thinking and kind == "thinking")

    def take_value(self, item: Event) -> None:
        """Keep what an event says of the reply as a whole. A count of the prompt that was told stays where none follows."""
        told = self.usage.input_tokens
        super().take_value(item)
        if self.usage.input_tokens is None and told is not None:
            self.usage = msgspec.structs.replace(self.usage, input_tokens=told)

    def write_start(self) -> None:
        """Write `message_start`."""
        message: JsonObject = {
            "id": self.start.id,
            "type": "message",
            "role": "assistant",
            "model": self.start.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            # The end of a whole message takes this place.
            "usage": encode_usage(self.usage) if self.frames.streamed else None,
        }
        for name in [name for name in self.fields.fields if name not in _AT_STOP]:
            message.setdefault(name, self.fields.pop(name))
        self.frames.write("message_start", {"message": message})

    def write_end(self, *, calls: bool) -> None:
        """Write `message_delta` and `message_stop`."""
        fields = dict(self.fields.fields)
        # The stop fields: the provider's own word where it is one of this dialect.
        #
        # Clients run their tools only on `tool_use`, and some providers call a tool and say that they just stopped.
        finish = self.finish_event or Finish("unknown")
        word: str = finish.raw
        if word not in REASONS:
            word = _STOP_REASONS.get(finish.reason, "end_turn")
            if word == "end_turn":
                word = "tool_use" if calls else "end_turn" if finish.stop_sequence is None else "stop_sequence"
        delta = {"stop_reason": word, "stop_sequence": finish.stop_sequence}
        if fields:
            delta |= {name: fields.pop(name) for name in _AT_STOP if name in fields}
        if self.extension:
            fields["bardo"] = self.extension
        own = {"delta": delta, "usage": encode_usage(self.usage)}
        self.frames.write("message_delta", _with_added(own, fields))
        self.frames.write("message_stop", {})

    def write_error(self, error: BardoError) -> None:
        """Write the `error` event."""
        own = {"bardo": self.extension} if self.extension else {}
        self.frames.write("error", {"error": error_object(error)["error"], **own})


def encode_response(response: Response, request: Request) -> bytes:
    """Encode one whole reply. The dialect has one choice, so alternatives are left out."""
    collector = MessageCollector()
    write_response(Encoder(request, collector), response, wraps="tool_use.input")
    return encode_json(collector.message)
