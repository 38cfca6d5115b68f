"""Which tools of a request stay whatever they are about, and what the text is that the others are compared with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from bardo.catalog.layer_rows import ToolChoiceRows, tool_choice_rows
from bardo.context.layer import LayerFacts
from bardo.context.tool_choice.tokenization import MOST_TEXT, named_in
from bardo.values.blocks import Carried, ToolCallBlock, ToolResultBlock
from bardo.values.request import Request, Tool

_MOST_USER_TEXT = 32_000
"""Characters of what the user said, from the end, in which names of tools are looked for."""
MOST_NAMED = 40
"""Names of tools that a receipt or a degradation lists; further ones are counted."""


def may_be_chosen(request: Request) -> bool:
    """Whether the client left the choice open: it did not choose among some of its tools itself."""
    return not any(name in request.extra for name in tool_choice_rows().own_choices)


def choosable(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the tools among which may be chosen: functions of the client, whose loading it left open."""
    fields = tool_choice_rows().loading_fields
    return tuple(tool for tool in tools if not tool.hosted and not any(name in _carried(tool) for name in fields))


def surviving(request: Request, names: Collection[str], *, used: bool) -> set[str]:
    """Return the names that stay: those that the user says, that of the tool choice, and those that were `used` in the history."""
    kept = named_in(_user_text(request), names)
    choice = request.tool_choice
    if choice is not None and choice.mode == "named" and choice.name in names:
        kept.add(choice.name)
    return kept | (called_in(request) & set(names)) if used else kept


def called_in(request: Request) -> set[str]:
    """Return the names of the tools that were called in a conversation."""
    return {block.name for message in request.messages for block in message.blocks if isinstance(block, ToolCallBlock)}


def asked_text(request: Request) -> str:
    """Return the last thing that the user said, shortened to its beginning and its end."""
    for message in reversed(request.messages):
        if message.role == "user" and (text := message.paragraphs.strip()):
            half = MOST_TEXT // 2
            return text if len(text) <= MOST_TEXT else f"{text[:half]} {text[-half:]}"
    return ""


def is_users_turn(request: Request) -> bool:
    """Whether the last message is the user's own, and not the result of a tool."""
    last = request.messages[-1] if request.messages else None
    return last is not None and last.role == "user" and not any(isinstance(b, ToolResultBlock) for b in last.blocks)


def task_of(facts: LayerFacts, tasks: Mapping[str, tuple[str, ...]]) -> str:
    """Return which of the configured tasks a call belongs to: its workload, or what the classifier found; empty where none."""
    found = facts.found.get("classify")
    values = found.values() if isinstance(found, Mapping) else ()
    return next((name for name in (facts.workload, *values) if isinstance(name, str) and name in tasks), "")


def names_in_words(tools: Sequence[Tool]) -> str:
    """Return the names of tools for people, the first of them where there are many."""
    listed = ", ".join(tool.name for tool in tools[:MOST_NAMED])
    return listed if len(tools) <= MOST_NAMED else f"{listed} and {len(tools) - MOST_NAMED} more"


def with_marks(kept: Sequence[Tool], dropped: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the kept tools, the last of them with the marks of the cache that only tools had which are left out."""
    rows = tool_choice_rows()
    marks = _marks(dropped, rows)
    if not kept or not marks or _marks(kept, rows):
        return tuple(kept)
    dialect, fields = marks
    last = kept[-1]
    if last.carried is not None and last.carried.dialect != dialect:
        return tuple(kept)
    carried = Carried(dialect, {**_carried(last), **fields})
    return (*kept[:-1], msgspec.structs.replace(last, carried=carried))


def _marks(tools: Sequence[Tool], rows: ToolChoiceRows) -> tuple[str, dict[str, Any]] | None:
    for tool in reversed(tools):
        fields = {name: _carried(tool)[name] for name in rows.marks if name in _carried(tool)}
        if fields and tool.carried is not None:
            return tool.carried.dialect, fields
    return None


def _carried(tool: Tool) -> dict[str, Any]:
    return {} if tool.carried is None else tool.carried.fields


def _user_text(request: Request) -> str:
    room, texts = _MOST_USER_TEXT, []
    for message in reversed(request.messages):
        if room <= 0:
            break
        if message.role == "user" and (text := message.paragraphs):
            texts.append(text[-room:])
            room -= len(text)
    return "\n".join(texts)
