"""Offer a model the gateway's own web search as a function, where a client asks for a search tool that the provider does not run.

A model gets earlier searches of the conversation again as calls of the function and their results, or as text. Anthropic's clients send
back the results, Responses' clients only that a search was made.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import msgspec

from bardo.catalog.hosted_tools import HostedForm, HostedTool, hosted_tool
from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.shared.content_forms import SearchPart, SearchResults
from bardo.dialects.shared.json_values import encode_json
from bardo.dialects.shared.losses import take_at as take
from bardo.dialects.shared.tools import is_form
from bardo.values.blocks import Block, TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request, Tool


def results_text(results: SearchResults) -> str:
    """Return the results of a search as a model reads them: JSON with one object for each page."""
    if results.error:
        return encode_json({"error": results.error}).decode()
    pages = [{name: value for name, value in msgspec.to_builtins(page).items() if value} for page in results.pages]
    return encode_json({"results": pages}).decode()


def as_calls(request: Request, tool: str) -> tuple[Message, ...]:
    """Return the messages with earlier searches as calls of the function `tool` and their results."""
    if not any(part_of(block) for message in request.messages for block in message.blocks):
        return request.messages
    unnamed = count()
    return tuple(one for message in request.messages for one in _split(message, tool, unnamed))


def without_own_results(request: Request, row: ProviderRow) -> Request:
    """Return a request with the gateway's own earlier results as text, for a provider that would refuse such blocks."""
    parts = (part_of(block) for message in request.messages for block in message.blocks)
    if not any(part is not None and part.own for part in parts):
        return request
    messages = tuple(
        msgspec.structs.replace(message, blocks=tuple(_as_text(message.blocks))) for message in request.messages
    )
    lost = Degradation("web_search", sent="text", why=f"{row.id} reads only what its own search found")
    return msgspec.structs.replace(
        request, messages=messages, body=None, body_bytes=b"", degraded=(*request.degraded, lost)
    )


def part_of(block: Block) -> SearchPart | None:
    """Return which part of a search a block is; None for a block that is none."""
    if not isinstance(block, UnknownBlock) or not isinstance(block.value, dict):
        return None
    declared = dialect(block.dialect).reply
    return None if declared is None or declared.searches is None else declared.searches.read(block.value)


def _split(message: Message, tool: str, unnamed: Iterator[int]) -> Iterator[Message]:
    """Yield a message as the turns it stands for. Searches without an id are numbered through the conversation by `unnamed`."""
    turns = SearchTurns(message)
    waiting: deque[str] = deque()
    for block in message.blocks:
        part = part_of(block)
        if part is None:
            yield from turns.add(block)
            continue
        if part.query is not None:
            arguments = encode_json({"query": part.query}).decode()
            called = part.id or f"{tool}_{next(unnamed)}"
            if not part.id and part.results is None:
                waiting.append(called)
            yield from turns.call(ToolCallBlock(id=called, name=tool, arguments=arguments))
        elif part.results is not None:
            called = part.id or (waiting.popleft() if waiting else f"{tool}_{next(unnamed)}")
        if part.results is not None:
            content = (TextBlock(results_text(part.results)),)
            error = bool(part.results.error)
            turns.answer(ToolResultBlock(call_id=called, name=tool, content=content, is_error=error))
    yield from turns.end()


class SearchTurns:
    """Cuts a message with calls that were answered within it into turns: what is said, and behind it the results of its calls.

    What stands behind results is a turn of its own, but not where a call of the client's waits for its result, which the next message has:
    a model made all of these calls in one turn.
    """

    def __init__(self, message: Message) -> None:
        self._message = message
        self._blocks: list[Block] = []
        self._results: list[ToolResultBlock] = []
        self._client_is_called = False

    def add(self, block: Block) -> Iterator[Message]:
        """Take what is said, and yield the turns that are complete before it."""
        if self._results and not self._client_is_called:
            yield from self.end()
        self._client_is_called = self._client_is_called or isinstance(block, ToolCallBlock)
        self._blocks.append(block)

    def call(self, search: ToolCallBlock, *, joins: bool = False) -> Iterator[Message]:
        """Take a search, which is answered within the message if at all, and yield the turns that are complete before it.

        `joins`: the model made it in the turn of the one before.
        """
        if self._results and not self._client_is_called and not joins:
            yield from self.end()
        self._blocks.append(search)

    def answer(self, result: ToolResultBlock) -> None:
        """Take the result of a call."""
        self._results.append(result)

    def end(self) -> Iterator[Message]:
        """Yield what is left."""
        if self._blocks:
            yield msgspec.structs.replace(self._message, blocks=tuple(self._blocks))
        if self._results:
            yield Message("user", tuple(self._results))
        self._blocks, self._results, self._client_is_called = [], [], False


