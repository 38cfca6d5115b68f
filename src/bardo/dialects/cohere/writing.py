"""The frames of one block of a stream that is being written."""

from __future__ import annotations

from typing import Any, Literal

from bardo.dialects.cohere.encode_whole import sealed
from bardo.dialects.cohere.words import encode_json
from bardo.streams.sse import encode_sse
from bardo.values.blocks import Opaque
from bardo.values.collected import OpaqueStates
from bardo.values.events import ContentChunk, ThinkChunk, ToolCallChunk

Kind = Literal["text", "thinking", "plan", "call"]

_CHUNKS: dict[Kind, type] = {"text": ContentChunk, "thinking": ThinkChunk, "plan": ThinkChunk, "call": ToolCallChunk}
END = b"\n\n"


class Frames:
    """Frames in order, the indexes the next content, call and citation get, and scores that wait for their piece."""

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.logprobs: list[Any] = []
        self._next = {"content": 0, "tool_calls": 0, "citations": 0}
        self._begun = False

    def take(self) -> list[bytes]:
        """Give the frames written since the last time."""
        out, self.out = self.out, []
        return out

    def fresh(self, place: str) -> int:
        """Return the next index."""
        self._next[place] += 1
        return self._next[place] - 1

    def write(self, kind: str, **fields: Any) -> None:
        """Write one event."""
        self.out.append(encode_sse(encode_json({"type": kind, **fields}), kind))

    def begin(self, reply_id: str) -> None:
        """Write the start, once."""
        if self._begun:
            return
        self._begun = True
        message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        self.write("message-start", id=reply_id, delta={"message": message})

    def whole(self, value: Any) -> None:
        """Write a block of content that is complete."""
        index = self.fresh("content")
        self.write("content-start", index=index, delta={"message": {"content": value}})
        self.write("content-end", index=index)

    def cite(self, citation: Any) -> None:
        """Write a citation."""
        index = self.fresh("citations")
        self.write("citation-start", index=index, delta={"message": {"citations": citation}})
        self.write("citation-end", index=index)


class Writing:
    """One open block. `prefix` and `suffix` stand around the text of a plain piece."""

    __slots__ = (
        "_ended",
        "_frames",
        "_states",
        "begun",
        "chunk",
        "index",
        "kind",
        "number",
        "part",
        "prefix",
        "spoke",
        "suffix",
    )

    def __init__(self, number: int, kind: Kind, frames: Frames) -> None:
        self.number = number
        self.kind = kind
        self.chunk = _CHUNKS[kind]
        self.part: int | None = None
        self.begun = False
        self.spoke = False
        self._ended = False
        self._states = OpaqueStates()
        self._frames = frames
        self.index = 0 if kind == "plan" else frames.fresh("tool_calls" if kind == "call" else "content")
        self.prefix, self.suffix = _around(kind, self.index)
        if kind in ("text", "thinking"):
            self.begun = True
            content = {"type": kind, kind: ""}
            frames.write("content-start", index=self.index, delta={"message": {"content": content}})

    def begin_call(self, call_id: str, name: str) -> None:
        """Write the start of a call."""
        self.begun = True
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        self._frames.write("tool-call-start", index=self.index, delta={"message": {"tool_calls": call}})

    def piece(self, text: str) -> None:
        """Write a piece, with the score that waits for it."""
        if self.kind == "call" and not self.begun:
            self.begin_call("", "")
        self.spoke = self.spoke or text != ""
        scores, self._frames.logprobs = self._frames.logprobs, []
        scored = b',"logprobs":' + encode_json(scores[0] if len(scores) == 1 else scores) if scores else b""
        self._frames.out.append(self.prefix + encode_json(text) + self.suffix[:-1] + scored + b"}" + END)

    def add(self, fields: dict[str, Any]) -> None:
        """Write fields of the block: citations as events of their own, others with an empty piece."""
        rest = dict(fields)
        citations = rest.pop("citations", [])
        for citation in citations if isinstance(citations, list) else [citations]:
            self._frames.cite(citation)
        if not rest:
            return
        if self.kind == "call":
            self._frames.write("tool-call-delta", index=self.index, delta={"message": {"tool_calls": rest}})
        elif self.kind != "plan":
            content = {self.kind: "", **rest}
            self._frames.write("content-delta", index=self.index, delta={"message": {"content": content}})

    def add_state(self, state: Opaque) -> None:
        """Keep opaque state for the block's end; a later one of its kind replaces it. After the end it is written at once."""
        self._states.add(state)
        if self._ended:
            self._seal()

    def _seal(self) -> None:
        fields = sealed(self._states.states())
        if fields and self.kind == "plan":
            # A plan is bare text, so that its state stands in a block behind it.
            self._frames.whole({"type": "thinking", "thinking": "", **fields})
        else:
            self.add(dict(fields))

    def end(self) -> None:
        """Write the end; a plan has none."""
        self._ended = True
        if self.kind == "call" and not self.begun:
            self.begin_call("", "")
        if self.kind == "call" and not self.spoke:
            self.piece("{}")
        self._seal()
        if self.kind != "plan":
            self._frames.write("tool-call-end" if self.kind == "call" else "content-end", index=self.index)


def _around(kind: Kind, index: int) -> tuple[bytes, bytes]:
    if kind == "plan":
        event, head, tail = "tool-plan-delta", '"delta":{"message":{"tool_plan":', b"}}}"
    elif kind == "call":
        event, tail = "tool-call-delta", b"}}}}}"
        head = f'"index":{index},"delta":{{"message":{{"tool_calls":{{"function":{{"arguments":'
    else:
        event, tail = "content-delta", b"}}}}"
        head = f'"index":{index},"delta":{{"message":{{"content":{{"{kind}":'
    return f'event: {event}\ndata: {{"type":"{event}",{head}'.encode(), tail
