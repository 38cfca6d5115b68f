"""The messages of a Cohere request to ours."""

from __future__ import annotations

from typing import Any

from bardo.dialects.cohere import wire
from bardo.dialects.cohere.constants import NAME, PLAN, THINKING
from bardo.dialects.sealing import unseal
from bardo.dialects.structs import as_it_came, carried_fields, read
from bardo.dialects.wire import without, write_json
from bardo.values.blocks import (
    Block,
    Carried,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, Role

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "user"}


def read_messages(messages: list[Any]) -> tuple[Message, ...]:
    """Return the messages. Raises InvalidRequest naming the field."""
    names: dict[str, str] = {}
    return tuple(
        [
            _message(read(one, wire.Message, f"messages[{place}]"), f"messages[{place}].", names)
            for place, one in enumerate(messages)
        ]
    )


def _message(message: wire.Message, at: str, names: dict[str, str]) -> Message:
    role = _ROLES.get(message.role)
    if role is None:
        raise InvalidRequest(f"{at}role is {message.role!r}", hint=f"use {', '.join(_ROLES)}", param=f"{at}role")
    carried = _carried(carried_fields(message))
    if message.role == "tool":
        call_id = message.tool_call_id
        if call_id is None:
            raise InvalidRequest(f"{at}tool_call_id is required", param=f"{at}tool_call_id")
        # Thinking is none of what a tool gives.
        content = tuple(
            UnknownBlock(NAME, as_it_came(part)) if isinstance(part, wire.Thinking) else _block(part)
            for part in _parts(message)
        )
        result = ToolResultBlock(call_id=call_id, name=names.get(call_id, ""), content=content)  # type: ignore[arg-type]
        return Message(role, (result,), carried)
    blocks = [_block(part) for part in _parts(message)]
    if message.role == "assistant":
        calls = [_call(call) for call in message.tool_calls or ()]
        names |= {call.id: call.name for call in calls}
        blocks = [*_with_plan(blocks, message.tool_plan or ""), *calls]
    return Message(role, tuple(blocks), carried)


def _parts(message: wire.Message) -> list[wire.Part]:
    content = message.content or []
    return [wire.Text(text=content)] if isinstance(content, str) else content


def _with_plan(blocks: list[Block], plan: str) -> list[Block]:
    """Put the plan where a reply has it: behind the thinking, before what is said."""
    if not plan:
        return blocks
    place = next((n for n, block in enumerate(blocks) if not isinstance(block, ReasoningBlock)), len(blocks))
    return [*blocks[:place], ReasoningBlock(text=plan, format=PLAN), *blocks[place:]]


def _block(part: wire.Part) -> Block:
    match part:
        case wire.Text():
            states, rest = _unsealed(part)
            return TextBlock(part.text, states, _carried(rest))
        case wire.Thinking():
            states, rest = _unsealed(part)
            form = states[0].format if states else THINKING
            return ReasoningBlock(text=part.thinking, format=form, opaque=states, carried=_carried(rest))
        case wire.Image():
            return _image(part)
        case wire.Document():
            return _document(part)
        case _:
            return UnknownBlock(NAME, part.whole.value)


def _document(part: wire.Document) -> TextBlock | UnknownBlock:
    """Return a document as text for other dialects, which goes back to Cohere as it was; one without data stays unknown."""
    document = part.document
    data = document.get("data") if isinstance(document, dict) else document
    if not isinstance(data, str | dict) or not data:
        return UnknownBlock(NAME, as_it_came(part))
    text = data if isinstance(data, str) else write_json(data).decode()
    return TextBlock(text, carried=_carried({"document": document, **(carried_fields(part) or {})}))


def _image(part: wire.Image) -> ImageBlock:
    url, detail, carried = part.image_url.url, part.image_url.detail or "", _carried(carried_fields(part))
    head, comma, data = url.partition(";base64,")
    if head.startswith("data:") and comma:
        return ImageBlock(media_type=head.removeprefix("data:"), data=data, detail=detail, carried=carried)
    return ImageBlock(url=url, detail=detail, carried=carried)


def _call(call: wire.Call) -> ToolCallBlock:
    states, rest = _unsealed(call)
    more = carried_fields(call.function)
    return ToolCallBlock(
        id=call.id,
        name=call.function.name,
        arguments=call.function.arguments or "",
        opaque=states,
        carried=_carried({**(rest or {}), **({"function": more} if more else {})}),
    )


def _unsealed(part: wire.Text | wire.Thinking | wire.Call) -> tuple[tuple[Opaque, ...], dict[str, Any] | None]:
    """Return the opaque state that bardo sealed, and the other fields."""
    fields = carried_fields(part)
    states = unseal(part.signature) if isinstance(part.signature, str) else None
    return ((), fields) if states is None else (states, without(fields or {}, "signature"))


def _carried(fields: dict[str, Any] | None) -> Carried | None:
    return Carried(NAME, fields) if fields else None
