"""Encode a reply for Cohere's clients, streamed as events or whole.

The last event has the finish reason, the totals, fields of the reply, and bardo's own `bardo` object.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bardo.catalog.fragments import merge_fields
from bardo.dialects.cohere.errors import ending
from bardo.dialects.cohere.usage import encode_usage
from bardo.dialects.cohere.wire import NAME, PLAN, encode_finish
from bardo.dialects.shared.blocks import BlockWriter, Kind
from bardo.dialects.shared.json_values import JsonObject, encode_json
from bardo.dialects.shared.serial_encoder import SerialEncoder, write_response
from bardo.dialects.shared.states import seal
from bardo.streams.sse import KEEP_ALIVE, encode_sse
from bardo.values.blocks import Opaque, ToolCallBlock
from bardo.values.errors import BardoError
from bardo.values.events import BlockFields, Finish, OpaqueState, ReplyFields
from bardo.values.fold import CarriedFields
from bardo.values.request import Request
from bardo.values.response import Response

_END = b"\n\n"


class CohereFrames:
    """The frames in order, the indexes of the next content, call and citation, and the scores that wait for their piece.

    `planned`: a plan has been written, so that the next one is a paragraph of its own.
    """

    streamed = True

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.logprobs: list[object] = []
        self.planned = False
        self._next = {"content": 0, "tool_calls": 0, "citations": 0}

    def take(self) -> list[bytes]:
        """Return the frames written since the last time."""
        out, self.out = self.out, []
        return out

    def fresh(self, place: str) -> int:
        """Return the next index."""
        self._next[place] += 1
        return self._next[place] - 1

    def piece(self, block: CohereBlockWriter, text: str) -> None:
        """Write a piece of a block, with the score that waits for it."""
        scores, self.logprobs = self.logprobs, []
        self.out.append(block.scored_frame(text, scores) if scores else block.frame(text))

    def close(self) -> None:
        """Write the end of the stream."""
        self.out.append(b"data: [DONE]\n\n")

    def write(self, kind: str, **fields: Any) -> None:
        """Write one event."""
        self.out.append(encode_sse(encode_json({"type": kind, **fields}), kind))

    def write_block(self, value: object) -> None:
        """Write a block of content that is complete."""
        index = self.fresh("content")
        self.write("content-start", index=index, delta={"message": {"content": value}})
        self.write("content-end", index=index)

    def cite(self, citation: object) -> None:
        """Write a citation."""
        index = self.fresh("citations")
        self.write("citation-start", index=index, delta={"message": {"citations": citation}})
        self.write("citation-end", index=index)


class CohereCollector(CohereFrames):
    """Collect one whole reply. `reply` is complete after the encoder's end."""

    streamed = False

    def __init__(self) -> None:
        super().__init__()
        self.reply: JsonObject = {}
        self._content: list[Any] = []
        self._calls: list[JsonObject] = []
        self._citations: list[object] = []
        self._plan: list[str] = []
        self._scores: list[object] = []

    def piece(self, block: CohereBlockWriter, text: str) -> None:
        """Take a piece of a block, and the scores beside it."""
        if block.kind == "plan":
            self._plan.append(text)
        elif block.kind == "tool_call":
            self._calls[block.index]["function"]["arguments"] += text
        else:
            self._content[block.index][block.kind] += text
        self._take_scores()

    def write(self, kind: str, **fields: Any) -> None:
        """Take the start of a block, fields of one, or the end of the message."""
        match kind:
            case "message-start":
                self.reply = {"id": fields["id"]}
            case "content-start":
                self._content.append(fields["delta"]["message"]["content"])
            case "content-delta":
                content = fields["delta"]["message"]["content"]
                self._content[fields["index"]] |= {
                    name: value for name, value in content.items() if name not in ("text", "thinking")
                }
            case "tool-call-start":
                self._calls.append(fields["delta"]["message"]["tool_calls"])
            case "tool-call-delta":
                self._add_to_call(fields["index"], fields["delta"]["message"]["tool_calls"])
            case "message-end":
                self._end(**fields)

    def write_block(self, value: object) -> None:
        """Take a block of content that is complete."""
        self.fresh("content")
        self._content.append(value)

    def text(self, text: str) -> None:
        """Take a text."""
        self.write_block({**_empty_content("text"), "text": text})
        self._take_scores()

    def thinking(self, parts: Iterable[str]) -> None:
        """Take thinking."""
        self.write_block({**_empty_content("thinking"), "thinking": "\n\n".join(parts)})
        self._take_scores()

    def call(self, call: ToolCallBlock) -> None:
        """Take a tool call."""
        self.fresh("tool_calls")
        self._calls.append(_call(call.id, call.name, call.arguments or "{}"))
        self._take_scores()

    def cite(self, citation: object) -> None:
        """Take a citation."""
        self._citations.append(citation)

    def _add_to_call(self, index: int, delta: JsonObject) -> None:
        call = merge_fields(self._calls[index], delta)
        # Arguments go on from the piece before.
        call["function"]["arguments"] = self._calls[index]["function"]["arguments"]
        self._calls[index] = call

    def _end(self, delta: JsonObject, **fields: Any) -> None:
        rest = dict(delta.pop("message", {}))
        others = rest.pop("citations", [])
        message = {
            "content": self._content,
            "tool_plan": "".join(self._plan),
            "tool_calls": self._calls,
            "citations": [*self._citations, *(others if isinstance(others, list) else [others])],
        }
        fields_told = {name: value for name, value in message.items() if value}
        self.reply |= {"message": {**rest, "role": "assistant", **fields_told}, **delta, **fields}
        self._scores += self.reply.get("logprobs", [])
        if self._scores:
            self.reply["logprobs"] = self._scores

    def _take_scores(self) -> None:
        self._scores += self.logprobs
        self.logprobs = []


