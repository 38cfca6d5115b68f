"""Encode a reply as an interaction, streamed step by step or whole.

Each step has a start, deltas and a stop, all with its index. The last event has the totals, fields of the reply, and bardo's own `bardo`
object.
"""

from __future__ import annotations

from collections.abc import Iterable

from bardo.dialects.gemini.wire import RAW_ARGUMENTS, arguments_object
from bardo.dialects.gemini_interactions.errors import error_fields
from bardo.dialects.gemini_interactions.step_objects import StepObject, as_list, output_contents, signed
from bardo.dialects.gemini_interactions.usage import encode_usage
from bardo.dialects.gemini_interactions.wire import NAME, status_of
from bardo.dialects.shared.blocks import BlockWriter, Kind
from bardo.dialects.shared.json_values import JsonObject, encode_json
from bardo.dialects.shared.serial_encoder import SerialEncoder, write_response
from bardo.dialects.shared.spellings import stamp_of
from bardo.streams.sse import KEEP_ALIVE, encode_sse
from bardo.values.blocks import Opaque, ToolCallBlock
from bardo.values.errors import BardoError
from bardo.values.events import BlockFields, Finish, OpaqueState
from bardo.values.request import Request
from bardo.values.response import Response

_EMPTY: dict[Kind, JsonObject] = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thought_signature"},
    "tool_call": {"type": "arguments_delta", "arguments": ""},
}
_DELTA_END = b',"event_type":"step.delta"}\n\n'
_PIECES: dict[Kind, bytes] = {
    "text": b'"delta":{"type":"text","text":',
    "thinking": b'"delta":{"type":"thought_summary","content":{"type":"text","text":',
    "tool_call": b'"delta":{"type":"arguments_delta","arguments":',
}


class StepFrames:
    """The frames in order, how many steps there are, and of which type the last one is."""

    streamed = True

    def __init__(self) -> None:
        self.last_type = ""
        self._count = 0
        self._out: list[bytes] = []

    def take(self) -> list[bytes]:
        """Return the frames written since the last time."""
        out, self._out = self._out, []
        return out

    def write(self, kind: str, **fields: object) -> None:
        """Write one event."""
        self._out.append(encode_sse(encode_json({**fields, "event_type": kind}), kind))

    def close(self) -> None:
        """Write the end of the stream."""
        self._out.append(b"event: done\ndata: [DONE]\n\n")

    def start(self, step: StepObject) -> int:
        """Begin a step; return its index."""
        self._count += 1
        self.last_type = str(step.get("type")) if isinstance(step, dict) else ""
        self.write("step.start", index=self._count - 1, step=step)
        return self._count - 1

    def delta(self, index: int, delta: JsonObject) -> None:
        """Write a piece of a step."""
        self.write("step.delta", index=index, delta=delta)

    def piece(self, block: StepWriter, text: str) -> None:
        """Write a piece of text, of arguments, or of an item of a summary that goes on."""
        self._out.append(block.frame(text))

    def stop(self, index: int) -> None:
        """End a step."""
        self.write("step.stop", index=index)

    def write_block(self, block: StepObject) -> None:
        """Write a step that is complete."""
        step, contents = output_contents(block)
        index = self.start(step)
        for content in contents:
            self.delta(index, content)
        self.stop(index)


