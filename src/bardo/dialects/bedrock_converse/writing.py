"""The events of one block of a stream that is being written."""

from __future__ import annotations

from typing import Any, Literal

from bardo.dialects.bedrock_converse.opaque import carrier, sign
from bardo.dialects.bedrock_converse.words import FIELD, THOUGHT, beyond, encode_json
from bardo.dialects.fragments import laid_into
from bardo.streams.eventstream import encode_headers, encode_message
from bardo.values.blocks import Opaque
from bardo.values.collected import OpaqueStates
from bardo.values.events import ContentChunk, ThinkChunk, ToolCallChunk

Kind = Literal["text", "think", "call"]

CHUNKS: dict[Kind, type] = {"text": ContentChunk, "think": ThinkChunk, "call": ToolCallChunk}
_PIECES: dict[Kind, tuple[str, bytes]] = {
    "text": ('"text":', b"}}"),
    "think": (f'"{FIELD}":{{"text":', b"}}}"),
    "call": ('"toolUse":{"input":', b"}}}"),
}


def _headers(name: str, message_type: str = "event") -> bytes:
    type_header = f":{message_type}-type"
    return encode_headers({type_header: name, ":content-type": "application/json", ":message-type": message_type})


DELTA = _headers("contentBlockDelta")


class Frames:
    """Messages in order, and the index the next block gets."""

    def __init__(self) -> None:
        self.index = 0
        self.out: list[bytes] = []

    def take(self) -> list[bytes]:
        """Give the messages written since the last time."""
        out, self.out = self.out, []
        return out

    def write(self, name: str, payload: dict[str, Any]) -> None:
        """Write one event."""
        self.out.append(encode_message(encode_json(payload), _headers(name)))

    def exception(self, name: str, payload: bytes) -> None:
        """Write what went wrong."""
        self.out.append(encode_message(payload, _headers(name, "exception")))

    def delta(self, piece: dict[str, Any], **beside: Any) -> None:
        """Write a piece of the block that is open, with fields beside it."""
        self.write("contentBlockDelta", {"contentBlockIndex": self.index, "delta": piece, **beside})

    def start(self, block: dict[str, Any]) -> None:
        """Begin a block that says what it is."""
        self.write("contentBlockStart", {"contentBlockIndex": self.index, "start": block})

    def stop(self) -> None:
        """End the open block."""
        self.write("contentBlockStop", {"contentBlockIndex": self.index})
        self.index += 1

    def whole(self, block: dict[str, Any]) -> None:
        """Write a block that is complete."""
        thought = block.get(FIELD)
        if isinstance(thought, dict) and isinstance(thought.get("reasoningText", {}), dict):
            self._thought(thought, beyond(block, THOUGHT))
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

    def _thought(self, thought: dict[str, Any], beside: dict[str, Any]) -> None:
        spoken = thought.get("reasoningText", {})
        redacted = {"redactedContent": thought["redactedContent"]} if "redactedContent" in thought else {}
        for name, item in {**{key: spoken[key] for key in ("text", "signature") if key in spoken}, **redacted}.items():
            self.delta({FIELD: {name: item}}, **beside)
            beside = {}


class Writing:
    """One open block.

    The opaque state of thinking becomes its signature when the block ends, because a later state may replace an earlier one. The text
    of `hidden` thinking is not written, and without opaque state nothing of it is. Fields of a tool call that come before its first
    piece stand in its start.
    """

    __slots__ = (
        "_fields",
        "_states",
        "begun",
        "chunk",
        "header",
        "hidden",
        "kind",
        "number",
        "part",
        "prefix",
        "suffix",
    )

    def __init__(self, number: int, kind: Kind, *, hidden: bool = False) -> None:
        self.hidden = hidden
        self.number = number
        self.kind: Kind = kind
        self.chunk = CHUNKS[kind]
        self.header: dict[str, Any] = {"toolUseId": "", "name": ""}
        self.begun = False
        self.part: int | None = None
        self.prefix = self.suffix = b""
        self._fields: dict[str, Any] = {}
        self._states = OpaqueStates()

    def begin(self, frames: Frames) -> None:
        """Write the start, once; only tool calls have one."""
        if self.begun:
            return
        self.begun = True
        opening, self.suffix = _PIECES[self.kind]
        self.prefix = f'{{"contentBlockIndex":{frames.index},"delta":{{{opening}'.encode()
        if self.kind == "call":
            frames.start(laid_into({"toolUse": self.header}, self._fields))
            self._fields = {}

    def piece(self, text: str, frames: Frames) -> None:
        """Write a piece."""
        self.begin(frames)
        frames.out.append(encode_message(self.prefix + encode_json(text) + self.suffix, DELTA))

    def add_state(self, state: Opaque) -> None:
        """Keep opaque state; a later one of its kind replaces it."""
        self._states.add(state)

    def add_fields(self, fields: dict[str, Any], frames: Frames) -> None:
        """Write the dialect's own fields: citations as pieces, those of a call in its start, others beside a piece."""
        citations = fields.get("citations")
        if self.kind == "text" and isinstance(citations, list) and citations:
            self.begin(frames)
            for citation in citations:
                frames.delta({"citation": citation})
            fields = {name: value for name, value in fields.items() if name != "citations"}
        self._fields = laid_into(self._fields, fields)

    def end(self, frames: Frames) -> None:
        """Write what is left of the block, and the blocks its opaque state needs."""
        if self.kind == "think":
            self._end_thinking(frames)
            return
        self._write_fields(frames)
        if not self.begun:
            self.piece("", frames) if self.kind == "text" else self.begin(frames)
        frames.stop()
        if self._states:
            frames.whole(carrier(self._states.states(), self.owner))

    @property
    def owner(self) -> str:
        """The id of a tool call, "" for text: whom a carrier names."""
        return str(self.header["toolUseId"]) if self.kind == "call" else ""

    def _write_fields(self, frames: Frames) -> None:
        if self._fields and (self.begun or self.kind != "call"):
            self.begin(frames)
            frames.delta({name: "" for name in ("text",) if self.kind == "text"}, **self._fields)
            self._fields = {}

    def _end_thinking(self, frames: Frames) -> None:
        if self.hidden and not self._states:
            return
        signed = sign(self._states.states())
        behind = signed.behind
        if signed.only_behind and not self.begun:
            behind = (laid_into(behind[0], self._fields), *behind[1:])
        else:
            if not self.begun:
                self.piece("", frames)
            if signed.signature:
                frames.delta({FIELD: {"signature": signed.signature}})
            self._write_fields(frames)
            frames.stop()
        for block in behind:
            frames.whole(block)
