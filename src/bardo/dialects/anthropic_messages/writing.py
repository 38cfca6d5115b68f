"""The frames of one block of a stream that is being written."""

from __future__ import annotations

from typing import Any, Literal

from bardo.dialects.anthropic_messages.opaque import carrier, sign
from bardo.dialects.anthropic_messages.words import encode_json
from bardo.streams.sse import encode_sse
from bardo.values.blocks import Opaque
from bardo.values.collected import OpaqueStates
from bardo.values.events import ContentChunk, ThinkChunk, ToolCallChunk

Kind = Literal["text", "thinking", "tool_use"]

_EMPTY: dict[Kind, dict[str, Any]] = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
    "tool_use": {"type": "tool_use", "id": "", "name": "", "input": {}},
}
_CHUNKS: dict[Kind, type] = {"text": ContentChunk, "thinking": ThinkChunk, "tool_use": ToolCallChunk}
_PIECES: dict[Kind, tuple[str, str]] = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}
DELTA_END = b"}}\n\n"


def frame(kind: str, **fields: Any) -> bytes:
    """Write one event, named as the real API names them."""
    return encode_sse(encode_json({"type": kind, **fields}), kind)


class Frames:
    """Frames in order, and the index the next block gets."""

    def __init__(self) -> None:
        self.index = 0
        self.out: list[bytes] = []

    def take(self) -> list[bytes]:
        """Give the frames written since the last time."""
        out, self.out = self.out, []
        return out

    def write(self, kind: str, **fields: Any) -> None:
        """Write one event."""
        self.out.append(frame(kind, **fields))

    def delta(self, **fields: Any) -> None:
        """Write a piece of the block that is open."""
        self.write("content_block_delta", index=self.index, delta=fields)

    def start(self, block: dict[str, Any]) -> None:
        """Begin a block."""
        self.write("content_block_start", index=self.index, content_block=block)

    def stop(self, fields: dict[str, Any]) -> None:
        """End the open block; fields that came too late for its start go along."""
        self.write("content_block_stop", index=self.index, **fields)
        self.index += 1

    def whole(self, block: dict[str, Any]) -> None:
        """Write a block that is complete. The input of a tool goes in a delta, where clients look for it."""
        given = block.get("input")
        if str(block.get("type")).endswith("tool_use") and isinstance(given, dict) and given:
            self.start({**block, "input": {}})
            self.delta(type="input_json_delta", partial_json=encode_json(given).decode())
        else:
            self.start(block)
        self.stop({})


class Writing:
    """One open block. Its start is written with its first piece, so that fields which follow at once can stand in it.

    The opaque state of thinking becomes its signature when the block ends, because a later state may replace an earlier one. The text
    of `hidden` thinking is not written, and without opaque state nothing of it is.
    """

    __slots__ = ("_late", "_states", "begun", "chunk", "header", "hidden", "kind", "number", "part", "prefix")

    def __init__(self, number: int, kind: Kind, header: dict[str, Any], *, hidden: bool = False) -> None:
        self.hidden = hidden
        self.number = number
        self.kind = kind
        self.chunk = _CHUNKS[kind]
        self.header = {**_EMPTY[kind], **header}
        self.begun = False
        self.part: int | None = None
        self.prefix = b""
        self._states = OpaqueStates()
        self._late: dict[str, Any] = {}

    def begin(self, frames: Frames) -> None:
        """Write the start, once."""
        if self.begun:
            return
        self.begun = True
        frames.start(self.header)
        kind, name = _PIECES[self.kind]
        head = f'{{"type":"content_block_delta","index":{frames.index},"delta":{{"type":"{kind}","{name}":'
        self.prefix = b"event: content_block_delta\ndata: " + head.encode()

    def piece(self, text: str, frames: Frames) -> None:
        """Write a piece."""
        self.begin(frames)
        frames.out.append(self.prefix + encode_json(text) + DELTA_END)

    def add_state(self, state: Opaque) -> None:
        """Keep opaque state; a later one of its kind replaces it."""
        self._states.add(state)

    def add_fields(self, fields: dict[str, Any], frames: Frames) -> None:
        """Write the dialect's own fields: citations and deltas as they are, others in the start or else the stop."""
        for name, value in fields.items():
            if name == "citations" and isinstance(value, list) and self.kind == "text":
                self._cite(value, frames)
            elif name.endswith("_delta") and isinstance(value, list):
                self.begin(frames)
                for item in value:
                    frames.delta(**({"type": name} | item if isinstance(item, dict) else {"type": name, "value": item}))
            elif name == "estimated_tokens" and self.kind == "thinking":
                self.begin(frames)
                frames.delta(type="thinking_delta", thinking="", estimated_tokens=value)
            elif self.begun:
                self._late[name] = value
            else:
                self.header[name] = value

    def _cite(self, citations: list[Any], frames: Frames) -> None:
        if not self.begun:
            self.header["citations"] = []
        if citations:
            self.begin(frames)
        for citation in citations:
            frames.delta(type="citations_delta", citation=citation)

    def end(self, frames: Frames) -> None:
        """Write what is left of the block, and the blocks its opaque state needs."""
        if self.kind == "thinking":
            self._end_thinking(frames)
            return
        self.begin(frames)
        frames.stop(self._late)
        if self._states:
            frames.whole(carrier(self._states.states(), self.owner))

    @property
    def owner(self) -> str:
        """The id of a tool call, "" for text: whom a carrier names."""
        return str(self.header["id"]) if self.kind == "tool_use" else ""

    def _end_thinking(self, frames: Frames) -> None:
        if self.hidden and not self._states:
            return
        signed = sign(self._states.states())
        behind = signed.behind
        if signed.only_behind and not self.begun:
            added = {name: value for name, value in self.header.items() if name not in _EMPTY["thinking"]}
            behind = ({**behind[0], **added}, *behind[1:])
        else:
            self.begin(frames)
            if signed.signature:
                frames.delta(type="signature_delta", signature=signed.signature)
            frames.stop(self._late)
        for block in behind:
            frames.whole(block)