class InteractionCollector(StepFrames):
    """Collect one whole interaction. `interaction` is complete after the encoder's end."""

    streamed = False

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[StepObject] = []
        self.interaction: JsonObject = {}

    def write(self, kind: str, **fields: object) -> None:
        """Take the start of the interaction, or its end."""
        interaction = fields.get("interaction")
        self.interaction |= interaction if isinstance(interaction, dict) else {}

    def start(self, step: StepObject) -> int:
        """Begin a step."""
        self.steps.append(dict(step))
        return super().start(step)

    def piece(self, block: StepWriter, text: str) -> None:
        """Take a piece of text or of arguments."""
        step = self.steps[block.index]
        if block.kind == "thinking":
            step["summary"][-1]["text"] += text
        elif block.kind == "text":
            _text_of(step)["text"] += text
        else:
            step["arguments"] = text if isinstance(step["arguments"], dict) else step["arguments"] + text

    def delta(self, index: int, delta: JsonObject) -> None:
        """Add a delta to its step: items to their lists, fields in their place."""
        step = self.steps[index]
        fields = dict(delta) if isinstance(delta, dict) else {"deltas": [delta]}
        match fields.pop("type", None):
            case "thought_summary":
                step.setdefault("summary", []).append(fields["content"])
            case "text_annotation_delta":
                _text_of(step).setdefault("annotations", []).extend(as_list(fields["annotations"]))
            case "text":
                content = _text_of(step)
                content |= {name: value for name, value in fields.items() if name != "text"}
            case "thought_signature" | "arguments_delta":
                step |= {name: value for name, value in fields.items() if name != "arguments"}
            case _:
                step.setdefault("deltas", []).append(delta)

    def stop(self, index: int) -> None:
        """Complete a step: arguments are an object there."""
        arguments = self.steps[index].get("arguments")
        if isinstance(arguments, str):
            self.steps[index]["arguments"] = arguments_object(arguments)[0]

    def write_block(self, block: StepObject) -> None:
        """Take a step that is complete."""
        self.stop(self.start(block))

    def text(self, text: str) -> None:
        """Take a text."""
        self.start({"type": "model_output", "content": [{"type": "text", "text": text}]})

    def thinking(self, parts: Iterable[str]) -> None:
        """Take a thought."""
        summary = [{"type": "text", "text": text} for text in parts]
        self.start({"type": "thought", **({"summary": summary} if summary else {})})

    def call(self, call: ToolCallBlock) -> None:
        """Take a call."""
        self.start(_call(call.id, call.name, arguments_object(call.arguments)[0]))


def _text_of(step: JsonObject) -> JsonObject:
    content: JsonObject = step.setdefault("content", [{"type": "text", "text": ""}])[0]
    return content


def _call(call_id: str, name: str, arguments: JsonObject) -> JsonObject:
    return {"type": "function_call", "id": call_id, "name": name, "arguments": arguments}


class StepWriter(BlockWriter):
    """Write one step. Thoughts begin at once, calls with their name, text with its first piece.

    Opaque state becomes the signature when the step ends. What comes after the end is written at once: the index says whose it is.
    """

    __slots__ = ("_ended", "_frames", "_prefix", "_step", "_suffix", "index")

    def __init__(self, number: int, kind: Kind, frames: StepFrames, *, hidden: bool = False) -> None:
        super().__init__(number, kind, hidden=hidden)
        self.index = -1
        self._frames = frames
        self._ended = False
        self._step: JsonObject = {"type": "thought" if kind == "thinking" else "model_output"}
        self._prefix = self._suffix = b""
        if kind == "thinking":
            self._begin()

    def frame(self, text: str) -> bytes:
        """Return the frame of one further piece."""
        return self._prefix + encode_json(text) + self._suffix

    def piece(self, text: str) -> None:
        """Write a piece of text, of arguments, or of an item of a summary that goes on. An empty text waits: a signature may follow."""
        if not text and self.kind == "text" and self.index < 0 and not self._ended:
            return
        self._begin()
        self._frames.piece(self, text)
        self.begun, self.repeats = True, self._frames.streamed and not self.hidden

    def item(self, text: str) -> None:
        """Begin an item of a summary."""
        self._frames.delta(self.index, {"type": "thought_summary", "content": {"type": "text", "text": text}})
        self.begun, self.repeats = True, self._frames.streamed and not self.hidden

    def name_call(self, call_id: str, name: str) -> None:
        """Write the start of a call, once."""
        if self.index < 0:
            self._step = _call(call_id, name, {})
            self._begin()

    def add_fields(self, fields: JsonObject) -> None:
        """Write fields of the step: those around a text in its start, others as deltas."""
        rest = dict(fields)
        if self.kind == "text" and self.index < 0:
            further = rest.pop("step", None)
            self._step |= further if isinstance(further, dict) else {}
        self._begin()
        if self.kind == "text" and "annotations" in rest:
            self._frames.delta(self.index, {"type": "text_annotation_delta", "annotations": rest.pop("annotations")})
        if self.kind == "thinking":
            for item in as_list(rest.pop("summary", None)):
                self._frames.delta(self.index, {"type": "thought_summary", "content": item})
        for delta in as_list(rest.pop("deltas", None)):
            self._frames.delta(self.index, delta)
        if rest:
            self._frames.delta(self.index, {**_EMPTY[self.kind], **rest})

    def add_state(self, state: Opaque) -> None:
        """Keep opaque state for the end of the step; a later one of its kind replaces it."""
        if self._ended:
            self._sign((state,))
        else:
            super().add_state(state)

    def end(self) -> None:
        """Write the signature and the end. A text that is nothing but the place of a signature becomes a thought, as Google writes it."""
        self._ended = True
        if self.kind == "text" and not self.begun:
            if self.states and self.index < 0:
                self._step = {"type": "thought"}
            else:
                self.piece("")
        self._begin()
        self._sign(self.states.states())
        self._frames.stop(self.index)

    def _begin(self) -> None:
        if self.index >= 0:
            return
        if self.kind == "tool_call" and self._step["type"] != "function_call":
            self._step = _call("", "", {})
        self.index = self._frames.start(self._step)
        self._prefix = b'event: step.delta\ndata: {"index":%d,' % self.index + _PIECES[self.kind]
        # A piece of a summary is an item of its own for the dialect: that it goes on with the one before is bardo's word.
        self._suffix = (b'},"continues":true}' if self.kind == "thinking" else b"}") + _DELTA_END

    def _sign(self, states: tuple[Opaque, ...]) -> None:
        if states:
            self._frames.delta(self.index, {"type": "thought_signature", **signed(states)})


