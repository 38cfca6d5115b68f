"""Parts that only their own dialect knows, where nothing else is said: another model reads them as words, never as an empty text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.audio import sound_of
from bardo.dialects.losses import Losses
from bardo.values.blocks import Block, TextBlock, ToolResultBlock, UnknownBlock
from bardo.values.errors import Unsupported
from bardo.values.request import Message, Request

_TOOL = "tool_reference"
_LONGEST = 65_536
"""Letters of JSON that are given as words. What is longer is data that no model reads."""


def unknown_as_words(request: Request, losses: Losses, parts: frozenset[type[Block]]) -> Request:
    """Return a request of another dialect whose results and user's turns say in words what only that dialect can say otherwise.

    References to tools always are words, others where a result or a message holds nothing else. `parts` are as `parts_of` gives them.
    Raises Unsupported for data that cannot be said.
    """
    if UnknownBlock not in parts:
        return request
    messages = tuple([_with_words(message, losses) for message in request.messages])
    return msgspec.structs.replace(request, messages=messages)


def _with_words(message: Message, losses: Losses) -> Message:
    if message.role == "assistant" or UnknownBlock not in message.parts:
        return message
    blocks: list[Any] = [_result(one, losses) if isinstance(one, ToolResultBlock) else one for one in message.blocks]
    if any(_is_foreign(one, losses) for one in blocks):
        blocks = _in_words(blocks, losses)
    same = all(new is old for new, old in zip(blocks, message.blocks, strict=True))
    return message if same else msgspec.structs.replace(message, blocks=tuple(blocks))


def _result(result: ToolResultBlock, losses: Losses) -> ToolResultBlock:
    if not any(_is_foreign(part, losses) for part in result.content):
        return result
    return msgspec.structs.replace(result, content=tuple(_in_words(result.content, losses)))


def _in_words(parts: Sequence[Any], losses: Losses) -> list[Any]:
    alone = not any(_says_something(part) for part in parts)
    content: list[Any] = []
    for part in parts:
        if not isinstance(part, UnknownBlock) or not _is_foreign(part, losses) or sound_of(part) is not None:
            content.append(part)
        elif _named_tool(part):
            losses.lose(f"content.{_TOOL}", _named_tool(part), "a block that only its own dialect knows", sent="text")
            content.append(TextBlock(f"The tool {_named_tool(part)} can be called now.\n"))
        elif alone:
            content.append(TextBlock(_as_json(part, losses)))
        else:
            content.append(part)
    return content


def _is_foreign(part: Block, losses: Losses) -> bool:
    return isinstance(part, UnknownBlock) and part.dialect != losses.dialect


def _says_something(part: Block) -> bool:
    return not isinstance(part, UnknownBlock) and not (isinstance(part, TextBlock) and not part.text.strip())


def _named_tool(part: UnknownBlock) -> str:
    value = part.value if isinstance(part.value, dict) else {}
    name = value.get("tool_name")
    return name if value.get("type") == _TOOL and isinstance(name, str) else ""


def _as_json(part: UnknownBlock, losses: Losses) -> str:
    written = msgspec.json.encode(part.value).decode(errors="replace")
    kind = part.value.get("type") if isinstance(part.value, dict) else None
    named = kind if isinstance(kind, str) else part.dialect
    if len(written) > _LONGEST:
        message = f"a message holds nothing but {named}, which this model cannot be told"
        raise Unsupported(
            message, hint="give it as text, or ask a model whose provider takes such parts", param="messages"
        )
    losses.lose(f"content.{named}", named, f"a block that only {part.dialect} knows", sent="text")
    return written
