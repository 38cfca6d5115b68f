"""Answer a model's calls of `search_tools`, `get_tool_schema` and `execute_tool` within one call of the client.

A search is answered from the client's own tools, best first; the same search again gives the next page. A call of a tool through
`execute_tool` is checked against the tool's JSON Schema and becomes an ordinary call that the client executes.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bardo.catalog.layer_rows import FunctionKind
from bardo.context.own_functions import CheckArguments, OwnCall, OwnResult, OwnSteps
from bardo.context.tool_choice.ranking import Vector
from bardo.context.tool_choice.relevance import Ranking, ranked
from bardo.context.tool_choice.tokenization import named_in
from bardo.values.blocks import TextBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.events import BlockFields, Event, OpaqueState, ToolCallChunk, ToolCallEnd, ToolCallStart
from bardo.values.request import Tool

if TYPE_CHECKING:
    from bardo.context.tool_choice.settings import ToolChoiceSettings

PAGE = 8
"""Tools that one search returns."""
MOST_SCHEMAS = 10
"""Schemas that one call returns."""
_MOST_DESCRIPTION = 400
_MOST_PARAMETERS = 12
_MOST_QUERY = 2_000
_MOST_FAILURES_TOLD = 5
_ROUNDS_BEYOND = 4
_HEAD = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"arguments"\s*:\s*\{')


class ToolFunctions:
    """The functions for one reply. `names` are those of the functions, `found` the tools that searches have returned so far.

    `searched` is the vector of the last search and the fingerprint of what made it; empty where there was none.
    """

    cause: Literal["search", "tools"] = "tools"
    why = "the model goes on with the tools that it was told of"
    remembered = True

    def __init__(
        self, tools: Sequence[Tool], names: Mapping[FunctionKind, str], tenant: str, settings: ToolChoiceSettings
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._kinds: dict[str, FunctionKind] = {name: kind for kind, name in names.items()}
        self._execute = names["execute"]
        self._tenant = tenant
        self._settings = settings
        self._pages: dict[str, int] = {}
        self._rankings: dict[str, Ranking] = {}
        self._searches = self._failures = 0
        self.names = frozenset(self._kinds)
        self.most_rounds = settings.most_searches + settings.most_failures + _ROUNDS_BEYOND
        self.found: set[str] = set()
        self.searched: tuple[Vector, str] | tuple[()] = ()

    def answer(self, call: OwnCall, block: int) -> OwnSteps:
        """Answer one call; the client's call that comes of it stands in the block of this number."""
        arguments = _object(call.arguments)
        kind = self._kinds[call.name]
        if kind == "execute" and arguments is not None:
            inner = self._kinds.get(str(arguments.get("name")))
            if inner in ("search", "schema"):
                kind, arguments = inner, _object(arguments.get("arguments"))
        if arguments is None:
            return self._result(call, {"error": "the arguments are not a JSON object"})
        if kind == "search":
            return (yield from self._search(call, arguments))
        if kind == "schema":
            return self._result(call, self._schemas(arguments))
        return (yield from self._executed(call, arguments, block))

    def opens(self, name: str, arguments: str) -> tuple[str, int] | None:
        """Return the tool of a call of `execute_tool` whose arguments are not checked, once its name has come before them."""
        if self._settings.check_arguments or self._kinds[name] != "execute":
            return None
        head = _HEAD.match(arguments)
        return (head[1], head.end() - 1) if head is not None and head[1] in self._tools else None

    def ending(self) -> Sequence[Event]:
        """Return nothing: the client learns of none of these calls."""
        return ()

    def stopped(self) -> Degradation:
        """Return that the model went on to look for tools."""
        return Degradation("tools", why="the model went on to look for tools beyond what is allowed")

    def _search(self, call: OwnCall, arguments: Mapping[str, Any]) -> OwnSteps:
        query = str(arguments.get("query") or "").strip()[:_MOST_QUERY]
        self._searches += 1
        if self._searches > self._settings.most_searches:
            error = f"no more searches: call {self._execute} with a tool that was found, or answer without one"
            return self._result(call, {"error": error})
        ranking = yield from self._ranking(query)
        if ranking.vector:
            self.searched = ranking.vector, ranking.fingerprint
        listed = list(self._tools.values())
        named = named_in(query, self._tools) | {name for name in self._tools if name.lower() == query.lower()}
        first = [tool for tool in listed if tool.name in named]
        order = [*first, *(listed[place] for place in ranking.order if listed[place].name not in named)]
        page = self._pages.get(query, 0)
        self._pages[query] = page + 1
        shown = order[page * PAGE : (page + 1) * PAGE]
        self.found |= {tool.name for tool in shown}
        left = max(0, len(order) - (page + 1) * PAGE)
        return self._result(call, {"tools": [_summary(tool) for tool in shown], "further_tools": left})

    def _ranking(self, query: str) -> Generator[Any, Any, Ranking]:
        if query not in self._rankings:
            settings = self._settings
            tools = [*self._tools.values()]
            self._rankings[query] = yield from ranked(
                tools, query, self._tenant, vectors=settings.vectors, uses=settings.uses
            )
        return self._rankings[query]

    def _schemas(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        asked = arguments.get("names", arguments.get("name"))
        names = [asked] if isinstance(asked, str) else asked if isinstance(asked, list) else []
        wanted = [name for name in names if isinstance(name, str)][:MOST_SCHEMAS]
        tools = [_described(self._tools[name]) for name in wanted if name in self._tools]
        unknown = [self._unknown(name) for name in wanted if name not in self._tools]
        return {"tools": tools} | ({"errors": unknown} if unknown or not tools else {})

    def _executed(self, call: OwnCall, arguments: Mapping[str, Any], block: int) -> OwnSteps:
        name = str(arguments.get("name") or "")
        tool = self._tools.get(name)
        if tool is None:
            self._failures += 1
            return self._result(call, {"error": self._unknown(name)})
        tool_arguments = _arguments_of(arguments)
        failures: Sequence[str] = ()
        if self._settings.check_arguments and self._failures < self._settings.most_failures:
            failures = ["the arguments are not a JSON object"] if tool_arguments is None else ()
            if tool_arguments is not None and tool.schema is not None:
                failures = yield CheckArguments(tool.schema, tool_arguments)
        if failures:
            self._failures += 1
            error = f"the arguments do not fit the schema of {name}"
            content = {"error": error, "failures": [*failures][:_MOST_FAILURES_TOLD], "tool": _described(tool)}
            return self._result(call, content)
        # Broken arguments go on as the model wrote them: an empty object would be a call that it did not make.
        text = _text_of(arguments["arguments"] if tool_arguments is None else tool_arguments)
        states = [_moved(state, block) for state in call.states]
        begin = ToolCallStart(block, call.id, name, state_follows=bool(states))
        events = (begin, *states, ToolCallChunk(block, text), ToolCallEnd(block))
        return OwnResult(events=events, for_client=True)

    def _unknown(self, name: str) -> str:
        like = [known for known in self._tools if known.lower() == name.lower()]
        near = f"; did you mean {like[0]}?" if like else "; search for it"
        return f"there is no tool {name[:100]!r}{near}"

    def _result(self, call: OwnCall, fields: Mapping[str, Any]) -> OwnResult:
        content = (TextBlock(msgspec.json.encode(fields).decode()),)
        failed = "error" in fields
        return OwnResult(ToolResultBlock(call_id=call.id, name=call.name, content=content, is_error=failed))


def _object(value: Any) -> dict[str, Any] | None:
    """Return a JSON object that may be given as its text; None for anything else, and an empty one for no text."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value) if value.strip() else {}
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _arguments_of(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments for the tool: models write them as an object, as the text of one, or beside the name."""
    if "arguments" in arguments:
        return _object({} if arguments["arguments"] is None else arguments["arguments"])
    return {name: value for name, value in arguments.items() if name != "name"}


def _text_of(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def _summary(tool: Tool) -> dict[str, Any]:
    properties = (tool.schema or {}).get("properties")
    names = [*properties][:_MOST_PARAMETERS] if isinstance(properties, dict) else []
    return {"name": tool.name, "description": tool.description[:_MOST_DESCRIPTION], "arguments": names}


def _described(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "schema": tool.schema or {"type": "object"}}


def _moved(state: Event, block: int) -> Event:
    if isinstance(state, OpaqueState | BlockFields):
        return msgspec.structs.replace(state, block=block)
    return state
