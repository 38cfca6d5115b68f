"""The three functions that stand for a large list of tools: how they are offered, and how a history of calls is written for them.

A client sees only calls of its own tools. The model made them through a function, so that in later turns it gets them back like that:
exactly as it made them, where that is remembered, else as a call of the function with the same arguments and the same id.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.catalog.tool_choice_rows import FunctionKind, tool_choice_rows
from bardo.context.layer import Effect, EffectFailed, KeptReply
from bardo.context.own_functions import OwnFunctions
from bardo.context.tool_choice.effects import FindToolTurns, RecordToolUse
from bardo.context.tool_choice.tool_functions import ToolFunctions
from bardo.streams.stage import Stage
from bardo.values.blocks import Block, ReasoningBlock, ToolCallBlock, ToolResultBlock, argument_text
from bardo.values.events import Event
from bardo.values.request import Message, Request, Tool
from bardo.values.response import Response

if TYPE_CHECKING:
    from bardo.context.tool_choice.settings import ToolChoiceSettings

_MOST_IDS = 200
"""Calls of a history, from its end, that are looked up; those before them are written anew."""


class OfferedFunctions(msgspec.Struct, frozen=True):
    """The functions as tools, and their names by what they do: a client's own tool of the same name keeps it."""

    tools: tuple[Tool, ...]
    names: dict[FunctionKind, str]


def offered_functions(request: Request, count: int) -> OfferedFunctions:
    """Return the functions for a request with so many tools."""
    taken = {tool.name for tool in request.tools}
    tools, names = [], {}
    for kind, row in tool_choice_rows().functions.items():
        names[kind] = name = row.name if row.name not in taken else f"bardo_{row.name}"
        tools.append(Tool(name=name, description=row.description.replace("{count}", str(count)), schema=row.schema))
    return OfferedFunctions(tuple(tools), names)


def with_function_calls(
    request: Request, tools: Sequence[Tool], loaded: Sequence[Tool], functions: OfferedFunctions, tenant: str
) -> Generator[Any, Any, Request]:
    """Return a request whose history has the calls of tools that are not loaded as the model made them."""
    wrapped = {tool.name for tool in tools} - {tool.name for tool in loaded}
    ids = [block.id for block in _calls(request.messages) if block.id]
    if not ids:
        return request
    found: Mapping[str, tuple[Message, ...]] = {}
    with suppress(EffectFailed):
        found = yield FindToolTurns(tenant, tuple(ids[-_MOST_IDS:]))
    execute = functions.names["execute"]
    messages = [*_rewritten(request.messages, found, wrapped, execute)]
    if len(messages) == len(request.messages) and all(map(_is, messages, request.messages)):
        return request
    return msgspec.structs.replace(request, messages=tuple(messages))


class FunctionsPart:
    """Answers the calls of the functions in the replies to one call, and notes for which searches tools were called."""

    most_bytes = 0

    def __init__(
        self, tools: Sequence[Tool], offered: OfferedFunctions, tenant: str, settings: ToolChoiceSettings
    ) -> None:
        self._tools = tools
        self._offered = offered
        self._tenant = tenant
        self._settings = settings
        self._given: ToolFunctions | None = None

    def functions(self) -> OwnFunctions:
        """Return the functions for one reply."""
        self._given = ToolFunctions(self._tools, self._offered.names, self._tenant, self._settings)
        return self._given

    def stage(self) -> Stage[Event, Event] | None:
        """Return that the events pass as they are: the engine takes the calls out."""
        return None

    def ended(self, request: Request, response: Response, kept: KeptReply | None) -> Iterable[Effect]:
        """Return that the tools which were called are noted for the searches that found them."""
        given = self._given
        if given is None or not self._settings.uses or not given.searched:
            return ()
        vector, fingerprint = given.searched
        called = {call.name for call in response.tool_calls} & given.found
        return (RecordToolUse(self._tenant, tuple(sorted(called)), vector, fingerprint),) if called else ()

    def failed(self) -> Iterable[Effect]:
        """Return that nothing is learned."""
        return ()


def _rewritten(
    messages: Sequence[Message], found: Mapping[str, tuple[Message, ...]], wrapped: Collection[str], execute: str
) -> Iterable[Message]:
    """Yield the messages as the model knows them. Results that the model got within a turn stand before those of the client."""
    renamed: set[str] = set()
    placed: set[str] = set()
    pending: tuple[Block, ...] = ()
    for message in messages:
        if message.role == "assistant":
            calls = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
            renamed |= {call.id for call in calls if call.name in wrapped}
            if calls and all(call.id in placed for call in calls):
                continue  # Some clients send each call of a reply as a message of its own.
            turns = next((found[call.id] for call in calls if call.id in found), None)
            if turns is None:
                yield _wrapped(message, wrapped, execute)
                continue
            placed |= {call.id for call in _calls(turns)}
            *before, last = turns
            yield from before
            if last.role == "user":
                # The model called several functions at once, and one of the results is the client's.
                pending = last.blocks
            else:
                yield last
            continue
        one = _with_results_of(message, renamed, execute)
        if pending:
            one = msgspec.structs.replace(one, blocks=(*pending, *one.blocks))
            pending = ()
        yield one


def _wrapped(message: Message, names: Collection[str], execute: str) -> Message:
    """Return a turn that nobody remembers with its calls as calls of the function.

    Several stretches of thinking may be those of several turns, and providers refuse signed thinking in another turn than its own
    (Anthropic, 2026-11): they are left out.
    """
    if not any(isinstance(block, ToolCallBlock) and block.name in names for block in message.blocks):
        return message
    joined = sum(isinstance(block, ReasoningBlock) for block in message.blocks) > 1
    blocks = [
        msgspec.structs.replace(block, name=execute, arguments=wrapped_arguments(block))
        if isinstance(block, ToolCallBlock) and block.name in names
        else block
        for block in message.blocks
        if not (joined and isinstance(block, ReasoningBlock))
    ]
    return msgspec.structs.replace(message, blocks=tuple(blocks))


def wrapped_arguments(call: ToolCallBlock) -> str:
    """Return the arguments of the function that stands for the call of a tool."""
    name = msgspec.json.encode(call.name).decode()
    return f'{{"name":{name},"arguments":{_object_text(call.arguments)}}}'


def _object_text(arguments: str) -> str:
    """Return arguments as a JSON value: what is no JSON is a string."""
    text = argument_text(arguments)
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return msgspec.json.encode(text).decode()
    return text


def _with_results_of(message: Message, ids: Collection[str], execute: str) -> Message:
    if not any(isinstance(block, ToolResultBlock) and block.name and block.call_id in ids for block in message.blocks):
        return message
    blocks = [
        msgspec.structs.replace(block, name=execute)
        if isinstance(block, ToolResultBlock) and block.name and block.call_id in ids
        else block
        for block in message.blocks
    ]
    return msgspec.structs.replace(message, blocks=tuple(blocks))


def _calls(messages: Sequence[Message]) -> Iterable[ToolCallBlock]:
    return (block for message in messages for block in message.blocks if isinstance(block, ToolCallBlock))


def _is(one: Message, other: Message) -> bool:
    return one is other
