"""The frames of one step of a stream that is being written."""

from __future__ import annotations

from typing import Any, Literal

from bardo.dialects.gemini_interactions.written import as_list, output_contents, signed
from bardo.dialects.wire import encode_json
from bardo.streams.sse import encode_sse
from bardo.values.blocks import Opaque
from bardo.values.collected import OpaqueStates
from bardo.values.events import ContentChunk, ThinkChunk, ToolCallChunk

Kind = Literal["text", "thought", "call"]

_CHUNKS: dict[Kind, type] = {"text": ContentChunk, "thought": ThinkChunk, "call": ToolCallChunk}
_EMPTY: dict[Kind, dict[str, Any]] = {
    "text": {"type": "text", "text": ""},
    "thought": {"type": "thought_signature"},
    "call": {"type": "arguments_delta", "arguments": ""},
}
_DELTA_END = b',"event_type":"step.delta"}\n\n'
_HEADS: dict[Kind, bytes] = {
    "text": b'"delta":{"type":"text","text":',
    "thought": b'"delta":{"type":"thought_summary","content":{"type":"text","text":',
    "call": b'"delta":{"type":"arguments_delta","arguments":',
}


class Frames:
    """Frames in order, and the index the next step gets."""

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self._next = 0

    def take(self) -> list[bytes]:
        """Give the frames written since the last time."""
        out, self.out = self.out, []
        return out

    def fresh(self) -> int:
        """Return the next index."""
        self._next += 1
        return self._next - 1

    def write(self, kind: str, **fields: Any) -> None:
        """Write one event."""
        self.out.append(encode_sse(encode_json({**fields, "event_type": kind}), kind))

    def whole(self, value: Any) -> None:
        """Write a step that is complete."""
        index = self.fresh()
        step, contents = output_contents(value)
        self.write("step.start", index=index, step=step)
        for content in contents:
            self.write("step.delta", index=index, delta=content)
        self.write("step.stop", index=index)


class Writing:
    """One step. `prefix` and `suffix` stand around the text of a plain piece."""

    __slots__ = ("_frames", "_states", "chunk", "ended", "index", "kind", "number", "part", "prefix", "spoke", "suffix")

    def __init__(self, number: int, kind: Kind, frames: Frames, call: dict[str, Any] | None = None) -> None:
        self.number = number
        self.kind = kind
        self.chunk = _CHUNKS[kind]
        self.part: int | None = None
        self.spoke = False
        self.ended = False
        self._frames = frames
        self._states = OpaqueStates()
        self.index = frames.fresh()
        self.prefix = b'event: step.delta\ndata: {"index":%d,' % self.index + _HEADS[kind]
        # A piece of a summary is an item of its own for the dialect: that it goes on with the one before is bardo's word.
        self.suffix = (b'},"continues":true}' if kind == "thought" else b"}") + _DELTA_END
        step = {"type": "thought"} if kind == "thought" else call or {"type": "model_output"}
        frames.write("step.start", index=self.index, step=step)

    def piece(self, text: str, part: int | None = None) -> None:
        """Write a piece of text or of arguments, or of the `part` of a summary."""
        suffix = self.suffix
        if self.kind == "thought" and not (self.spoke and part == self.part):
            suffix = b"}}" + _DELTA_END
        self.part, self.spoke = part, True
        self._frames.out.append(self.prefix + encode_json(text) + suffix)

    def add(self, fields: dict[str, Any]) -> None:
        """Write fields of the step."""
        rest = dict(fields)
        if self.kind == "text" and "annotations" in rest:
            self._delta({"type": "text_annotation_delta", "annotations": rest.pop("annotations")})
        if self.kind == "thought":
            for item in as_list(rest.pop("summary", None)):
                self._delta({"type": "thought_summary", "content": item})
        for delta in as_list(rest.pop("deltas", None)):
            self._delta(delta)
        if rest:
            self._delta({**_EMPTY[self.kind], **rest})

    def add_state(self, state: Opaque) -> None:
        """Keep opaque state for the end of the step; a later one of its kind replaces it. After the end it is written at once."""
        if self.ended:
            self._sign((state,))
            return
        self._states.add(state)

    def end(self) -> None:
        """Write the end, once."""
        if self.ended:
            return
        self.ended = True
        self._sign(self._states.states())
        self._frames.write("step.stop", index=self.index)

    def _sign(self, states: tuple[Opaque, ...]) -> None:
        if states:
            self._delta({"type": "thought_signature", **signed(states)})

    def _delta(self, delta: Any) -> None:
        self._frames.write("step.delta", index=self.index, delta=delta)
