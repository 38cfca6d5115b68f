"""The messages of a request: Anthropic's content blocks to ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from bardo.dialects.anthropic_messages import wire
from bardo.dialects.anthropic_messages.constants import FORMAT, NAME, PARTS, PARTS_JOIN, SIGNED_BLOCKS
from bardo.dialects.carriers import Carrier, settled
from bardo.dialects.documents import picture_or_document
from bardo.dialects.structs import Unknown, Wire, as_it_came, carried_fields, read
from bardo.dialects.wire import arguments_of
from bardo.values.blocks import (
    Block,
    Carried,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
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
    content: str | list[wire.Block] = read(value, str | list[wire.Block], "system")
    return (Message("system", _content(content)),)


def read_message(value: Any, place: str) -> Message:
    """Return one message. Raises InvalidRequest naming the field."""
    message = read(value, wire.Message, place)
    role = _ROLES.get(message.role)
    if role is None:
        at = f"{place}.role"
        raise InvalidRequest(f"{at} is {message.role!r}", hint=f"use {', '.join(_ROLES)}", param=at)
    return Message(role, _content(message.content), carried(message))


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


def carried(struct: Wire) -> Carried | None:
    """Return what is only carried of a struct, or None where there is nothing."""
    fields = carried_fields(struct)
    return Carried(NAME, fields) if fields else None


def _content(content: str | list[wire.Block]) -> tuple[Block, ...]:
    if type(content) is str:
        return (TextBlock(content),) if content else ()
    blocks = [_READERS[type(block)](block) for block in content]
    return tuple(blocks) if Carrier not in map(type, blocks) else settled(blocks)


def _read_text(block: wire.Text) -> TextBlock:
    return TextBlock(block.text, carried=carried(block))


def _read_unknown(block: Unknown) -> UnknownBlock:
    return UnknownBlock(NAME, block.whole.value)


def _read_search_result(block: wire.SearchResult) -> DocumentBlock | UnknownBlock:
    """Return a result of the caller's own search as a document that says where it was found."""
    parts = [
        part.get("text") if isinstance(part, dict) and part.keys() == {"type", "text"} else None
        for part in block.content
    ]
    texts = [text for text in parts if isinstance(text, str)]
    if not block.source or not texts or len(texts) < len(parts):
        return UnknownBlock(NAME, as_it_came(block))
    rest = carried(block)
    if len(texts) > 1:
        rest = Carried(NAME, {**(rest.fields if rest else {}), PARTS: texts})
    return DocumentBlock(text=PARTS_JOIN.join(texts), name=block.title or "", source=block.source, carried=rest)


def _read_image(block: wire.Image) -> ImageBlock | DocumentBlock:
    """Return a picture; data of another type is a document, which some clients send so."""
    rest = carried(block)
    if isinstance(block.source, wire.UrlSource):
        return ImageBlock(url=block.source.url, carried=rest)
    return picture_or_document(block.source.media_type, block.source.data, carried=rest)


def _read_document(block: wire.Document) -> DocumentBlock:
    source, name = block.source, block.title or ""
    rest = carried(block)
    if isinstance(source, wire.UrlSource):
        return DocumentBlock(url=source.url, name=name, carried=rest)
    if isinstance(source, wire.TextSource):
        return DocumentBlock(media_type=source.media_type or "", text=source.data, name=name, carried=rest)
    return DocumentBlock(media_type=source.media_type or "", data=source.data, name=name, carried=rest)


def _read_thinking(block: wire.Thinking) -> ReasoningBlock:
    states = SIGNED_BLOCKS.decode_signature(block.signature or "")
    # Thinking without a signature is nobody's: bardo wrote it so for a provider that signs nothing.
    form = states[0].format if states else "thinking"
    return ReasoningBlock(text=block.thinking, format=form, opaque=states, carried=carried(block))


def _read_redacted(block: wire.RedactedThinking) -> ReasoningBlock | Carrier:
    found = SIGNED_BLOCKS.decode_redacted(block.data)
    form = found.states[0].format if found.states else FORMAT
    thinking = ReasoningBlock(format=form, opaque=found.states, carried=carried(block))
    return thinking if found.owner is None else Carrier(found.states, found.owner, thinking)


def _read_call(block: wire.ToolUse) -> ToolCallBlock:
    return ToolCallBlock(
        id=block.id,
        name=block.name,
        arguments=arguments_of(block.input or {}),
        carried=carried(block),
    )


def _read_result(block: wire.ToolResult) -> ToolResultBlock:
    content = block.content
    return ToolResultBlock(
        call_id=block.tool_use_id,
        content=(TextBlock(content),)
        if isinstance(content, str)
        else tuple([_READERS[type(part)](part) for part in content or ()]),
        is_error=bool(block.is_error),
        carried=carried(block),
    )


_READERS: dict[type, Callable[[Any], Any]] = {
    wire.Text: _read_text,
    wire.Image: _read_image,
    wire.Document: _read_document,
    wire.SearchResult: _read_search_result,
    wire.Thinking: _read_thinking,
    wire.RedactedThinking: _read_redacted,
    wire.ToolUse: _read_call,
    wire.ToolResult: _read_result,
    Unknown: _read_unknown,
}
