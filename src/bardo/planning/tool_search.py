"""Tools that a client wants loaded only when a search finds them, for a target that has no such thing.

Definitions that are deferred are left out of a request. The search tool becomes a function, whose calls the gateway answers; what it found
is offered from then on, behind all other tools in the order in which it was found, so that the beginning of the prompt stays cached.
Searches in the history of a conversation become calls of the function and their results again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Literal

import msgspec

from bardo.catalog.layer_rows import tool_choice_rows
from bardo.catalog.rows import ProviderRow
from bardo.context.tool_choice.word_index import named_in, split_identifier, word_index
from bardo.dialects import dialect
from bardo.dialects.shared.content_forms import ToolSearchForm, ToolSearchPart
from bardo.dialects.shared.json_values import JsonObject, encode_json
from bardo.planning.hosted_search import SearchTurns
from bardo.structured.validation import pattern_of
from bardo.values.blocks import Block, Carried, TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request, Tool

DEFERRED = "defer_loading"
MOST_SEARCHES = 8
"""Searches in one reply; each is one more call of the model."""
_MOST_FOUND = 5
_MOST_PATTERN, _MOST_QUERY = 200, 2_000
_MOST_DESCRIPTION = 400
_MOST_TEXT = 4_000
_SCHEMAS: dict[str, dict[str, Any]] = {
    name: {
        "type": "object",
        "properties": {name: {"type": "string", "description": about}},
        "required": [name],
        "additionalProperties": False,
    }
    for name, about in (
        (
            "pattern",
            "A regular expression, of at most 200 characters, that is looked for in names and descriptions of tools.",
        ),
        ("query", "What the tool shall do, in a few words, or its name."),
    )
}


class ToolSearchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How the searches for tools of one reply are answered: by the function `tool`, among the `deferred` tools that are not loaded yet."""

    tool: str
    by: Literal["regex", "words"]
    deferred: tuple[Tool, ...]

    def found(self, arguments: JsonObject) -> tuple[tuple[Tool, ...], str]:
        """Return the tools that a search finds, best first, and an error in Anthropic's words, empty where there is none."""
        asked = arguments.get("pattern" if self.by == "regex" else "query")
        if not isinstance(asked, str) or not asked.strip():
            return (), "invalid_tool_input"
        if self.by == "words":
            return _by_words(self.deferred, asked[:_MOST_QUERY]), ""
        try:
            fits = pattern_of(asked) if len(asked) <= _MOST_PATTERN else None
        except ValueError:
            fits = None
        return ((), "invalid_tool_input") if fits is None else (_by_pattern(self.deferred, fits), "")


def with_tool_search(request: Request, row: ProviderRow, model: str) -> tuple[Request, ToolSearchPlan | None]:
    """Return the request for a target's model with the tools alone that are loaded, and how searches for the others are answered.

    No plan where the target searches itself, where nothing is deferred, and where an answer must fit a schema: all tools are sent then.
    """
    declared = dialect(request.dialect).reply if request.dialect and request.tools else None
    form = None if declared is None else declared.tool_searches
    if form is None or not _defers(request, form):
        return request, None
    if request.dialect == row.dialect and tool_choice_rows().loads_tools(row.dialect, row.id, model):
        return request, None
    plain = dialect(request.dialect).as_functions(request)
    searches = [tool for tool in plain.tools if form.asked(tool)]
    others = [tool for tool in plain.tools if not form.asked(tool)]
    first = [_loaded(tool) for tool in others if not _is_deferred(tool)]
    deferred = {tool.name: _loaded(tool) for tool in others if _is_deferred(tool)}
    read = form.reader(request)
    if request.output_format is not None or request.choices > 1:
        why = "an answer in a schema is asked for at once: all tools are sent"
        lost = Degradation(DEFERRED, asked=len(deferred), sent=0, why=why)
        return _changed(plain, (*first, *deferred.values()), plain.messages, lost), None
    names = [*_found_names(plain.messages, read)]
    if plain.tool_choice is not None and plain.tool_choice.mode == "named":
        names.append(plain.tool_choice.name)
    loaded = {name: deferred[name] for name in names if name in deferred}
    if not searches:
        why = f"{row.id} is not known to load tools later: those that were found are sent, and no other"
        lost = Degradation(DEFERRED, asked=len(deferred), sent=len(loaded), why=why)
        return _changed(plain, (*first, *loaded.values()), plain.messages, lost), None
    search, by = searches[0], form.asked(searches[0])
    assert by
    taken = {tool.name for tool in others}
    name = search.name if search.name not in taken else f"bardo_{search.name}"
    function = Tool(
        name=name, description=_about(len(deferred), search), schema=_SCHEMAS["pattern" if by == "regex" else "query"]
    )
    why = f"{row.id} is not known to search for tools: bardo does"
    lost = Degradation(f"tool {search.name}", sent=name, why=why)
    unnamed = count(1)
    messages = tuple(one for message in plain.messages for one in _as_calls(message, name, read, deferred, unnamed))
    asked = _changed(plain, (*first, function, *loaded.values()), messages, lost)
    waiting = tuple(tool for tool in deferred.values() if tool.name not in loaded)
    return asked, ToolSearchPlan(tool=name, by=by, deferred=waiting)


def found_text(tools: Sequence[Tool], error: str = "") -> str:
    """Return what a model reads of a search: the tools that it may call now, or why there are none."""
    if error:
        return encode_json({"error": error}).decode()
    listed = [{"name": tool.name, "description": tool.description[:_MOST_DESCRIPTION]} for tool in tools]
    told = "These tools can be called now." if listed else "No tool fits. Search with other words."
    return encode_json({"tools": listed, "note": told}).decode()


