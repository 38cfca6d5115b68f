"""Blocks to chat messages: what a provider gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.catalog.rows import Quirks
from bardo.dialects.openai_chat.choice import GEMINI, NAME
from bardo.dialects.openai_chat.details import write_details
from bardo.values.blocks import (
    Block,
    Carried,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
    fields_for,
)
from bardo.values.degradation import Degradation
from bardo.values.request import Message


class MessageWriter:
    """Writes the messages of one request, and notes in `degraded` what has no place in them."""

    def __init__(self, quirks: Quirks) -> None:
        self._quirks = quirks
        self.degraded: list[Degradation] = []

    def write(self, message: Message) -> list[dict[str, Any]]:
        """Return the wire messages of one message: tool results are messages of their own."""
        self._note_carried(message.carried)
        if message.role == "assistant":
            return [self._assistant(message)]
        results = [block for block in message.blocks if isinstance(block, ToolResultBlock)]
        others = [block for block in message.blocks if not isinstance(block, ToolResultBlock)]
        written = [self._result(result) for result in results]
        if others or not results:
            written.append({"role": message.role, "content": self._content(others), **self._carried(message)})
        return written

    def _carried(self, message: Message) -> dict[str, Any]:
        return dict(fields_for(NAME, message.carried))

    def _note_carried(self, carried: Carried | None) -> None:
        if carried is not None and carried.dialect != NAME:
            for name, value in carried.fields.items():
                self.degraded.append(Degradation(name, asked=value, why="Chat Completions has no such field"))

    def _result(self, result: ToolResultBlock) -> dict[str, Any]:
        self._note_carried(result.carried)
        text = result.text if all(isinstance(block, TextBlock) for block in result.content) else None
        if text is None:
            text = self._flat_result(result)
        if not result.call_id and result.name:
            return {"role": "function", "name": result.name, "content": text}
        return {"role": "tool", "tool_call_id": result.call_id, "content": text}

    def _flat_result(self, result: ToolResultBlock) -> str:
        lost = sum(not isinstance(block, TextBlock) for block in result.content)
        why = "a tool result is text in Chat Completions"
        self.degraded.append(Degradation("tool_result", asked=f"{lost} parts that are not text", why=why))
        return result.text

    def _content(self, blocks: Sequence[Block]) -> str | list[dict[str, Any]]:
        if all(isinstance(block, TextBlock) and not fields_for(NAME, block.carried) for block in blocks):
            if len(blocks) == 1:
                self._note_carried(blocks[0].carried)  # type: ignore[union-attr]
                return blocks[0].text  # type: ignore[union-attr]
            if not blocks:
                return ""
        return [part for block in blocks for part in self._part(block)]

    def _part(self, block: Block) -> list[dict[str, Any]]:
        match block:
            case TextBlock():
                self._note_carried(block.carried)
                return [{"type": "text", "text": block.text, **fields_for(NAME, block.carried)}]
            case ImageBlock():
                return [self._image(block)]
            case UnknownBlock(dialect=dialect, value=value) if dialect == NAME:
                return [value]
            case UnknownBlock(dialect=dialect, value=value):
                kind = value.get("type") if isinstance(value, dict) else None
                why = "Chat Completions has no such content"
                self.degraded.append(Degradation(f"content.{kind or dialect}", asked=kind, why=why))
                return []
            case RefusalBlock(text=text):
                return [{"type": "refusal", "refusal": text}]
            case _:
                return []

    def _image(self, block: ImageBlock) -> dict[str, Any]:
        self._note_carried(block.carried)
        url = block.url or f"data:{block.media_type};base64,{block.data}"
        image = {"url": url, "detail": block.detail} if block.detail else {"url": url}
        return {"type": "image_url", "image_url": image, **fields_for(NAME, block.carried)}

    def _assistant(self, message: Message) -> dict[str, Any]:
        thoughts = [block for block in message.blocks if isinstance(block, ReasoningBlock)]
        calls = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
        refusals = [block for block in message.blocks if isinstance(block, RefusalBlock)]
        others = [block for block in message.blocks if isinstance(block, TextBlock | ImageBlock | UnknownBlock)]
        # Several blocks of text were one answer, cut only by what stood between them.
        texts = [block for block in others if isinstance(block, TextBlock)]
        content: Any = "".join(block.text for block in texts) if len(texts) == len(others) else self._content(others)
        written: dict[str, Any] = {"role": "assistant", "content": content or None, **self._carried(message)}
        for block in texts:
            self._note_carried(block.carried)
        if refusals:
            written["refusal"] = "".join(block.text for block in refusals)
        if calls:
            written["tool_calls"] = [self._call(call) for call in calls]
        self._replay(thoughts, written)
        return written

    def _call(self, call: ToolCallBlock) -> dict[str, Any]:
        self._note_carried(call.carried)
        written: dict[str, Any] = {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments or "{}"},
            **fields_for(NAME, call.carried),
        }
        for state in call.opaque:
            if state.format == GEMINI and self._quirks.thought_signatures:
                written["extra_content"] = {"google": {"thought_signature": state.data}}
            else:
                self._drop(state.format)
        return written

    def _replay(self, thoughts: list[ReasoningBlock], written: dict[str, Any]) -> None:
        """Give earlier reasoning back in the form this provider takes."""
        if not thoughts:
            return
        text = "\n\n".join(readable for block in thoughts if (readable := block.readable))
        match self._quirks.replay:
            case "reasoning_details":
                written["reasoning_details"] = [
                    piece for index, block in enumerate(thoughts) for piece in write_details(block, index)
                ]
            case "reasoning_content" | "reasoning" as field if text:
                written[field] = text
            case "content_list" if text:
                inner = [{"type": "text", "text": text}]
                answer = [{"type": "text", "text": written["content"]}] if written["content"] else []
                written["content"] = [{"type": "thinking", "thinking": inner}, *answer]
            case "think_tags" if text:
                written["content"] = f"<think>{text}</think>{written['content'] or ''}"
            case _:
                self._drop(thoughts[0].format)

    def _drop(self, style: str) -> None:
        why = "this provider takes no earlier reasoning of that form"
        self.degraded.append(Degradation("reasoning", asked=style, why=why))
