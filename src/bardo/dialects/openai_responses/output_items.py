"""Messages written as input items for a provider.

Reasoning goes back by its ciphertext and beside the item it led to; what this provider could not read is left out and reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.catalog.rows import ProviderRow
from bardo.dialects.documents import as_text, data_of, file_name
from bardo.dialects.losses import Losses
from bardo.dialects.openai_responses.free_input import only_text
from bardo.dialects.openai_responses.function_names import TOOL_SEARCH_OUTPUT
from bardo.dialects.openai_responses.state import FORMAT, NAME, is_native
from bardo.dialects.wire import input_of
from bardo.dialects.written_histories import fold_without_loss
from bardo.values.blocks import (
    Block,
    DocumentBlock,
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
from bardo.values.histories import Messages
from bardo.values.request import Message, Request

# What is found of a conversation once.
_WRITTEN = "openai_responses.written"


def encode_input(request: Request, row: ProviderRow, losses: Losses) -> tuple[str, list[dict[str, Any]]]:
    """Return the instructions and the input items. Leading system messages are instructions, unless they came as items.

    Where there is nothing else, the last one is an item: instructions without input are refused.
    """
    leading = 0
    while leading < len(request.messages) and _is_instruction(request.messages[leading]):
        leading += 1
    if 0 < leading == len(request.messages) and request.dialect != NAME:
        leading -= 1
    instructions = [message.paragraphs for message in request.messages[:leading]]
    writer = _Writer(request, row, losses)
    return "\n\n".join(instructions), writer.write_all(request.messages[leading:])


def _is_instruction(message: Message) -> bool:
    plain = all(isinstance(block, TextBlock) for block in message.blocks)
    return message.role == "system" and plain and "role" not in fields_for(NAME, message.carried)


class _Writer:
    def __init__(self, request: Request, row: ProviderRow, losses: Losses) -> None:
        self.items: list[dict[str, Any]] = []
        self._own = request.dialect == NAME
        self._row = row
        self._losses = losses

    def write_all(self, messages: Messages) -> list[dict[str, Any]]:
        """Return the items of a conversation. Those of messages that came before are shared: they must not be changed."""
        form = (self._own, self._row.quirks, self._losses.dialect, self._losses.markers)
        return fold_without_loss(messages, _WRITTEN, form, self._losses, [], self._extended)

    def _extended(self, written: list[dict[str, Any]], messages: Messages, place: int) -> list[dict[str, Any]]:
        self.items = [*written]
        for message in messages[place:]:
            if message.role == "assistant":
                self._encode_turn(message)
            else:
                self._encode_prompt(message)
        return self.items

    def _encode_prompt(self, message: Message) -> None:
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
                self._lose_states(block.opaque if isinstance(block, TextBlock) else ())
                return {"type": "input_text", "text": block.text, **fields_for(NAME, block.carried)}
            case ImageBlock():
                return _image(block)
            case DocumentBlock():
                return self._document(block)
            case UnknownBlock(dialect=dialect, value=value) if dialect == NAME and isinstance(value, dict):
                return value
            case UnknownBlock():
                return None
            case _:
                self._losses.lose_each("content", type(block).__name__, "only the model's own turns hold this")
        return None

    def _document(self, block: DocumentBlock) -> dict[str, Any]:
        fields = fields_for(NAME, block.carried)
        text = "" if self._own else as_text(block)
        if text:
            why = "Responses takes PDF as a file; a document that is text goes as text"
            self._losses.lose("document.form", "document", why, sent="text")
            return {"type": "input_text", "text": text, **fields}
        media_type, data = data_of(block)
        if not data:
            name = {"filename": block.name} if block.name else {}
            return {"type": "input_file", "file_url": block.url, **name, **fields}
        content = f"data:{media_type};base64,{data}"
        return {"type": "input_file", "filename": file_name(block), "file_data": content, **fields}

    def _result(self, block: ToolResultBlock) -> None:
        parts = [part for one in block.content if (part := self._part(one)) is not None]
        plain = all(part.keys() == {"type", "text"} for part in parts)
        output = block.text if plain and len(parts) < 2 else parts
        own = fields_for(NAME, block.carried)
        fixed: dict[str, Any] = {"type": "function_call_output", "call_id": block.call_id}
        if own.get("type") != TOOL_SEARCH_OUTPUT:
            fixed["output"] = output
        self.items.append({**fixed, **own})

    def _encode_turn(self, message: Message) -> None:
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
            self._encode_other(block)
        self._answer(said)
        self._drop_last_reasoning(begin)

    def _encode_other(self, block: Block) -> None:
        match block:
            case ReasoningBlock():
                self._reasoning(block)
            case ToolCallBlock():
                self._call(block)
            case ToolResultBlock():
                self._result(block)
            case UnknownBlock(dialect=dialect, value=value) if dialect == NAME and isinstance(value, dict):
                self.items.append(value)
            case UnknownBlock():
                return
            case _:
                self._losses.lose_each("content", type(block).__name__, f"{NAME} has no such content in an answer")

    def _answer(self, blocks: Sequence[TextBlock | RefusalBlock]) -> None:
        parts = [part for block in blocks if (part := self._answer_part(block)) is not None]
        if not parts:
            return
        meta = fields_for(NAME, blocks[0].carried).get("item") or {}
        plain = not meta and len(parts) == 1 and parts[0]["type"] == "output_text" and not parts[0]["annotations"]
        content = parts[0]["text"] if plain else parts
        self.items.append({"type": "message", "role": "assistant", "content": content, **meta})

    def _answer_part(self, block: TextBlock | RefusalBlock) -> dict[str, Any] | None:
        own = {name: value for name, value in fields_for(NAME, block.carried).items() if name != "item"}
        if isinstance(block, RefusalBlock):
            return {"type": "refusal", "refusal": block.text, **own}
        self._lose_states(block.opaque)
        if not block.text and block.carried is None:
            return None
        return {"type": "output_text", "text": block.text, "annotations": [], **own}

    def _call(self, block: ToolCallBlock) -> None:
        self._lose_states(block.opaque)
        arguments = argument_text(block.arguments)
        own = fields_for(NAME, block.carried)
        call: dict[str, Any] = {"type": "function_call", "call_id": block.id, "name": block.name}
        if own.get("type") == "custom_tool_call":
            call["input"] = only_text(arguments)
        elif own.get("type") == "tool_search_call":
            del call["name"]
            call["arguments"] = input_of(arguments)
        else:
            call["arguments"] = arguments
        self.items.append({**call, **own})

    def _reasoning(self, block: ReasoningBlock) -> None:
        own = {name: value for name, value in fields_for(NAME, block.carried).items() if name != "status"}
        known = own if "format" in own else {"format": self._row.quirks.reasoning_format}
        native: dict[str, str] = {opaque.kind: opaque.data for opaque in block.opaque if is_native(opaque, known)}
        foreign = [opaque for opaque in block.opaque if not is_native(opaque, known)]
        shown = bool(block.text) and self._replays_text(native)
        if foreign or not ("encrypted" in native or shown or (self._own and native)):
            form = foreign[0].format if foreign else block.format
            self._lose_reasoning(form, "this provider takes back only reasoning of its own")
            return
        self._losses.lose_fields(block.carried)
        item: dict[str, Any] = {"type": "reasoning", **({"id": native["id"]} if "id" in native else {})}
        item["summary"] = [{"type": "summary_text", "text": text} for text in block.summary]
        if shown:
            item["content"] = [{"type": "reasoning_text", "text": block.text}]
        if "encrypted" in native:
            item["encrypted_content"] = native["encrypted"]
        self.items.append({**item, **own})

    def _lose_states(self, states: tuple[Opaque, ...]) -> None:
        for opaque in states:
            self._lose_reasoning(opaque.format, "this provider cannot read opaque state of that format")

    def _lose_reasoning(self, form: str, why: str) -> None:
        """Report reasoning that was left out, once for each format."""
        self._losses.lose_each("reasoning", form, why)

    def _replays_text(self, native: dict[str, str]) -> bool:
        # OpenAI refuses plain text beside its ciphertext; servers that have no ciphertext need the text.
        return "encrypted" not in native and (self._row.quirks.replay != "none" or (self._own and "id" in native))

    def _drop_last_reasoning(self, begin: int) -> None:
        """Leave out reasoning that led to nothing: OpenAI refuses it without the item that follows."""
        while len(self.items) > begin and _is_openai_reasoning(self.items[-1]):
            self.items.pop()
            self._lose_reasoning(FORMAT, "reasoning is refused without the item it led to")


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