def _defers(request: Request, form: ToolSearchForm) -> bool:
    """Whether a request has deferred tools or a search for them, also within a namespace."""
    for tool in request.tools:
        if tool.carried is None:
            continue
        inner = tool.carried.fields.get("tools") if tool.hosted else None
        if _is_deferred(tool) or form.asked(tool):
            return True
        if isinstance(inner, list) and any(isinstance(one, dict) and one.get(DEFERRED) is True for one in inner):
            return True
    return False


def _is_deferred(tool: Tool) -> bool:
    return tool.carried is not None and not tool.hosted and tool.carried.fields.get(DEFERRED) is True


def _loaded(tool: Tool) -> Tool:
    """Return a tool without the field that says when it is loaded."""
    if tool.carried is None or DEFERRED not in tool.carried.fields:
        return tool
    left = {name: value for name, value in tool.carried.fields.items() if name != DEFERRED}
    return msgspec.structs.replace(tool, carried=Carried(tool.carried.dialect, left) if left else None)


def _changed(request: Request, tools: Sequence[Tool], messages: tuple[Message, ...], lost: Degradation) -> Request:
    return msgspec.structs.replace(
        request, tools=tuple(tools), messages=messages, body=None, body_bytes=b"", degraded=(*request.degraded, lost)
    )


def _about(count: int, search: Tool) -> str:
    own = search.description or (search.carried.fields.get("description") if search.carried is not None else "")
    said = f"{own}\n\n" if isinstance(own, str) and own else ""
    return (
        f"{said}Find tools by what they do. There are {count} tools that are not listed here; those that are found can be called from "
        "then on. Search before you say that something cannot be done."
    )


Read = Callable[[JsonObject], ToolSearchPart | None]


def _part(block: Block, read: Read) -> ToolSearchPart | None:
    return read(block.value) if isinstance(block, UnknownBlock) and isinstance(block.value, dict) else None


def _found_names(messages: Sequence[Message], read: Read) -> Iterator[str]:
    """Yield the names of tools that a conversation has found or called, in its order: by searches of a provider, of the client, or here."""
    for message in messages:
        for block in message.blocks:
            for one in (block, *(block.content if isinstance(block, ToolResultBlock) else ())):
                part = _part(one, read)
                if part is not None and part.found is not None:
                    yield from part.found
                elif isinstance(one, UnknownBlock) and isinstance(one.value, dict):
                    name = one.value.get("tool_name") if one.value.get("type") == "tool_reference" else None
                    if isinstance(name, str):
                        yield name
                elif isinstance(one, ToolCallBlock):
                    yield one.name


def _as_calls(
    message: Message, tool: str, read: Read, deferred: Mapping[str, Tool], unnamed: Iterator[int]
) -> Iterator[Message]:
    """Yield a message as the turns it stands for. Searches without an id are numbered through the conversation by `unnamed`."""
    if message.role != "assistant" or not any(_part(block, read) for block in message.blocks):
        yield message
        return
    turns = SearchTurns(message)
    waiting: deque[str] = deque()
    last = ""
    for block in message.blocks:
        part = _part(block, read)
        if part is None:
            yield from turns.add(block)
        elif part.arguments is not None:
            arguments = encode_json(part.arguments).decode()
            called = part.id or f"search_{next(unnamed)}"
            if not part.id:
                waiting.append(called)
            joins = bool(part.round) and part.round == last
            last = part.round
            yield from turns.call(ToolCallBlock(id=called, name=tool, arguments=arguments), joins=joins)
        elif part.found is not None:
            found = [deferred.get(name) or Tool(name=name) for name in part.found]
            content = (TextBlock(found_text(found)),)
            called = part.id or (waiting.popleft() if waiting else f"search_{next(unnamed)}")
            turns.answer(ToolResultBlock(call_id=called, name=tool, content=content))
    yield from turns.end()


def _by_words(tools: Sequence[Tool], query: str) -> tuple[Tool, ...]:
    named = named_in(query, [tool.name for tool in tools]) | {tool.name for tool in tools if tool.name == query.strip()}
    index = word_index(tuple((split_identifier(tool.name), _text_of(tool)) for tool in tools))
    words, letters = index.by_words(query), index.by_letters(query)
    most = max(letters, default=0.0) or 1.0
    # Runs of letters find what is misspelt; among tools that share a word they only decide who goes first.
    scores = [word + letter / most for word, letter in zip(words, letters, strict=True)]
    fitting = words if any(words) else letters
    order = sorted(range(len(tools)), key=lambda place: (tools[place].name not in named, -scores[place]))
    return tuple(tools[place] for place in order if tools[place].name in named or fitting[place] > 0)[:_MOST_FOUND]


def _by_pattern(tools: Sequence[Tool], fits: Callable[[str], bool]) -> tuple[Tool, ...]:
    """Return the tools that a pattern fits, those first in whose name it does."""
    by_name = [tool for tool in tools if fits(tool.name)]
    known = {tool.name for tool in by_name}
    rest = (tool for tool in tools if tool.name not in known and fits(f"{tool.description}\n{_text_of(tool)}"))
    found = [*by_name[:_MOST_FOUND]]
    while len(found) < _MOST_FOUND and (tool := next(rest, None)) is not None:
        found.append(tool)
    return tuple(found)


def _text_of(tool: Tool) -> str:
    """Return what a tool says of itself: its description, and the names and descriptions of its arguments."""
    given = (tool.schema or {}).get("properties")
    properties = given if isinstance(given, dict) else {}
    told = [
        f"{split_identifier(str(name))} {one.get('description') or '' if isinstance(one, dict) else ''}"
        for name, one in properties.items()
    ]
    return f"{tool.description}\n{' '.join(told)}"[:_MOST_TEXT]
