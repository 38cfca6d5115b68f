"""Encode a reply for Converse's clients, streamed as events or whole.

`messageStop` and `metadata` close the reply; bardo's own `bardo` object stands in `metadata`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bardo.catalog.fragments import merge_fields
from bardo.dialects.bedrock_converse.errors import exception_of
from bardo.dialects.bedrock_converse.usage import encode_usage
from bardo.dialects.bedrock_converse.wire import (
    FIELD,
    NAME,
    REASONS,
    SIGNED_BLOCKS,
    THOUGHT,
    text_block,
    unknown_fields,
)
from bardo.dialects.shared.blocks import BlockWriter, Kind
from bardo.dialects.shared.json_values import JsonObject, encode_json, input_of
from bardo.dialects.shared.serial_encoder import SerialEncoder, write_response
from bardo.dialects.shared.states import NEXT
from bardo.streams.eventstream import CONTENT_TYPE, encode_headers, encode_message
from bardo.values.blocks import ToolCallBlock
from bardo.values.errors import BardoError
from bardo.values.events import Finish, FinishReason, ReplyStart
from bardo.values.request import Request
from bardo.values.response import Response

_PIECES: dict[Kind, tuple[str, bytes]] = {
    "text": ('"text":', b"}}"),
    "thinking": (f'"{FIELD}":{{"text":', b"}}}"),
    "tool_call": ('"toolUse":{"input":', b"}}}"),
}

_TEXTS = frozenset({"text", "citationsContent"})


def _headers(name: str, message_type: str = "event") -> bytes:
    type_header = f":{message_type}-type"
    return encode_headers({type_header: name, ":content-type": "application/json", ":message-type": message_type})


_DELTA = _headers("contentBlockDelta")


class ConverseFrames:
    """The messages in order, and the index of the next block."""

    streamed = True

    def __init__(self) -> None:
        self.index = 0
        self.out: list[bytes] = []

    def take(self) -> list[bytes]:
        """Return the messages written since the last time."""
        out, self.out = self.out, []
        return out

    def write(self, name: str, payload: JsonObject) -> None:
        """Write one event."""
        self.out.append(encode_message(encode_json(payload), _headers(name)))

    def exception(self, name: str, payload: bytes) -> None:
        """Write what went wrong."""
        self.out.append(encode_message(payload, _headers(name, "exception")))

    def piece(self, block: ConverseBlockWriter, text: str) -> None:
        """Write a piece of text or of arguments of the block that is open."""
        self.out.append(block.frame(text))

    def delta(self, piece: JsonObject, **beside: Any) -> None:
        """Write a piece of the block that is open, with fields beside it."""
        self.write("contentBlockDelta", {"contentBlockIndex": self.index, "delta": piece, **beside})

    def start(self, block: JsonObject) -> None:
        """Begin a block that says what it is."""
        self.write("contentBlockStart", {"contentBlockIndex": self.index, "start": block})

    def stop(self) -> None:
        """End the open block."""
        self.write("contentBlockStop", {"contentBlockIndex": self.index})
        self.index += 1

    def put_before_text(self, block: object) -> bool:
        """Return False: written blocks stay where they are."""
        return False

    def write_block(self, block: object) -> None:
        """Write a block that is complete; a value that is no object is no block."""
        if not isinstance(block, dict):
            return
        thought = block.get(FIELD)
        if isinstance(thought, dict) and isinstance(thought.get("reasoningText", {}), dict):
            self._write_reasoning(thought, unknown_fields(block, THOUGHT))
            block = {}
        for name, value in block.items():
            if name == "toolUse" and isinstance(value, dict):
                self.start({name: {key: item for key, item in value.items() if key != "input"}})
                if "input" in value:
                    self.delta({name: {"input": encode_json(value["input"]).decode()}})
            elif name == "toolResult" and isinstance(value, dict) and isinstance(value.get("content"), list):
                self.start({name: {key: item for key, item in value.items() if key != "content"}})
                self.delta({name: value["content"]})
            else:
                self.delta({name: value})
        self.stop()

    def _write_reasoning(self, thought: JsonObject, beside: JsonObject) -> None:
        spoken = thought.get("reasoningText", {})
        redacted = {"redactedContent": thought["redactedContent"]} if "redactedContent" in thought else {}
        for name, item in {**{key: spoken[key] for key in ("text", "signature") if key in spoken}, **redacted}.items():
            self.delta({FIELD: {name: item}}, **beside)
            beside = {}


class ConverseCollector(ConverseFrames):
    """Collect one whole reply. `reply` is complete after the encoder's end."""

    streamed = False

    def __init__(self) -> None:
        super().__init__()
        self._content: list[Any] = []
        self.reply: JsonObject = {"output": {"message": {"content": self._content}}}
        self._text = ""
        self._block: JsonObject = {}
        self._fields: JsonObject = {}

    def write(self, name: str, payload: JsonObject) -> None:
        """Take the start of the message, its end, or the totals."""
        self.reply = merge_fields(self.reply, {"output": {"message": payload}} if name == "messageStart" else payload)

    def start(self, block: JsonObject) -> None:
        """Begin a tool call."""
        self._block = block

    def piece(self, block: ConverseBlockWriter, text: str) -> None:
        """Take a piece of text or of arguments."""
        self._text += text
        if block.kind == "thinking":
            self._block.setdefault(FIELD, {})

    def delta(self, piece: JsonObject, **beside: Any) -> None:
        """Take a signature or a citation, and fields beside the block."""
        if citation := piece.get("citation"):
            self._fields.setdefault("citations", []).append(citation)
        if FIELD in piece:
            self._block[FIELD] = piece[FIELD]
        self._fields = merge_fields(self._fields, beside)

    def stop(self) -> None:
        """End the block."""
        text, block, fields = self._text, self._block, self._fields
        self._text, self._block, self._fields = "", {}, {}
        if "toolUse" in block:
            block = merge_fields(merge_fields(block, {"toolUse": {"input": input_of(text)}}), fields)
        elif FIELD in block:
            block = merge_fields(SIGNED_BLOCKS.thinking(text, block[FIELD].get("signature", "")), fields)
        else:
            block = text_block(text, fields)
        self._content.append(block)

    def put_before_text(self, block: object) -> bool:
        """Put a block before the last one, if that is text."""
        if not self._content or _TEXTS.isdisjoint(self._content[-1]):
            return False
        self._content.insert(-1, block)
        return True

    def write_block(self, block: object) -> None:
        """Take a block that is complete."""
        self._content.append(block)

    def text(self, text: str) -> None:
        """Take a text."""
        self.write_block(text_block(text, {}))

    def thinking(self, parts: Iterable[str]) -> None:
        """Take thinking."""
        self.write_block(SIGNED_BLOCKS.thinking("\n\n".join(parts), ""))

    def call(self, call: ToolCallBlock) -> None:
        """Take a tool call."""
        self.write_block({"toolUse": {"toolUseId": call.id, "name": call.name, "input": input_of(call.arguments)}})


