"""Names of tools that a target does not take: others go to it, and the client's own come back in the reply.

The other name is made of the client's alone, so that tools, the choice among them and the history agree in every turn of a conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bardo.catalog.request_shapes import NameRule
from bardo.dialects.shared.repeated_tools import names_of
from bardo.values.blocks import Block, ToolCallBlock, ToolResultBlock
from bardo.values.events import Event, ReplyFields, ToolCallStart
from bardo.values.histories import Messages, fold_history
from bardo.values.request import Message, Request, Tool

_CALLS = frozenset((ToolCallBlock, ToolResultBlock))
_CHOICES = ("tool_choice", "toolConfig")
"""Fields of one dialect alone that may choose among the tools by their names."""
_REPEATED = ("tools", "tool_choice")
"""Fields of a reply that say again what was asked: Responses has them."""


class WrittenToolNames(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a request with names that are taken, and the client's own names by those that differ."""

    tools: tuple[Tool, ...]
    originals: dict[str, str]


def written_tool_names(tools: tuple[Tool, ...], rule: NameRule | None) -> WrittenToolNames | None:
    """Return tools with names that `rule` takes; None where it takes every name as it is."""
    if rule is None or not tools:
        return None
    found: WrittenToolNames | None = names_of(tools, _written, rule)
    return found


def _written(tools: tuple[Tool, ...], rule: NameRule) -> WrittenToolNames | None:
    others = [tool.name for tool in tools if not rule.takes(tool.name) and not tool.hosted]
    if not others:
        return None
    named = [tool if tool.hosted else _renamed_one(tool, rule) for tool in tools]
    return WrittenToolNames(tools=tuple(named), originals={rule.written(name): name for name in others})


def _renamed_one(one: Any, rule: NameRule) -> Any:
    return one if rule.takes(one.name) else msgspec.structs.replace(one, name=rule.written(one.name))


def with_written_names(request: Request, names: WrittenToolNames | None, rule: NameRule | None) -> Request:
    """Return a request that has names of tools which are taken: in its tools, in the choice among them, in its calls and their results.

    `names` are those of its tools; its history may have called others. A request whose names are all taken is returned itself.
    """
    if rule is None or (names is None and takes_called_names(request.messages, rule)):
        return request
    messages = tuple([_of_message(message, rule) for message in request.messages])
    if names is None:
        return msgspec.structs.replace(request, messages=messages)
    choice = request.tool_choice
    if choice is not None:
        choice = _renamed_one(choice, rule)
    written = {original: name for name, original in names.originals.items()}
    extra = {name: _renamed(value, written) if name in _CHOICES else value for name, value in request.extra.items()}
    return msgspec.structs.replace(
        request,
        tools=names.tools,
        tool_choice=choice,
        messages=messages,
        extra=extra,
    )


def takes_called_names(messages: Messages, rule: NameRule | None) -> bool:
    """Whether every tool that a conversation called has a name that `rule` takes."""
    # The first message is no model's.
    return rule is None or len(messages) < 2 or fold_history(messages, "tool_names", rule, True, _taking(rule))


def _taking(rule: NameRule) -> Callable[[bool, Messages, int], bool]:
    def extend(found: bool, messages: Messages, place: int) -> bool:
        return found and all(rule.takes(call.name) for message in messages[place:] for call in message.calls)

    return extend


def _of_message(message: Message, rule: NameRule) -> Message:
    """Return a message with names that are taken: the same object for one that came before, whose written form is kept then."""
    if _CALLS.isdisjoint(message.kinds):
        return message
    kept, key = message.derived, f"tool_names.{rule.longest}.{rule.letters}.{rule.first}"
    if key not in kept:
        blocks = tuple([_of_block(block, rule) for block in message.blocks])
        changed = any(new is not old for new, old in zip(blocks, message.blocks, strict=True))
        kept[key] = msgspec.structs.replace(message, blocks=blocks) if changed else None
    found: Message | None = kept[key]
    return found or message


def _of_block(block: Block, rule: NameRule) -> Block:
    if not isinstance(block, ToolCallBlock | ToolResultBlock):
        return block
    named: Block = _renamed_one(block, rule)
    return named


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
            return (msgspec.structs.replace(item, name=self._originals[item.name]),)
        if type(item) is ReplyFields and not item.fields.keys().isdisjoint(_REPEATED):
            restored = {name: _renamed(item.fields[name], self._originals) for name in _REPEATED if name in item.fields}
            return (msgspec.structs.replace(item, fields={**item.fields, **restored}),)
        return (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()
