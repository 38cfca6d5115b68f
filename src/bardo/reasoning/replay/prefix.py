"""Digests of what stands before a reply, and the first of its parts that is not what it was.

Some models bind their thinking to the system prompt, the tools and the messages it was made behind. Cache marks and other fields of a
dialect are not part of that, and texts that only were cut differently are the same.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.reasoning.replay.call_identity import canonical
from bardo.reasoning.replay.keys import digest
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.request import Message, Request, Tool

_LENGTH = 12
_encode = msgspec.json.Encoder(order="sorted").encode


class Prefix(msgspec.Struct, frozen=True, array_like=True):
    """Digests of the system prompt, of each tool, and of each message after the system prompt."""

    system: str
    tools: tuple[str, ...]
    messages: tuple[str, ...]

    @property
    def whole(self) -> str:
        """One digest of all of it."""
        return digest(self.system, *self.tools, "", *self.messages)[: 2 * _LENGTH]

    def difference(self, now: Prefix) -> str:
        """Return which part of `now` is the first that differs, empty where `now` begins with all of this."""
        if self.system != now.system:
            return "system prompt"
        if self.tools != now.tools:
            return "list of tools"
        for place, made in enumerate(self.messages):
            if place >= len(now.messages) or now.messages[place] != made:
                return f"message {place}"
        return ""


def prefix_of(request: Request) -> Prefix:
    """Return the digests of a whole request."""
    leading = prompt_length(request)
    return Prefix(
        system=_short("\n\n".join(message.text for message in request.messages[:leading])),
        tools=tuple(tool_digest(tool) for tool in request.tools),
        messages=tuple(_message(message) for message in request.messages[leading:]),
    )


def up_to(prefix: Prefix, place: int) -> Prefix:
    """Return the prefix of the message at `place`."""
    return Prefix(prefix.system, prefix.tools, prefix.messages[:place])


def prompt_length(request: Request) -> int:
    """Return how many messages at the beginning are the system prompt."""
    return next((place for place, turn in enumerate(request.messages) if turn.role != "system"), len(request.messages))


def tool_digest(tool: Tool) -> str:
    """Return the digest of one tool."""
    own = tool.carried.fields if tool.hosted and tool.carried is not None else None
    return _short(_encode([tool.name, tool.description, tool.schema, tool.strict, own]).decode())


def _short(text: str) -> str:
    return digest(text)[:_LENGTH]


def _message(message: Message) -> str:
    content: list[Any] = [message.role]
    for block in message.blocks:
        written = _block(block)
        if isinstance(block, TextBlock) and len(content) > 1 and isinstance(content[-1], str):
            content[-1] += written
        elif written != "":
            content.append(written)
    return _short(_encode(content).decode())


def _block(block: Block) -> Any:
    match block:
        case TextBlock(text=text):
            return text
        case ReasoningBlock():
            return ["thought", block.readable, *(state.data for state in block.opaque)]
        case ToolCallBlock():
            return ["call", block.id, block.name, canonical(block.arguments), *(state.data for state in block.opaque)]
        case ToolResultBlock():
            return ["result", block.call_id, block.is_error, *(_block(part) for part in block.content)]
        case DocumentBlock():
            return [
                "document",
                block.media_type,
                digest(block.data),
                block.url,
                block.text,
                *((block.source,) if block.source else ()),
            ]
        case ImageBlock():
            return ["image", block.media_type, digest(block.data), block.url]
        case RefusalBlock(text=text):
            return ["refusal", text]
        case UnknownBlock(dialect=dialect, value=value):
            return ["unknown", dialect, value]