class ConverseBlockWriter(BlockWriter):
    """Write one block. Fields of a tool call that come before its first piece stand in its start.

    The opaque state of thinking becomes its signature when the block ends. Hidden thinking without opaque state is not written at all.
    """

    __slots__ = ("_fields", "_frames", "_header", "_prefix", "_suffix")

    def __init__(self, number: int, kind: Kind, frames: ConverseFrames, *, hidden: bool = False) -> None:
        super().__init__(number, kind, hidden=hidden)
        self._frames = frames
        self._header: JsonObject = {"toolUseId": "", "name": ""}
        self._prefix = self._suffix = b""
        self._fields: JsonObject = {}

    @property
    def owner(self) -> str:
        """The id of a tool call, "" for any other block."""
        return str(self._header["toolUseId"]) if self.kind == "tool_call" else ""

    def frame(self, text: str) -> bytes:
        """Return the message of one further piece of text."""
        return encode_message(self._prefix + encode_json(text) + self._suffix, _DELTA)

    def piece(self, text: str) -> None:
        """Write a piece of text or of arguments. A text begins with its first character, because its state stands before it."""
        if not text and self.kind == "text":
            return
        self._begin()
        self._frames.piece(self, text)

    def name_call(self, call_id: str, name: str) -> None:
        """Take the id and the name of a tool call."""
        self._header |= {"toolUseId": call_id or self._header["toolUseId"], "name": name or self._header["name"]}

    def add_fields(self, fields: JsonObject) -> None:
        """Write the dialect's own fields: citations as pieces, those of a call in its start, others beside a piece."""
        citations = fields.get("citations")
        if self.kind == "text" and isinstance(citations, list) and citations:
            self._begin()
            for citation in citations:
                self._frames.delta({"citation": citation})
            fields = {name: value for name, value in fields.items() if name != "citations"}
        self._fields = merge_fields(self._fields, fields)

    def abandon(self) -> None:
        """Leave the block without an end."""
        if self.begun:
            self._frames.index += 1

    def end(self) -> None:
        """Write the rest of the block, and the blocks its opaque state needs."""
        if self.kind == "thinking":
            self._end_thinking()
            return
        if self.kind == "text" and self.states and not self.begun and not self._fields:
            return
        self._write_fields()
        if not self.begun:
            self._begin()
            if self.kind == "text":
                self._frames.piece(self, "")
        self._frames.stop()
        if self.states and self.kind == "tool_call":
            self._frames.write_block(SIGNED_BLOCKS.carrier(self.states.states(), self.owner))

    def _begin(self) -> None:
        """Write the start, once; only tool calls have one."""
        if self.begun:
            return
        if self.kind == "text" and self.states:
            self._frames.write_block(SIGNED_BLOCKS.carrier(self.states.take(), NEXT))
        self.begun, self.repeats = True, self._frames.streamed and not self.hidden
        opening, self._suffix = _PIECES[self.kind]
        self._prefix = f'{{"contentBlockIndex":{self._frames.index},"delta":{{{opening}'.encode()
        if self.kind == "tool_call":
            self._frames.start(merge_fields({"toolUse": self._header}, self._fields))
            self._fields = {}

    def _write_fields(self) -> None:
        if self._fields and (self.begun or self.kind != "tool_call"):
            self._begin()
            self._frames.delta({name: "" for name in ("text",) if self.kind == "text"}, **self._fields)
            self._fields = {}

    def _end_thinking(self) -> None:
        if self.hidden and not self.states:
            return
        signed = SIGNED_BLOCKS.sign(self.states.states())
        behind = signed.behind
        if signed.only_behind and not self.begun:
            behind = (merge_fields(behind[0], self._fields), *behind[1:])
        else:
            if not self.begun:
                self.piece("")
            if signed.signature:
                self._frames.delta({FIELD: {"signature": signed.signature}})
            self._write_fields()
            self._frames.stop()
        for block in behind:
            self._frames.write_block(block)