class CohereBlockWriter(BlockWriter):
    """Write one block. Its start is written at once, that of a tool call with its name."""

    __slots__ = ("_ended", "_frames", "_prefix", "_started", "_suffix", "index")

    def __init__(self, number: int, kind: Kind, frames: CohereFrames) -> None:
        super().__init__(number, kind)
        self._frames = frames
        self._ended = False
        self._started = kind != "tool_call"
        self.index = 0 if kind == "plan" else frames.fresh("tool_calls" if kind == "tool_call" else "content")
        self._prefix, self._suffix = _around(kind, self.index)
        if kind in ("text", "thinking"):
            frames.write("content-start", index=self.index, delta={"message": {"content": _empty_content(kind)}})

    def frame(self, text: str) -> bytes:
        """Return the frame of one further piece of text."""
        return self._prefix + encode_json(text) + self._suffix + b"}" + _END

    def piece(self, text: str) -> None:
        """Write a piece, with the score that waits for it."""
        if not self._started:
            self.name_call("", "")
        if self.kind == "plan" and not self.begun and self._frames.planned:
            text = "\n\n" + text
        if text:
            self.begun, self.repeats = True, self._frames.streamed
            self._frames.planned = self._frames.planned or self.kind == "plan"
        self._frames.piece(self, text)

    def scored_frame(self, text: str, scores: list[object]) -> bytes:
        """Return the frame of a piece with its scores."""
        scored = b',"logprobs":' + encode_json(scores[0] if len(scores) == 1 else scores)
        return self._prefix + encode_json(text) + self._suffix + scored + b"}" + _END

    def name_call(self, call_id: str, name: str) -> None:
        """Write the start of a tool call, once."""
        if self._started:
            return
        self._started = True
        call = _call(call_id, name, "")
        self._frames.write("tool-call-start", index=self.index, delta={"message": {"tool_calls": call}})

    def add_fields(self, fields: JsonObject) -> None:
        """Write fields of the block: citations as events of their own, others with an empty piece."""
        rest = dict(fields)
        citations = rest.pop("citations", [])
        for citation in citations if isinstance(citations, list) else [citations]:
            self._frames.cite(citation)
        if not rest:
            return
        if self.kind == "tool_call":
            # Programs add up the arguments of every such event.
            call = {"function": {"arguments": ""}, **rest}
            self._frames.write("tool-call-delta", index=self.index, delta={"message": {"tool_calls": call}})
        elif self.kind != "plan":
            content = {self.kind: "", **rest}
            self._frames.write("content-delta", index=self.index, delta={"message": {"content": content}})

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
            self._frames.write("tool-call-end" if self.kind == "tool_call" else "content-end", index=self.index)

    def _seal(self) -> None:
        states = self.states.states()
        # Cohere has no field for opaque state: a client that sends the block back returns it.
        fields = {"signature": seal(states)} if states else {}
        if fields and self.kind == "plan":
            # A plan is bare text, so that its state stands in a block behind it.
            self._frames.write_block({"type": "thinking", "thinking": "", **fields})
        else:
            self.add_fields(fields)


