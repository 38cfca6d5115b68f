"""Write the blocks of a streamed Cohere reply."""

from __future__ import annotations

from typing import Any

from bardo.dialects.block_writer import BlockWriter, Kind
from bardo.dialects.cohere.encode_whole import sealed
from bardo.dialects.wire import encode_json
from bardo.streams.sse import encode_sse
from bardo.values.blocks import Opaque

_END = b"\n\n"


class CohereFrames:
    """The frames in order, the indexes of the next content, call and citation, and the scores that wait for their piece."""

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.logprobs: list[Any] = []
        self._next = {"content": 0, "tool_calls": 0, "citations": 0}

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


class CohereBlockWriter(BlockWriter):
    """Write one block. Its start is written at once, that of a tool call with its name."""

    __slots__ = ("_ended", "_frames", "_index", "_prefix", "_started", "_suffix")

    def __init__(self, number: int, kind: Kind, frames: CohereFrames) -> None:
        super().__init__(number, kind)
        self._frames = frames
        self._ended = False
        self._started = kind != "tool_call"
        self._index = 0 if kind == "plan" else frames.fresh("tool_calls" if kind == "tool_call" else "content")
        self._prefix, self._suffix = _around(kind, self._index)
        if kind in ("text", "thinking"):
            content = {"type": kind, kind: ""}
            frames.write("content-start", index=self._index, delta={"message": {"content": content}})

    def frame(self, text: str) -> bytes:
        """Return the frame of one further piece of text."""
        return self._prefix + encode_json(text) + self._suffix + b"}" + _END

    def piece(self, text: str) -> None:
        """Write a piece, with the score that waits for it."""
        if not self._started:
            self.name_call("", "")
        if text:
            self.begun = self.repeats = True
        scores, self._frames.logprobs = self._frames.logprobs, []
        if not scores:
            self._frames.out.append(self.frame(text))
            return
        scored = b',"logprobs":' + encode_json(scores[0] if len(scores) == 1 else scores)
        self._frames.out.append(self._prefix + encode_json(text) + self._suffix + scored + b"}" + _END)

    def name_call(self, call_id: str, name: str) -> None:
        """Write the start of a tool call, once."""
        if self._started:
            return
        self._started = True
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        self._frames.write("tool-call-start", index=self._index, delta={"message": {"tool_calls": call}})

    def add_fields(self, fields: dict[str, Any]) -> None:
        """Write fields of the block: citations as events of their own, others with an empty piece."""
        rest = dict(fields)
        citations = rest.pop("citations", [])
        for citation in citations if isinstance(citations, list) else [citations]:
            self._frames.cite(citation)
        if not rest:
            return
        if self.kind == "tool_call":
            self._frames.write("tool-call-delta", index=self._index, delta={"message": {"tool_calls": rest}})
        elif self.kind != "plan":
            content = {self.kind: "", **rest}
            self._frames.write("content-delta", index=self._index, delta={"message": {"content": content}})

    def add_state(self, state: Opaque) -> None:
        """Keep opaque state for the end of the block. After the end it is written at once."""
        super().add_state(state)
        if self._ended:
            self._seal()

    def end(self) -> None:
        """Write the end; a plan has none."""
        self._ended = True
        if not self._started:
            self.name_call("", "")
        if self.kind == "tool_call" and not self.begun:
            self.piece("{}")
        self._seal()
        if self.kind != "plan":
            self._frames.write("tool-call-end" if self.kind == "tool_call" else "content-end", index=self._index)

    def _seal(self) -> None:
        fields = sealed(self.states.states())
        if fields and self.kind == "plan":
            # A plan is bare text, so that its state stands in a block behind it.
            self._frames.whole({"type": "thinking", "thinking": "", **fields})
        else:
            self.add_fields(dict(fields))


def _around(kind: Kind, index: int) -> tuple[bytes, bytes]:
    if kind == "plan":
        event, head, tail = "tool-plan-delta", '"delta":{"message":{"tool_plan":', b"}}"
    elif kind == "tool_call":
        event, tail = "tool-call-delta", b"}}}}"
        head = f'"index":{index},"delta":{{"message":{{"tool_calls":{{"function":{{"arguments":'
    else:
        event, tail = "content-delta", b"}}}"
        head = f'"index":{index},"delta":{{"message":{{"content":{{"{kind}":'
    return f'event: {event}\ndata: {{"type":"{event}",{head}'.encode(), tail
