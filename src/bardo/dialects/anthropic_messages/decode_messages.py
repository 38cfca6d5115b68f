"""The messages of a request: Anthropic's content blocks to ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from bardo.dialects.anthropic_messages.constants import FORMAT, NAME, PARTS, PARTS_JOIN, SIGNED_BLOCKS
from bardo.dialects.carriers import Carrier, settled
from bardo.dialects.documents import picture_or_document
from bardo.dialects.jsonfield import optional, required, take
from bardo.dialects.wire import arguments_of, without
from bardo.values.blocks import (
    Block,
    Carried,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    ResultPart,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import InvalidRequest
from bardo.values.histories import LEAST_MESSAGES, Messages, fold_history
from bardo.values.request import Message, Role

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
# What is found of a message once.
_NAMED, _NAMES = "anthropic.named", "anthropic.names"


def read_system(value: Any) -> tuple[Message, ...]:
    """Return the system prompt, text or blocks, as the first message."""
    if value is None:
        return ()
    return (Message("system", _content(value, "system")),)


def read_message(value: Any, place: str) -> Message:
    """Return one message. Raises InvalidRequest naming the field."""
    message = take(value, dict, place)
    text, role = message.get("content"), message.get("role")
    if len(message) == 2 and type(text) is str and type(role) is str and role in _ROLES:
        return Message(_ROLES[role], (TextBlock(text),) if text else ())
    at = f"{place}."
    role = required(message, "role", str, at)
    if role not in _ROLES:
        raise InvalidRequest(f"{at}role is {role!r}", hint=f"use {', '.join(_ROLES)}", param=f"{at}role")
    content = _content(required(message, "content", (str, list), at), f"{at}content")
    return Message(_ROLES[role], content, carried(without(message, "role", "content")))


def with_tool_names(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return each tool result the name of the tool that was called, which other dialects ask for."""
    if len(messages) < LEAST_MESSAGES and not [one for one in messages if ToolResultBlock in one.kinds]:
        return tuple(messages)
    return fold_history(tuple(messages), _NAMES, None, _CallNames({}, frozenset(), ()), _extended).messages


class _CallNames(NamedTuple):
    """The names of the tools that were called, by the ids of the calls, the ids that results name, and the messages with the names."""

    names: dict[str, str]
    answered: frozenset[str]
    messages: tuple[Message, ...]


def _extended(found: _CallNames, messages: Messages, place: int) -> _CallNames:
    new = messages[place:]
    called = {block.id: block.name for message in new for block in message.blocks if isinstance(block, ToolCallBlock)}
    names = {**found.names, **called} if called else found.names
    if not names:
        before, begin = messages, len(messages)
    elif any(call_id in found.answered and found.names.get(call_id) != name for call_id, name in called.items()):
        # The last call of an id gives its name to all results, those before it too.
        before, begin = (), 0
    else:
        before, begin = found.messages, place
    answered = [block.call_id for message in new for block in message.blocks if isinstance(block, ToolResultBlock)]
    named = [_with_names(message, names) for message in messages[begin:]]
    return _CallNames(names, found.answered.union(answered), (*before, *named))


def _with_names(message: Message, names: dict[str, str]) -> Message:
    """Return a message whose tool results say which tools were called: the same one where they were the same before.

    It is kept beside what is kept of the conversation: of its last messages nothing is, where cache markers move with each turn.
    """
    if ToolResultBlock not in message.kinds:
        return message
    called = [names.get(block.call_id, "") for block in message.blocks if isinstance(block, ToolResultBlock)]
    found: tuple[list[str], Message] | None = message.derived.get(_NAMED)
    if found is None or found[0] != called:
        blocks = tuple([_with_tool_name(block, names) for block in message.blocks])
        found = message.derived[_NAMED] = called, msgspec.structs.replace(message, blocks=blocks)
    return found[1]


def _with_tool_name(block: Block, names: dict[str, str]) -> Block:
    if not isinstance(block, ToolResultBlock):
        return block
    return msgspec.structs.replace(block, name=names.get(block.call_id, ""))


def carried(fields: dict[str, Any]) -> Carried | None:
    """Return fields of this dialect to be passed on, or None where there are none."""
    return Carried(NAME, fields) if fields else None


def _content(value: Any, at: str) -> tuple[Block, ...]:
    said = take(value, (str, list), at)
    if isinstance(said, str):
        return (TextBlock(said),) if said else ()
    blocks: list[Block | Carrier] = []
    for place, item in enumerate(said):
        _read_block(take(item, dict, f"{at}[{place}]"), f"{at}[{place}].", blocks)
    return settled(blocks)


def _read_block(block: dict[str, Any], at: str, before: list[Block | Carrier]) -> None:
    kind = required(block, "type", str, at)
    if kind == "redacted_thinking":
        before.append(_read_redacted(block, at))
    elif kind == "thinking":
        before.append(_read_thinking(block, at))
    elif kind == "tool_use":
        before.append(_read_call(block, at))
    elif kind == "tool_result":
        before.append(_read_result(block, at))
    else:
        before.append(_read_plain(block, at))