def _empty_content(kind: Kind) -> JsonObject:
    return {"type": kind, kind: ""}


def _call(call_id: str, name: str, arguments: str) -> JsonObject:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


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


class Encoder(SerialEncoder[CohereBlockWriter, CohereFrames]):
    """Encode one streamed reply."""

    name = NAME
    content_type = "text/event-stream"
    keep_alive = KEEP_ALIVE

    def __init__(self, request: Request, frames: CohereFrames | None = None) -> None:
        super().__init__(request, frames or CohereFrames())
        self._message = CarriedFields(NAME)
        self._plans: set[int] = set()

    def open_block(self, number: int, kind: Kind) -> CohereBlockWriter:
        """Return the writer of a new block."""
        return CohereBlockWriter(number, kind, self.frames)

    def write_start(self) -> None:
        """Write `message-start`."""
        message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        self.frames.write("message-start", id=self.start.id, delta={"message": message})

    def write_end(self, *, calls: bool) -> None:
        """Write `message-end`."""
        word = self.fields.pop("finish_reason") or encode_finish(self.finish_event or Finish("unknown"), calls=calls)
        self._write_last({"finish_reason": word})

    def write_error(self, error: BardoError) -> None:
        """Write `message-end` with what went wrong."""
        self._write_last(ending(error))

    def fail(self, error: BardoError) -> None:
        """End an open text too: the last event of a failed reply is the same as that of a complete one."""
        self.begin()
        self.drain(broken=True)
        super().fail(error)

    def take_reply_fields(self, item: ReplyFields) -> None:
        """Keep fields of the message and of the reply; scores go with the next piece."""
        if item.choice is not None:
            self._message.merge(NAME, item.fields)
            return
        fields = dict(item.fields)
        logprobs = fields.pop("logprobs", None)
        if isinstance(logprobs, list) and logprobs:
            self.frames.logprobs += logprobs
            self.interrupt()
        self.fields.merge(NAME, fields)

    def kind_of_thinking(self, number: int, style: str = "") -> Kind:
        """Return whether a block is thinking or a plan."""
        if style == PLAN:
            self._plans.add(number)
        return "plan" if number in self._plans else "thinking"

    def add_late_state(self, item: OpaqueState) -> None:
        """Write state of a block that has ended: the index of its frame says whose it is."""
        (self.open_or_closed(item.block) or self.block_of(item.block, "text")).add_state(item.opaque)

    def add_block_fields(self, item: BlockFields) -> None:
        """Write fields of a block, after its end too."""
        (self.open_or_closed(item.block) or self.block_of(item.block, "text")).add_fields(item.fields)

    def _write_last(self, delta: JsonObject) -> None:
        logprobs = {"logprobs": self.frames.logprobs} if self.frames.logprobs else {}
        extension = {"bardo": self.extension} if self.extension else {}
        delta = {**delta, "usage": encode_usage(self.usage)}
        if self._message.fields:
            delta["message"] = self._message.fields
        self.frames.logprobs = []
        self.frames.write("message-end", delta=delta, **self.fields.fields, **logprobs, **extension)
        self.frames.close()


def encode_response(response: Response, request: Request) -> bytes:
    """Encode one whole reply. The dialect has no place for the model's name."""
    collector = CohereCollector()
    write_response(Encoder(request, collector), response)
    return encode_json(collector.reply)