_REASON_WORDS: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "content_filtered",
    "error": "malformed_model_output",
}
_AT_STOP = ("stopReason", "additionalModelResponseFields")


class Encoder(SerialEncoder[ConverseBlockWriter, ConverseFrames]):
    """Encode one streamed reply. `metrics`: the latency is there, which Converse's clients take for granted."""

    name = NAME
    signed_blocks = SIGNED_BLOCKS
    content_type = CONTENT_TYPE
    # Readers of this framing take every message for an event.
    keep_alive = b""

    def __init__(self, request: Request, frames: ConverseFrames | None = None, *, metrics: bool = True) -> None:
        super().__init__(request, frames or ConverseFrames())
        self._metrics: JsonObject = {"metrics": {"latencyMs": 0}} if metrics else {}

    def put_before_text(self, block: JsonObject) -> bool:
        """Put a block before the last one of a whole reply; False where that is no text."""
        return self.frames.put_before_text(block)

    def open_block(self, number: int, kind: Kind) -> ConverseBlockWriter:
        """Return the writer of a new block."""
        return ConverseBlockWriter(number, kind, self.frames, hidden=self.hides_thinking and kind == "thinking")

    def take_start(self, item: ReplyStart) -> None:
        """Begin the reply: its start names neither id nor model."""
        self.begin()

    def write_start(self) -> None:
        """Write `messageStart`."""
        self.frames.write("messageStart", {"role": "assistant"})

    def write_end(self, *, calls: bool) -> None:
        """Write `messageStop` and `metadata`."""
        fields = self.fields.fields
        stop = {"stopReason": stop_word(self.finish_event, calls=calls), **stop_fields(self.finish_event, fields)}
        self.frames.write("messageStop", stop | {name: fields[name] for name in _AT_STOP if name in fields})
        metadata = {"usage": encode_usage(self.usage), **self._metrics}
        metadata |= {name: value for name, value in fields.items() if name not in _AT_STOP}
        if self.extension:
            metadata["bardo"] = self.extension
        self.frames.write("metadata", metadata)

    def write_error(self, error: BardoError) -> None:
        """Write the exception of an error."""
        self.frames.exception(*exception_of(error, self.extension))


def encode_response(response: Response, request: Request, *, metrics: bool = True) -> bytes:
    """Encode one whole reply."""
    collector = ConverseCollector()
    write_response(Encoder(request, collector, metrics=metrics), response, wraps="toolUse.input")
    return encode_json(collector.reply)


def stop_word(finish: Finish | None, *, calls: bool) -> str:
    """Return the stop reason: the provider's own word where it is one of this dialect.

    Clients run their tools only on `tool_use`, and some providers call a tool and say that they just stopped.
    """
    finish = finish or Finish("unknown")
    if finish.raw in REASONS:
        return finish.raw
    word = _REASON_WORDS.get(finish.reason, "end_turn")
    if word != "end_turn":
        return word
    return "tool_use" if calls else "end_turn" if finish.stop_sequence is None else "stop_sequence"


def stop_fields(finish: Finish | None, carried: JsonObject) -> JsonObject:
    """Return the stop sequence where Claude's own fields have it, unless they are carried."""
    if finish is None or finish.stop_sequence is None or "additionalModelResponseFields" in carried:
        return {}
    return {"additionalModelResponseFields": {"stop_sequence": finish.stop_sequence}}
