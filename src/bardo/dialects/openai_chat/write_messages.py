"""Blocks to chat messages: what a provider gets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from bardo.catalog.rows import Quirks
from bardo.dialects.openai_chat.encode_whole import write_call
from bardo.dialects.openai_chat.extra import merge_extra, write_states
from bardo.dialects.openai_chat.replay import Replay, given_back
from bardo.dialects.openai_chat.words import GEMINI, NAME
from bardo.values.blocks import (
    Block,
    Carried,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
    argument_text,
    fields_for,
)
from bardo.values.degradation import Degradation, DegradationList
from bardo.values.request import Message

Parts = str | list[dict[str, Any]]


class MessageWriter:
    """Writes the messages of one request, and notes in `degraded` what has no place in them."""

    def __init__(self, quirks: Quirks) -> None:
        self._quirks = quirks
        self._noted: set[str] = set()
        self.degraded = DegradationList()

    def write(self, message: Message) -> list[dict[str, Any]]:
        """Return the wire messages of one message: tool results are messages of their own."""
        for carried in _carried_by(message):
            self.note_carried(carried)
        if message.role == "assistant":
            return [self._assistant(message)]
        results = [block for block in message.blocks if isinstance(block, ToolResultBlock)]
        others = [block for block in message.blocks if not isinstance(block, ToolResultBlock)]
        others = [*self._pictures(results), *others]
        written = [self._result(result) for result in results]
        if others or not results:
            written.append(
                {"role": message.role, "content": self._content(others), **fields_for(NAME, message.carried)}
            )
        return written

    def note_carried(self, carried: Carried | None) -> None:
        """Report the fields of another dialect, each name once."""
        if carried is not None and carried.dialect != NAME:
            for name, value in carried.fields.items():
                self._note(name, value, "Chat Completions has no such field")

    def _note(self, what: str, asked: Any, why: str, sent: Any = None) -> None:
        if what not in self._noted:
            self._noted.add(what)
            self.degraded.add(Degradation(what, asked=asked, sent=sent, why=why))

    def _drop_state(self, style: str, sent: str | None = None) -> None:
        why = "this provider takes no earlier reasoning of that form"
        self.degraded.add(Degradation("reasoning", asked=style or "text", sent=sent, why=why))

    def _result(self, result: ToolResultBlock) -> dict[str, Any]:
        if result.is_error:
            why = "Chat Completions does not tell a failed tool from another"
            self._note("tool_result.is_error", asked=True, why=why)
        content = self._content([block for block in result.content if not isinstance(block, ImageBlock)])
        if not result.call_id and result.name:
            return {"role": "function", "name": result.name, "content": content}
        return {"role": "tool", "tool_call_id": result.call_id, "content": content, **fields_for(NAME, result.carried)}

    def _pictures(self, results: Sequence[ToolResultBlock]) -> list[ImageBlock]:
        """Return the images among the results, which go into the user's message after them."""
        images = [block for result in results for block in result.content if isinstance(block, ImageBlock)]
        if images:
            why = "the result of a tool is text in Chat Completions"
            self._note("tool_result.image", asked="in the result", sent="in a user message after it", why=why)
        return images

    def _content(self, blocks: Sequence[Block]) -> Parts:
        parts = [part for block in blocks if (part := self._part(block)) is not None]
        if not parts:
            return ""
        only = parts[0] if len(parts) == 1 else {}
        return str(only["text"]) if only.keys() == {"type", "text"} else parts

    def _part(self, block: Block) -> dict[str, Any] | None:
        match block:
            case TextBlock():
                return {"type": "text", "text": block.text, **fields_for(NAME, block.carried)}
            case ImageBlock():
                return _image(block)
            case RefusalBlock(text=text):
                return {"type": "refusal", "refusal": text}
            case UnknownBlock(dialect=dialect, value=value) if dialect == NAME:
                return value if isinstance(value, dict) and "tool_call" not in value else None
            case UnknownBlock(dialect=dialect, value=value):
                kind = value.get("type") if isinstance(value, dict) else None
                self._note(f"content.{kind or dialect}", asked=kind, why="Chat Completions has no such content")
            case _:
                self._note(f"content.{type(block).__name__}", asked=None, why="it has no place in this message")
        return None

    def _assistant(self, message: Message) -> dict[str, Any]:
        texts = [block for block in message.blocks if isinstance(block, TextBlock)]
        content = self._answer(
            [block for block in message.blocks if isinstance(block, TextBlock | ImageBlock | UnknownBlock)]
        )
        calls = [call for block in message.blocks for call in self._calls(block)]
        carried = dict(fields_for(NAME, message.carried))
        written: dict[str, Any] = {"role": "assistant", "content": content or (None if calls else "")}
        refusals = [block.text for block in message.blocks if isinstance(block, RefusalBlock)]
        if refusals:
            written |= {"content": content or None, "refusal": "".join(refusals)}
        for name, call in calls:
            written |= {name: call} if name == "function_call" else {name: [*written.get(name, ()), call]}
        extra = write_states(self._kept(state for block in texts for state in block.opaque))
        if extra:
            carried["extra_content"] = merge_extra(extra, carried.get("extra_content") or {})
        thoughts = [block for block in message.blocks if isinstance(block, ReasoningBlock)]
        self._give_back(thoughts, written)
        return written | carried

    def _answer(self, blocks: Sequence[Block]) -> Parts:
        """Return the content; several blocks of text were one answer, cut only by what stood between them."""
        if all(isinstance(block, TextBlock) and not fields_for(NAME, block.carried) for block in blocks):
            return "".join(block.text for block in blocks if isinstance(block, TextBlock))
        return self._content(blocks)

    def _calls(self, block: Block) -> list[tuple[str, Any]]:
        """Return a call as (the field it stands in, its value)."""
        if isinstance(block, UnknownBlock) and block.dialect == NAME and isinstance(block.value, dict):
            return [("tool_calls", block.value["tool_call"])] if "tool_call" in block.value else []
        if not isinstance(block, ToolCallBlock):
            return []
        own = fields_for(NAME, block.carried)
        if own.get("function_call"):
            return [("function_call", {"name": block.name, "arguments": argument_text(block.arguments)})]
        arguments = block.arguments if own.get("type") == "custom" else argument_text(block.arguments)
        states = tuple(self._kept(block.opaque))
        return [("tool_calls", write_call(msgspec.structs.replace(block, arguments=arguments, opaque=states)))]

    def _kept(self, states: Iterable[Opaque]) -> list[Opaque]:
        """Return the states of texts and calls this provider takes back; report the others."""
        kept: list[Opaque] = []
        for state in states:
            if state.format == GEMINI and state.kind == "signature" and self._quirks.thought_signatures:
                kept.append(state)
            else:
                self._drop_state(state.format)
        return kept

    def _give_back(self, thoughts: Sequence[ReasoningBlock], written: dict[str, Any]) -> None:
        replay: Replay = given_back(thoughts, self._quirks.replay, written["content"])
        written |= replay.fields
        for style in replay.lost:
            self._drop_state(style, sent=self._quirks.replay if replay.fields else None)


def _carried_by(message: Message) -> Iterable[Carried | None]:
    yield message.carried
    for block in message.blocks:
        if isinstance(block, ToolResultBlock):
            yield from (part.carried for part in block.content if not isinstance(part, UnknownBlock))
        if not isinstance(block, UnknownBlock):
            yield block.carried


def _image(block: ImageBlock) -> dict[str, Any]:
    url = block.url or f"data:{block.media_type};base64,{block.data}"
    image = {"url": url, "detail": block.detail} if block.detail else {"url": url}
    return {"type": "image_url", "image_url": image, **fields_for(NAME, block.carried)}