def _as_text(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        part = part_of(block)
        if part is None or not part.own:
            yield block
        elif part.results is not None:
            yield TextBlock(f"Found on the web: {results_text(part.results)}")


_TOOL = "web_search"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What to search for."}},
    "required": ["query"],
    "additionalProperties": False,
}
_DESCRIPTION = "Search the web. Returns pages with their address, title, date and some of their text."


class SearchPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When the gateway searches: where the provider does not, or `always`; by which `service`; at most `most_searches` a reply."""

    service: str
    always: bool = False
    most_searches: int = 8


class SearchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How the searches of one reply are made: the name of the function that stands for them, how many at most, and on which domains."""

    tool: str
    most: int
    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()


def with_search(
    request: Request, row: ProviderRow, model: str, policy: SearchPolicy
) -> tuple[Request, SearchPlan | None]:
    """Return the request for a target's model with a function in the place of its search tool, and how its calls are executed.

    No plan where the provider runs the tool, or where the answer must fit a schema.
    """
    known = hosted_tool(_TOOL)
    given = known.form_of(request.dialect)
    fields = None if given is None else _search_tool(request, given)
    if given is None or fields is None or not _is_ours(request, row, model, known, policy):
        return without_own_results(request, row), None
    plan = _plan(request, fields, given, policy)
    extra = {name: value for name, value in request.extra.items() if name != given.field}
    tools = tuple(tool for tool in request.tools if not is_form(tool, given))
    function = Tool(name=plan.tool, description=_DESCRIPTION, schema=_SCHEMA)
    messages = as_calls(request, plan.tool)
    choice = request.tool_choice
    if choice is not None and choice.mode == "named" and choice.name not in {tool.name for tool in tools}:
        choice = msgspec.structs.replace(choice, name=plan.tool)
    why = f"{row.id} is not known to run it: bardo searches by {policy.service}"
    asked = msgspec.structs.replace(
        request,
        tools=(*tools, function),
        tool_choice=choice,
        extra=extra,
        messages=messages,
        body=None,
        body_bytes=b"",
        degraded=(*request.degraded, Degradation(f"tool {_TOOL}", sent=plan.tool, why=why)),
    )
    return asked, plan


def _is_ours(request: Request, row: ProviderRow, model: str, known: HostedTool, policy: SearchPolicy) -> bool:
    """Whether the gateway shall search for this target."""
    if request.output_format is not None or request.choices > 1 or request.options.hosted_only:
        return False
    return policy.always or known.form_at(row.dialect, row.id, model) is None


def _search_tool(request: Request, form: HostedForm) -> dict[str, Any] | None:
    """Return the search tool that a request asks for, as the client wrote it, or None if it asks for none."""
    if form.field and isinstance(request.extra.get(form.field), dict):
        return dict(request.extra[form.field])
    found = next((tool for tool in request.tools if is_form(tool, form)), None)
    return None if found is None or found.carried is None else found.carried.fields


def _plan(request: Request, fields: dict[str, Any], form: HostedForm, policy: SearchPolicy) -> SearchPlan:
    left: dict[str, Any] = copy.deepcopy(fields)
    settings = {name: take(left, path) for name, path in form.settings.items()}
    most = settings.get("max_uses")
    names = {tool.name for tool in request.tools if not is_form(tool, form)}
    return SearchPlan(
        tool=_TOOL if _TOOL not in names else f"bardo_{_TOOL}",
        most=min(most, policy.most_searches) if type(most) is int and most > 0 else policy.most_searches,
        allowed=_domains(settings.get("allowed_domains")),
        blocked=_domains(settings.get("blocked_domains")),
    )


def _domains(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else ()
    return tuple(one.strip().lower() for one in listed if isinstance(one, str) and one.strip())
