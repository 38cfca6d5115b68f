"""Names of tools that are longer than a target takes: short ones go to it, and the client's own come back in the reply.

A short name is made of the long one alone, so that tools, the choice among them and the history agree in every turn of a conversation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bardo.dialects.repeated_tools import names_of
from bardo.values.blocks import Block, ToolCallBlock, ToolResultBlock
from bardo.values.events import Event, ReplyFields, ToolCallStart
from bardo.values.histories import Messages, fold_history
from bardo.values.request import Message, Request, Tool

_CALLS = frozenset((ToolCallBlock, ToolResultBlock))
_DIGITS = 8
_CHOICES = ("tool_choice", "toolConfig")
"""Fields of one dialect alone that may choose among the tools by their names."""
_REPEATED = ("tools", "tool_choice")
"""Fields of a reply that say again what was asked: Responses has them."""


class ShortToolNames(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a request with short names, and the client's own names by the short ones."""

    tools: tuple[Tool, ...]
    originals: dict[str, str]


def short_tool_names(tools: tuple[Tool, ...], most: int | None) -> ShortToolNames | None:
    """Return the short names of tools, for a target that takes `most` characters; None where every name is short enough."""
    if most is None or not tools:
        return None
    found: ShortToolNames | None = names_of(tools, _shortened, most)
    return found


def _shortened(tools: tuple[Tool, ...], most: int) -> ShortToolNames | None:
    long = [tool.name for tool in tools if len(tool.name) > most and not tool.hosted]
    if not long:
        return None
    short = [tool if tool.hosted or len(tool.name) <= most else _with_short_name(tool, most) for tool in tools]
    return ShortToolNames(tools=tuple(short), originals={shorten(name, most): name for name in long})


def _with_short_name(one: Any, most: int) -> Any:
    return msgspec.structs.replace(one, name=shorten(one.name, most))


def shorten(name: str, most: int) -> str:
    """Return a name of at most `most` characters: a long one keeps its beginning, and ends with digits made of the whole name."""
    if len(name) <= most:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{name[: most - _DIGITS - 1]}_{digest}"


def with_short_names(request: Request, names: ShortToolNames | None, most: int | None) -> Request:
    """Return a request that has short names only: in its tools, in the choice among them, and in the calls and results of its history.

    `names` are those of its tools; its history may have called others. A request without a long name is returned itself.
    """
    if most is None or (names is None and not _calls_long_names(request.messages, most)):
        return request
    messages = tuple([_of_message(message, most) for message in request.messages])
    if names is None:
        return msgspec.structs.replace(request, messages=messages)
    choice = request.tool_choice
    if choice is not None and len(choice.name) > most:
        choice = _with_short_name(choice, most)
    short = {long: name for name, long in names.originals.items()}
    extra = {name: _renamed(value, short) if name in _CHOICES else value for name, value in request.extra.items()}
    return msgspec.structs.replace(
        request,
        tools=names.tools,
        tool_choice=choice,
        messages=messages,
        extra=extra,
    )


def _calls_long_names(messages: Messages, most: int) -> bool:
    def extend(found: bool, messages: Messages, place: int) -> bool:
        return found or any(len(call.name) > most for message in messages[place:] for call in message.calls)

    # The first message is no model's.
    return len(messages) > 1 and fold_history(messages, "long_tool_names", most, False, extend)


def _of_message(message: Message, most: int) -> Message:
    """Return a message with short names: the same object for one that came before, whose written form is kept then."""
    if _CALLS.isdisjoint(message.kinds):
        return message
    kept, key = message.derived, f"tool_names.{most}"
    if key not in kept:
        blocks = tuple([_of_block(block, most) for block in message.blocks])
        changed = any(new is not old for new, old in zip(blocks, message.blocks, strict=True))
        kept[key] = msgspec.structs.replace(message, blocks=blocks) if changed else None
    found: Message | None = kept[key]
    return found or message


def _of_block(block: Block, most: int) -> Block:
    if not isinstance(block, ToolCallBlock | ToolResultBlock) or len(block.name) <= most:
        return block
    short: Block = _with_short_name(block, most)
    return short


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a choice among tools, or tools, with other names in the place of those in `names`."""
    if isinstance(value, dict):
        return {name: _renamed(one, names) for name, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    return names.get(value, value) if isinstance(value, str) else value


class RestoreToolNames:
    """A stage of one reply: its calls name the tools as the client does, and so do the tools that it says again."""

    passes_text = True
    acts_on: frozenset[type] = frozenset((ToolCallStart, ReplyFields))

    def __init__(self, originals: Mapping[str, str]) -> None:
        self._originals = originals

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, with the client's names of the tools."""
        if type(item) is ToolCallStart and item.name in self._originals:
            return (ToolCallStart(item.block, item.id, self._originals[item.name], item.choice),)
        if type(item) is ReplyFields and not item.fields.keys().isdisjoint(_REPEATED):
            restored = {name: _renamed(item.fields[name], self._originals) for name in _REPEATED if name in item.fields}
            return (msgspec.structs.replace(item, fields={**item.fields, **restored}),)
        return (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()
