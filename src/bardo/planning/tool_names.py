"""Names of tools that a target does not take: others go to it, and the client's own come back in the reply.

The other name is made of the client's alone, so that tools, the choice among them and the history agree in every turn of a conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

import msgspec

from bardo.catalog.request_shapes import NameRule
from bardo.values.blocks import Block, ToolCallBlock, ToolResultBlock
from bardo.values.events import Event, ReplyFields, ToolCallStart
from bardo.values.request import HistoryFacts, Message, Request, Tool, facts_of

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
    others = [tool.name for tool in tools if not rule.takes(tool.name) and not tool.hosted]
    if not others:
        return None
    named = [tool if tool.hosted else _renamed_one(tool, rule) for tool in tools]
    return WrittenToolNames(tools=tuple(named), originals={rule.written(name): name for name in others})


def _renamed_one(one: Any, rule: NameRule) -> Any:
    return one if rule.takes(one.name) else msgspec.structs.replace(one, name=rule.written(one.name))


def with_written_names(
    request: Request, names: WrittenToolNames | None, rule: NameRule | None, facts: HistoryFacts
) -> Request:
    """Return a request that has names of tools which are taken: in its tools, in the choice among them, in its calls and their results.

    `names` are those of its tools; its history may have called others, and `facts` may be of that. A request whose names are all taken is
    returned itself.
    """
    if rule is None or (names is None and takes_names(facts_of(request.messages, facts).calls, rule)):
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


def takes_names(calls: Sequence[ToolCallBlock], rule: NameRule | None) -> bool:
    """Whether every tool that was called has a name that `rule` takes."""
    return rule is None or all(map(rule.takes, {call.name for call in calls}))


def _of_message(message: Message, rule: NameRule) -> Message:
    """Return a message with names that are taken; itself where they are."""
    if _CALLS.isdisjoint(message.kinds):
        return message
    blocks = tuple([_of_block(block, rule) for block in message.blocks])
    return message if all(map(is_, blocks, message.blocks)) else msgspec.structs.replace(message, blocks=blocks)


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