def _read_plain(block: dict[str, Any], at: str) -> ResultPart:
    """Return a block that may stand in a tool result too."""
    kind = required(block, "type", str, at)
    if kind == "text":
        return TextBlock(required(block, "text", str, at), carried=carried(without(block, "type", "text")))
    if kind == "image":
        return _read_image(block, at)
    if kind == "document":
        return _read_document(block, at)
    return _read_search_result(block, at) if kind == "search_result" else UnknownBlock(NAME, block)


def _read_search_result(block: dict[str, Any], at: str) -> DocumentBlock | UnknownBlock:
    """Return a result of the caller's own search as a document that says where it was found."""
    content = required(block, "content", list, at)
    parts = [
        part.get("text") if isinstance(part, dict) and part.keys() == {"type", "text"} else None for part in content
    ]
    source = required(block, "source", str, at)
    texts = [text for text in parts if isinstance(text, str)]
    if not source or not texts or len(texts) < len(parts):
        return UnknownBlock(NAME, block)
    rest = without(block, "type", "content", "source", "title")
    return DocumentBlock(
        text=PARTS_JOIN.join(texts),
        name=optional(block, "title", str, at) or "",
        source=source,
        carried=carried({**rest, PARTS: texts} if len(texts) > 1 else rest),
    )


def _read_image(block: dict[str, Any], at: str) -> ImageBlock | DocumentBlock | UnknownBlock:
    """Return a picture; data of another type is a document, which some clients send so."""
    source = required(block, "source", dict, at)
    kind = required(source, "type", str, f"{at}source.")
    rest = carried(without(block, "type", "source"))
    if kind == "base64":
        data, media_type = (required(source, name, str, f"{at}source.") for name in ("data", "media_type"))
        return picture_or_document(media_type, data, carried=rest)
    if kind == "url":
        return ImageBlock(url=required(source, "url", str, f"{at}source."), carried=rest)
    return UnknownBlock(NAME, block)


def _read_document(block: dict[str, Any], at: str) -> DocumentBlock | UnknownBlock:
    source = required(block, "source", dict, at)
    at_source = f"{at}source."
    kind = required(source, "type", str, at_source)
    name = optional(block, "title", str, at) or ""
    rest = carried(without(block, "type", "source", "title"))
    if kind == "url":
        return DocumentBlock(url=required(source, "url", str, at_source), name=name, carried=rest)
    if kind not in ("base64", "text"):
        return UnknownBlock(NAME, block)
    data = required(source, "data", str, at_source)
    media_type = optional(source, "media_type", str, at_source) or ""
    if kind == "text":
        return DocumentBlock(media_type=media_type, text=data, name=name, carried=rest)
    return DocumentBlock(media_type=media_type, data=data, name=name, carried=rest)


def _read_thinking(block: dict[str, Any], at: str) -> ReasoningBlock:
    text = required(block, "thinking", str, at)
    states = SIGNED_BLOCKS.decode_signature(optional(block, "signature", str, at) or "")
    rest = carried(without(block, "type", "thinking", "signature"))
    # Thinking without a signature is nobody's: bardo wrote it so for a provider that signs nothing.
    return ReasoningBlock(text=text, format=states[0].format if states else "thinking", opaque=states, carried=rest)


def _read_redacted(block: dict[str, Any], at: str) -> ReasoningBlock | Carrier:
    found = SIGNED_BLOCKS.decode_redacted(required(block, "data", str, at))
    form = found.states[0].format if found.states else FORMAT
    thinking = ReasoningBlock(format=form, opaque=found.states, carried=carried(without(block, "type", "data")))
    return thinking if found.owner is None else Carrier(found.states, found.owner, thinking)


def _read_call(block: dict[str, Any], at: str) -> ToolCallBlock:
    given = block.get("input")
    return ToolCallBlock(
        id=required(block, "id", str, at),
        name=required(block, "name", str, at),
        arguments=arguments_of(take({} if given is None else given, dict, f"{at}input")),
        carried=carried(without(block, "type", "id", "name", "input")),
    )


def _read_result(block: dict[str, Any], at: str) -> ToolResultBlock:
    return ToolResultBlock(
        call_id=required(block, "tool_use_id", str, at),
        content=_result_content(optional(block, "content", (str, list), at), f"{at}content"),
        is_error=bool(optional(block, "is_error", bool, at)),
        carried=carried(without(block, "type", "tool_use_id", "content", "is_error")),
    )


def _result_content(value: Any, at: str) -> tuple[ResultPart, ...]:
    if isinstance(value, str):
        return (TextBlock(value),)
    return tuple(
        _read_plain(take(item, dict, f"{at}[{place}]"), f"{at}[{place}].") for place, item in enumerate(value or ())
    )