class Encoder(SerialEncoder[StepWriter, StepFrames]):
    """Encode one streamed reply."""

    name = NAME
    content_type = "text/event-stream"
    keep_alive = KEEP_ALIVE

    def __init__(self, request: Request, frames: StepFrames | None = None) -> None:
        super().__init__(request, frames or StepFrames())

    def open_block(self, number: int, kind: Kind) -> StepWriter:
        """Return the writer of a new step."""
        return StepWriter(number, kind, self.frames, hidden=self.hides_thinking and kind == "thinking")

    def write_start(self) -> None:
        """Write `interaction.created`, and that it is in progress."""
        opening = {"id": self.start.id, "status": "in_progress", "object": "interaction", "model": self.start.model}
        self.frames.write("interaction.created", interaction=opening)
        self.frames.write("interaction.status_update", interaction_id=self.start.id, status="in_progress")

    def write_end(self, *, calls: bool) -> None:
        """Write `interaction.completed`."""
        created = stamp_of(self.start.created)
        finish = self.finish_event or Finish("unknown")
        interaction = {
            "id": self.start.id,
            "status": status_of(finish, called=self.frames.last_type == "function_call"),
            "usage": encode_usage(self.usage),
            "created": created,
            "updated": created,
            "service_tier": "standard",
            "object": "interaction",
            "model": self.start.model,
            **self.fields.fields,
            "bardo": self.extension or None,
        }
        fields = {name: value for name, value in interaction.items() if value is not None}
        self.frames.write("interaction.completed", interaction=fields)
        self.frames.close()

    def write_error(self, error: BardoError) -> None:
        """Write the `error` event."""
        own = {"bardo": self.extension} if self.extension else {}
        self.frames.write("error", error=error_fields(error), **own)
        self.frames.close()

    def fail(self, error: BardoError) -> None:
        """End an open step too, unless it is a call: the error belongs to the interaction."""
        self.begin()
        self.drain(broken=True)
        super().fail(error)

    def write_thinking(self, block: StepWriter, text: str, part: int | None) -> None:
        """Write a piece of thinking: each part of a summary is an item."""
        if block.hidden or not text:
            return
        goes_on = block.begun and part == block.part
        block.part = part
        if goes_on:
            block.piece(text)
        else:
            block.item(text)

    def add_late_state(self, item: OpaqueState) -> None:
        """Write state of a step that has ended: its index says whose it is."""
        (self.open_or_closed(item.block) or self.block_of(item.block, "text")).add_state(item.opaque)

    def add_block_fields(self, item: BlockFields) -> None:
        """Write fields of a step, after its end too."""
        (self.open_or_closed(item.block) or self.block_of(item.block, "text")).add_fields(item.fields)


def encode_response(response: Response, request: Request) -> bytes:
    """Encode one whole reply."""
    collector = InteractionCollector()
    write_response(Encoder(request, collector), response, wraps="function_call.arguments", key=RAW_ARGUMENTS)
    return encode_json({**collector.interaction, "steps": collector.steps})
