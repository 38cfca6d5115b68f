"""Collect the blocks of a reply into one whole message, in the fields that a client would collect the deltas in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bardo.dialects.openai_chat.carried import add_carried, unflatten
from bardo.dialects.openai_chat.constants import NAME, encode_finish
from bardo.dialects.openai_chat.details import encode_position, is_bare, piece_of_text
from bardo.dialects.openai_chat.encode_messages import call_object
from bardo.dialects.openai_chat.encode_thinking import ThinkingWriter
from bardo.dialects.openai_chat.extra import encode_states, merge_extra
from bardo.values.blocks import (
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
    fields_for,
    has_no_arguments,
)
from bardo.values.events import BlockFields, OpaqueState, ThinkChunk, ThinkStart
from bardo.values.response import Response


def encode_choices(response: Response) -> list[dict[str, Any]]:
    """Return all choices of a reply. Blocks of the dialect's own are numbered through them."""
    unknowns = 0
    choices: list[dict[str, Any]] = []
    for index, reply in enumerate((response, *response.alternatives)):
        collector = MessageCollector(unknowns)
        choices.append(collector.choice(index, reply))
        unknowns = collector.unknowns
    return choices


class MessageCollector:
    """Collects the message of one choice. `unknowns` is how many blocks of the dialect's own came before.

    It takes the deltas of a ThinkingWriter.
    """

    def __init__(self, unknowns: int = 0) -> None:
        self.unknowns = unknowns
        self._texts: list[str] = []
        self._length = 0
        self._thinking: list[str] = []
        self._details: list[dict[str, Any]] = []
        self._calls: list[dict[str, Any]] = []
        self._refusals: list[str] = []
        self._extra: dict[str, Any] = {}
        self._states = 0
        self._blocks: list[Any] = []
        self._writer = ThinkingWriter(self)

    def choice(self, index: int, reply: Response) -> dict[str, Any]:
        """Return the choice."""
        for number, block in enumerate(reply.blocks):
            _ADD[type(block)](self, number, block)
        message = self._message()
        fields: dict[str, Any] = {}
        if carried := fields_for(NAME, reply.choice_carried):
            more, fields = unflatten(carried)
            message = add_carried(message, more)
        finish = encode_finish(reply.finish, refused=bool(self._refusals))
        return {"index": index, "message": message, "finish_reason": finish, **fields}

    def thinking(self, choice: int, text: str) -> Sequence[bytes]:
        """Take thinking of which only the text is known."""
        self._thinking.append(text)
        return ()

    def detailed_thinking(self, choice: int, text: str, index: int) -> Sequence[bytes]:
        """Take text that goes on with the piece `index` of the details."""
        piece = {**piece_of_text(text, None), "index": index}
        return self.add(choice, {"reasoning_content": text, "reasoning_details": [piece]})

    def add(self, choice: int, delta: dict[str, Any]) -> Sequence[bytes]:
        """Take thinking with its details."""
        if "reasoning_content" in delta:
            self._thinking.append(delta["reasoning_content"])
        for piece in delta["reasoning_details"]:
            _add_detail(self._details, piece)
        return ()

    def _add_text(self, number: int, block: TextBlock) -> None:
        self._texts.append(block.text)
        self._length += len(block.text)
        for state in block.opaque:
            self._extra = merge_states(self._extra, encode_states([state], before=self._states))
            self._states += 1

    def _add_refusal(self, number: int, block: RefusalBlock) -> None:
        self._refusals.append(block.text)

    def _add_thinking(self, number: int, block: ReasoningBlock) -> None:
        writer = self._writer
        writer.start(ThinkStart(number, block.format), encode_position(self._length, len(self._calls)))
        if carried := fields_for(NAME, block.carried):
            writer.fields(BlockFields(number, NAME, carried))
        if block.text:
            writer.chunk(ThinkChunk(number, block.text))
        for part, text in enumerate(block.summary):
            writer.chunk(ThinkChunk(number, text, part))
        if block.opaque:
            # Its id is the first of its state in a stream.
            for state in sorted(block.opaque, key=lambda state: state.kind != "id"):
                writer.hold(OpaqueState(number, state))
            writer.release(None)

    def _add_call(self, number: int, block: ToolCallBlock) -> None:
        if not block.complete and has_no_arguments(block.arguments):
            # Clients take no arguments at all for an empty object.
            return
        fields = fields_for(NAME, block.carried)
        extra = fields.get("extra_content", {})
        for state in block.opaque:
            extra = merge_states(extra, encode_states([state]))
        carried = {**fields, "extra_content": extra} if block.opaque else fields
        self._calls.append(call_object(block.id, block.name, block.arguments, carried))

    def _add_unknown(self, number: int, block: UnknownBlock) -> None:
        if block.dialect == NAME:
            self._blocks.append({"index": self.unknowns, "block": block.value})
            self.unknowns += 1

    def _message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._texts) if self._texts else None}
        message["refusal"] = "".join(self._refusals) or None
        if self._thinking:
            message["reasoning_content"] = "".join(self._thinking)
        if self._details:
            message["reasoning_details"] = self._details
        if self._calls:
            message["tool_calls"] = self._calls
        if self._extra:
            message["extra_content"] = self._extra
        if self._blocks:
            message["content_blocks"] = self._blocks
        return message


_ADD: dict[type[ReplyBlock], Callable[[MessageCollector, int, Any], None]] = {
    TextBlock: MessageCollector._add_text,
    ReasoningBlock: MessageCollector._add_thinking,
    ToolCallBlock: MessageCollector._add_call,
    RefusalBlock: MessageCollector._add_refusal,
    UnknownBlock: MessageCollector._add_unknown,
}


def _add_detail(details: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """Add a piece of thinking: to the one before where that is of its index."""
    last = details[-1] if details and details[-1]["index"] == piece["index"] else None
    if last is None:
        details.append(dict(piece))
    else:
        kind = piece["type"] if is_bare(last) else last["type"]
        texts = {name: last.get(name, "") + piece[name] for name in ("text", "summary") if piece.get(name)}
        empty = [name for name in ("text", "summary") if name in piece and not piece[name]]
        last |= {name: value for name, value in piece.items() if name not in empty} | texts | {"type": kind}


def merge_states(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return two `extra_content` objects as one; both may hold state that bardo keeps there."""
    before, more = one.get("bardo"), other.get("bardo")
    merged = merge_extra(one, other)
    if isinstance(before, dict) and isinstance(more, dict) and "opaque" in before and "opaque" in more:
        merged["bardo"]["opaque"] = before["opaque"] | more["opaque"]
    return merged
