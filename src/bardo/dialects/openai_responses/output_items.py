"""Messages written as input items for a provider.

Reasoning goes back by its ciphertext and beside the item it led to; what this provider could not read is left out and reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.catalog.rows import ProviderRow
from bardo.dialects.openai_responses.notes import Notes
from bardo.dialects.openai_responses.state import FORMAT, NAME, is_native
from bardo.values.blocks import (
    Block,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
    argument_text,
    fields_for,
)
from bardo.values.request import Message, Request


def write_input(request: Request, row: ProviderRow, notes: Notes) -> tuple[str, list[dict[str, Any]]]:
    """Return the instructions and the input items. Leading system messages are instructions, unless they came as items."""
    leading: list[str] = []
    writer = _Writer(request, row, notes)
    for index, message in enumerate(request.messages):
        if index == len(leading) and _is_instruction(message):
            leading.append(message.text)
            for block in message.blocks:
                notes.foreign(getattr(block, "carried", None))
            notes.foreign(message.carried)
        else:
            writer.write(message)
    return "\n\n".join(leading), writer.items


def _is_instruction(message: Message) -> bool:
    plain = all(isinstance(block, TextBlock) for block in message.blocks)
    return message.role == "system" and plain and "role" not in fields_for(NAME, message.carried)


class _Writer:
    def __init__(self, request: Request, row: ProviderRow, notes: Notes) -> None:
        self.items: list[dict[str, Any]] = []
        self._own = request.dialect == NAME
        self._row = row
        self._notes = notes

    def write(self, message: Message) -> None:
        """Write one message as one or several items."""
        self._notes.foreign(message.carried)
        if message.role == "assistant":
            self._write_turn(message)
        else:
            self._write_prompt(message)

    def _write_prompt(self, message: Message) -> None:
        parts: list[dict[str, Any]] = []
        for block in message.blocks:
            if isinstance(block, ToolResultBlock):
                self._prompt(message, parts)
                parts = []
                self._result(block)
            elif (part := self._part(block)) is not None:
                parts.append(part)
        self._prompt(message, parts)

    def _prompt(self, message: Message, parts: list[dict[str, Any]]) -> None:
        if not parts:
            return
        role = "user" if message.role == "user" else "system"
        content = parts[0]["text"] if len(parts) == 1 and parts[0].keys() == {"type", "text"} else parts
        self.items.append({"type": "message", "role": role, "content": content, **fields_for(NAME, message.carried)})

    def _part(self, block: Block) -> dict[str, Any] | None:
        match block:
            case TextBlock() | RefusalBlock():
                self._notes.foreign(block.carried)
                self._notes.state(block.opaque if isinstance(block, TextBlock) else ())
                return {"type": "input_text", "text": block.text, **fields_for(NAME, block.carried)}
            case ImageBlock():
                self._notes.foreign(block.carried)
                return _image(block)
            case UnknownBlock(dialect=dialect, value=value) if dialect == NAME and isinstance(value, dict):
                return value
            case UnknownBlock(dialect=dialect):
                self._notes.once("content", asked=_kind(block), why=f"{NAME} has no such content")
            case _:
                self._notes.once("content", asked=type(block).__name__, why="only the model's own turns hold this")
        return None

    def _result(self, block: ToolResultBlock) -> None:
        self._notes.foreign(block.carried)
        if block.is_error:
            self._notes.add("tool_result.is_error", asked=True, why=f"{NAME} has no such field; the text stays")
        parts = [part for one in block.content if (part := self._part(one)) is not None]
        plain = all(part.keys() == {"type", "text"} for part in parts)
        output = block.text if plain and len(parts) < 2 else parts
        own = fields_for(NAME, block.carried)
        self.items.append({"type": "function_call_output", "call_id": block.call_id, "output": output, **own})

    def _write_turn(self, message: Message) -> None:
        said: list[TextBlock | RefusalBlock] = []
        begin = len(self.items)
        for block in message.blocks:
            if isinstance(block, TextBlock | RefusalBlock):
                if said and _begins_message(block, said[0]):
                    self._answer(said)
                    said = []
                said.append(block)
                continue
            self._answer(said)
            said = []
            self._write_other(block)
        self._answer(said)
        self._drop_last_reasoning(begin)

    def _write_other(self, block: Block) -> None:
        match block:
            case ReasoningBlock():
                self._reasoning(block)
            case ToolCallBlock():
                self._call(block)
            case ToolResultBlock():
                self._result(block)
            case UnknownBlock(dialect=dialect, value=value) if dialect == NAME and isinstance(value, dict):
                self.items.append(value)
            case _:
                self._notes.once("content", asked=_kind(block), why=f"{NAME} has no such content in an answer")

    def _answer(self, blocks: Sequence[TextBlock | RefusalBlock]) -> None:
        parts = [part for block in blocks if (part := self._answer_part(block)) is not None]
        if not parts:
            return
        meta = fields_for(NAME, blocks[0].carried).get("item") or {}
        plain = not meta and len(parts) == 1 and parts[0]["type"] == "output_text" and not parts[0]["annotations"]
        content = parts[0]["text"] if plain else parts
        self.items.append({"type": "message", "role": "assistant", "content": content, **meta})

    def _answer_part(self, block: TextBlock | RefusalBlock) -> dict[str, Any] | None:
        self._notes.foreign(block.carried)
        own = {name: value for name, value in fields_for(NAME, block.carried).items() if name != "item"}
        if isinstance(block, RefusalBlock):
            return {"type": "refusal", "refusal": block.text, **own}
        self._notes.state(block.opaque)
        if not block.text and block.carried is None:
            return None
        return {"type": "output_text", "text": block.text, "annotations": [], **own}

    def _call(self, block: ToolCallBlock) -> None:
        self._notes.foreign(block.carried)
        self._notes.state(block.opaque)
        arguments = argument_text(block.arguments)
        call = {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": arguments}
        self.items.append({**call, **fields_for(NAME, block.carried)})

    def _reasoning(self, block: ReasoningBlock) -> None:
        own = {name: value for name, value in fields_for(NAME, block.carried).items() if name != "status"}
        known = own if "format" in own else {"format": self._row.quirks.reasoning_format}
        native: dict[str, str] = {opaque.kind: opaque.data for opaque in block.opaque if is_native(opaque, known)}
        foreign = [opaque for opaque in block.opaque if not is_native(opaque, known)]
        shown = bool(block.text) and self._replays_text(native)
        if foreign or not ("encrypted" in native or shown or (self._own and native)):
            form = foreign[0].format if foreign else block.format
            self._notes.reasoning(form, "this provider takes back only reasoning of its own")
            return
        self._notes.foreign(block.carried)
        item: dict[str, Any] = {"type": "reasoning", **({"id": native["id"]} if "id" in native else {})}
        item["summary"] = [{"type": "summary_text", "text": text} for text in block.summary]
        if shown:
            item["content"] = [{"type": "reasoning_text", "text": block.text}]
        if "encrypted" in native:
            item["encrypted_content"] = native["encrypted"]
        self.items.append({**item, **own})

    def _replays_text(self, native: dict[str, str]) -> bool:
        # OpenAI refuses plain text beside its ciphertext; servers that have no ciphertext need the text.
        return "encrypted" not in native and (self._row.quirks.replay != "none" or (self._own and "id" in native))

    def _drop_last_reasoning(self, begin: int) -> None:
        """Leave out reasoning that led to nothing: OpenAI refuses it without the item that follows."""
        while len(self.items) > begin and _is_openai_reasoning(self.items[-1]):
            self.items.pop()
            self._notes.reasoning(FORMAT, "reasoning is refused without the item it led to")


def _begins_message(block: TextBlock | RefusalBlock, first: TextBlock | RefusalBlock) -> bool:
    item = fields_for(NAME, block.carried).get("item")
    held = fields_for(NAME, first.carried).get("item") or {}
    return item is not None and (item.get("id") is None or item.get("id") != held.get("id"))


def _is_openai_reasoning(item: dict[str, Any]) -> bool:
    return item.get("type") == "reasoning" and "encrypted_content" in item and "format" not in item


def _image(block: ImageBlock) -> dict[str, Any]:
    url = block.url or f"data:{block.media_type};base64,{block.data}"
    detail = {"detail": block.detail} if block.detail else {}
    return {"type": "input_image", "image_url": url, **detail, **fields_for(NAME, block.carried)}


def _kind(block: Block) -> str:
    value = block.value if isinstance(block, UnknownBlock) else None
    name = value.get("type") if isinstance(value, dict) else None
    return name if isinstance(name, str) else type(block).__name__
