"""The layer `tools`: a request gets the tools that belong to what is asked, the same ones in all turns of a session.

The tools stand at the front of what providers cache of a prompt, so that a list that changes costs the whole prompt anew. What was chosen
for a session stays, in its order, and later turns only append to it.

The three functions that stand for a large list of tools: how they are offered, and how a history of calls is written for them.

A client sees only calls of its own tools. The model made them through a function, so that in later turns it gets them back like that:
exactly as it made them, where that is remembered, else as a call of the function with the same arguments and the same id.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.catalog.layer_rows import FunctionKind, tool_choice_rows
from bardo.context.layer import (
    Effect,
    EffectFailed,
    KeptReply,
    LayerFacts,
    LayerSteps,
    Passed,
    Receipt,
    ReplyPart,
    changed,
)
from bardo.context.own_functions import OwnFunctions
from bardo.context.session_memory import LoadForSession, StoreForSession
from bardo.context.tool_choice.effects import FindToolTurns, RecordToolUse, ToolPlan
from bardo.context.tool_choice.relevance import Ranking, ranked
from bardo.context.tool_choice.session import (
    MOST_NAMED,
    asked_text,
    choosable,
    is_users_turn,
    may_be_chosen,
    names_in_words,
    surviving,
    task_of,
    with_marks,
)
from bardo.context.tool_choice.settings import ToolChoiceSettings
from bardo.context.tool_choice.tool_functions import ToolFunctions
from bardo.streams.stage import Stage
from bardo.values.blocks import Block, ReasoningBlock, ToolCallBlock, ToolResultBlock, argument_text
from bardo.values.degradation import Degradation
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


class ToolChoice:
    """The layer. Immutable, and so shared by all calls."""

    name = "tools"

    def __init__(self, settings: ToolChoiceSettings | None = None) -> None:
        self._settings = settings or ToolChoiceSettings()

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        """Yield what the choice needs, and return the request with the tools that were chosen."""
        tools = choosable(request.tools)
        if not tools or not may_be_chosen(request):
            return Passed(request=request, receipt=Receipt(layer=self.name, saw={"tools": len(request.tools)}))
        plan: ToolPlan | None = None
        if facts.session:
            with suppress(EffectFailed):
                plan = ToolPlan.decode((yield LoadForSession(self.name, facts.session)))
        if self._asks_functions(request, tools, plan):
            return (yield from self._with_functions(request, tools, facts, plan))
        return (yield from self._chosen(request, tools, facts, plan))

    def _asks_functions(self, request: Request, tools: Sequence[Tool], plan: ToolPlan | None) -> bool:
        """Whether functions stand for the tools. A session stays with what it began with."""
        if request.output_format is not None or request.choices > 1:
            return False
        above = self._settings.meta_above
        return plan.functions if plan is not None else bool(above) and len(tools) > above

    def _with_functions(
        self, request: Request, tools: Sequence[Tool], facts: LayerFacts, plan: ToolPlan | None
    ) -> LayerSteps:
        by_name = {tool.name: tool for tool in tools}
        loaded = () if plan is None else plan.names
        stay = surviving(request, by_name, used=False) if plan is None else _asked_by_name(request, by_name)
        names = (*loaded, *[tool.name for tool in tools if tool.name in stay and tool.name not in loaded])
        kept = [by_name[name] for name in names if name in by_name]
        functions = offered_functions(request, len(tools))
        sent, dropped = self._sent(request, tools, kept)
        asked = changed(request, tools=(*sent, *functions.tools))
        asked = yield from with_function_calls(asked, tools, kept, functions, facts.tenant)
        yield from self._keep(facts, plan, ToolPlan(names=names, functions=True))
        part = FunctionsPart(tools, functions, facts.tenant, self._settings)
        did = f"{len(dropped)} of {len(request.tools)} tools are found by functions"
        why = "the model finds and calls the other tools by functions, which bardo answers"
        lost = Degradation("tools", asked=f"{len(request.tools)} tools", sent=names_in_words(asked.tools), why=why)
        saw = {
            "tools": len(request.tools),
            "sent": len(asked.tools),
            "functions": True,
            "loaded": [*names][:MOST_NAMED],
        }
        return self._passed(request, asked, facts, Receipt(layer=self.name, did=did, saw=saw), lost, part)

    def _chosen(self, request: Request, tools: Sequence[Tool], facts: LayerFacts, plan: ToolPlan | None) -> LayerSteps:
        if len(tools) <= self._settings.most and plan is None:
            return Passed(request=request, receipt=Receipt(layer=self.name, saw={"tools": len(request.tools)}))
        by_name = {tool.name: tool for tool in tools}
        stay = surviving(request, by_name, used=True)
        task = task_of(facts, self._settings.tasks)
        ranking: Ranking | None = None
        if plan is None or is_users_turn(request):
            ranking = yield from self._ranked(tools, request, facts)
        names = self._first(tools, stay, ranking, task) if plan is None else self._appended(plan, tools, stay, ranking)
        yield from self._keep(facts, plan, ToolPlan(names=names))
        kept = [by_name[name] for name in names if name in by_name]
        sent, dropped = self._sent(request, tools, kept)
        part = (
            UsesPart(ranking, facts, tools) if ranking is not None and ranking.vector and self._settings.uses else None
        )
        saw: dict[str, Any] = {"tools": len(request.tools), "sent": len(sent)}
        if ranking is not None:
            saw |= {"by": ranking.tier, "with_uses": ranking.used}
        if task:
            saw["task"] = task
        if not dropped:
            return Passed(request=request, receipt=Receipt(layer=self.name, saw=saw), reply=part)
        saw["left_out"] = [tool.name for tool in dropped[:MOST_NAMED]]
        asked = changed(request, tools=sent)
        lost = Degradation(
            "tools",
            asked=f"{len(request.tools)} tools",
            sent=f"{len(sent)} tools",
            why=f"left out: {names_in_words(dropped)}",
        )
        did = f"{len(dropped)} of {len(request.tools)} tools left out"
        return self._passed(request, asked, facts, Receipt(layer=self.name, did=did, saw=saw), lost, part)

    def _ranked(self, tools: Sequence[Tool], request: Request, facts: LayerFacts) -> Generator[Any, Any, Ranking]:
        settings = self._settings
        return (
            yield from ranked(tools, asked_text(request), facts.tenant, vectors=settings.vectors, uses=settings.uses)
        )

    def _first(self, tools: Sequence[Tool], stay: set[str], ranking: Ranking | None, task: str) -> tuple[str, ...]:
        """Return the names for a session that begins: those that stay, and the best of the others up to `most`."""
        listed = set(self._settings.tasks.get(task, ()))
        allowed = [tool.name in listed or not task for tool in tools]
        order = range(len(tools)) if ranking is None else ranking.order
        chosen = set(stay)
        for place in order:
            if len(chosen) >= max(self._settings.most, len(stay)):
                break
            if allowed[place]:
                chosen.add(tools[place].name)
        names = dict.fromkeys(tool.name for tool in tools if tool.name in chosen)
        return tuple(sorted(names)) if self._settings.order == "name" else tuple(names)

    def _appended(
        self, plan: ToolPlan, tools: Sequence[Tool], stay: set[str], ranking: Ranking | None
    ) -> tuple[str, ...]:
        """Return the names of a session that goes on: what it had, what stays in any case, and the best for a new question."""
        had = set(plan.names)
        further = [tool.name for tool in tools if tool.name in stay and tool.name not in had]
        best = () if ranking is None else ranking.order[: self._settings.added]
        further += [tools[place].name for place in best]
        return tuple(dict.fromkeys((*plan.names, *further)))

    def _sent(
        self, request: Request, tools: Sequence[Tool], kept: Sequence[Tool]
    ) -> tuple[tuple[Tool, ...], list[Tool]]:
        """Return the tools that are sent, those that nobody chose among first, and those that are left out."""
        names, free = {tool.name for tool in kept}, {id(tool) for tool in tools}
        untouched = [tool for tool in request.tools if id(tool) not in free]
        dropped = [tool for tool in tools if tool.name not in names]
        return with_marks([*untouched, *kept], dropped), dropped

    def _keep(self, facts: LayerFacts, before: ToolPlan | None, plan: ToolPlan) -> Generator[Any, Any, None]:
        if facts.session and not facts.dry and plan != before:
            with suppress(EffectFailed):
                yield StoreForSession(self.name, facts.session, plan.encode())

    def _passed(
        self,
        request: Request,
        asked: Request,
        facts: LayerFacts,
        receipt: Receipt,
        lost: Degradation,
        part: ReplyPart | None,
    ) -> Passed:
        target = facts.targets[0] if facts.targets else None
        counted = msgspec.structs.replace(
            receipt,
            tokens_before=facts.count_tokens(request, target),
            tokens_after=facts.count_tokens(asked, target),
        )
        return Passed(request=asked, receipt=counted, degraded=(lost,), reply=part)


class UsesPart:
    """Notes which tools a model called, so that they are found sooner for texts like this one."""

    most_bytes = 0

    def __init__(self, ranking: Ranking, facts: LayerFacts, tools: Sequence[Tool]) -> None:
        self._ranking = ranking
        self._tenant = facts.tenant
        self._learns = not facts.dry
        self._names = {tool.name for tool in tools}

    def stage(self) -> Stage[Event, Event] | None:
        """Return that the events pass as they are."""
        return None

    def ended(self, request: Request, response: Response, kept: KeptReply | None) -> Iterable[Effect]:
        """Return that the tools which were called are noted."""
        called = {call.name for call in response.tool_calls} & self._names
        if not called or not self._learns:
            return ()
        names = tuple(sorted(called))
        return (RecordToolUse(self._tenant, names, self._ranking.vector, self._ranking.fingerprint),)

    def failed(self) -> Iterable[Effect]:
        """Return that nothing is learned."""
        return ()


def _asked_by_name(request: Request, names: Iterable[str]) -> set[str]:
    choice = request.tool_choice
    return {choice.name} & set(names) if choice is not None and choice.mode == "named" else set()
