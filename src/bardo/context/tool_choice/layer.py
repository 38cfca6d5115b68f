"""The layer `tools`: a request gets the tools that belong to its question, the same ones in all turns of a session.

The tools stand at the front of a cached prompt, so a list that changes costs the whole prompt anew: later turns only append to it. In the
place of a large list stand three functions (`search_tools`, `get_tool_schema`, `execute_tool`), whose calls are answered within one call of
the client.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bardo.catalog.layer_rows import FunctionKind, tool_choice_rows
from bardo.context.effects import LoadForSession, StoreForSession
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
from bardo.context.own_functions import CheckArguments, OwnCall, OwnFunctions, OwnResult, OwnSteps
from bardo.context.tool_choice.ranking import Vector
from bardo.context.tool_choice.relevance import Ranking, ranked
from bardo.context.tool_choice.session import (
    MOST_NAMED,
    FindToolTurns,
    RecordToolUse,
    ToolChoiceSettings,
    ToolPlan,
    asked_text,
    choosable,
    is_users_turn,
    may_be_chosen,
    names_in_words,
    surviving,
    task_of,
    with_marks,
)
from bardo.context.tool_choice.word_index import named_in
from bardo.streams.stage import Stage
from bardo.values.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock, argument_text
from bardo.values.degradation import Degradation
from bardo.values.events import BlockFields, Event, OpaqueState, ToolCallChunk, ToolCallEnd, ToolCallStart
from bardo.values.request import Message, Request, Tool
from bardo.values.response import Response

if TYPE_CHECKING:
    from bardo.context.tool_choice.session import ToolChoiceSettings

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
    loaded = ()

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
        like = [own for own in self._tools if own.lower() == name.lower()]
        near = f"; did you mean {like[0]}?" if like else "; search for it"
        return f"there is no tool {name[:100]!r}{near}"

    def _result(self, call: OwnCall, fields: Mapping[str, Any]) -> OwnResult:
        content = (TextBlock(msgspec.json.encode(fields).decode()),)
        return OwnResult(ToolResultBlock(call_id=call.id, name=call.name, content=content, is_error="error" in fields))


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
    """Return a request whose history has the calls of tools that are not loaded as the model made them.

    A client sees only calls of its own tools. The model gets its calls back exactly as it made them, where that is remembered; else as a
    call of the function with the same arguments and the same id.
    """
    wrapped = {tool.name for tool in tools} - {tool.name for tool in loaded}
    ids = [block.id for block in _calls(request.messages) if block.id]
    if not ids:
        return request
    earlier_turns: Mapping[str, tuple[Message, ...]] = {}
    with suppress(EffectFailed):
        earlier_turns = yield FindToolTurns(tenant, tuple(ids[-_MOST_IDS:]))
    execute = functions.names["execute"]
    messages = [*_rewritten(request.messages, earlier_turns, wrapped, execute)]
    if len(messages) == len(request.messages) and all(map(_is, messages, request.messages)):
        return request
    return msgspec.structs.replace(request, messages=tuple(messages))


class FunctionsPart:
    """Answers the calls of the functions in the replies to one call, and notes for which searches tools were called.

    A search is answered from the client's own tools, best first; the same search again gives the next page. A call of a tool through
    `execute_tool` is checked against the tool's JSON Schema and becomes an ordinary call that the client executes.
    """

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
    messages: Sequence[Message], by_call: Mapping[str, tuple[Message, ...]], wrapped: Collection[str], execute: str
) -> Iterable[Message]:
    """Yield the messages as the model knows them. Results that the model got within a turn stand before those of the client."""
    renamed: set[str] = set()
    sent_calls: set[str] = set()
    pending: tuple[Block, ...] = ()
    for message in messages:
        if message.role == "assistant":
            calls = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
            renamed |= {call.id for call in calls if call.name in wrapped}
            if calls and all(call.id in sent_calls for call in calls):
                continue  # Some clients send each call of a reply as a message of its own.
            turns = next((by_call[call.id] for call in calls if call.id in by_call), None)
            if turns is None:
                yield _wrapped(message, wrapped, execute)
                continue
            sent_calls |= {call.id for call in _calls(turns)}
            *before, last = turns
            yield from before
            if last.role == "user":
                # The model called several functions at once, and one of the results is the client's.
                pending = last.blocks
            else:
                yield last
            continue
        rewritten = _with_results_of(message, renamed, execute)
        if pending:
            rewritten = msgspec.structs.replace(rewritten, blocks=(*pending, *rewritten.blocks))
            pending = ()
        yield rewritten


def _wrapped(message: Message, names: Collection[str], execute: str) -> Message:
    """Return a turn of which no record is stored, with its calls as calls of the function.

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
    """Return arguments as a JSON value, and as a string if they are not JSON."""
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
        declared = [by_name[name] for name in names if name in by_name]
        functions = offered_functions(request, len(tools))
        sent, dropped = self._sent(request, tools, declared)
        asked = changed(request, tools=(*sent, *functions.tools))
        asked = yield from with_function_calls(asked, tools, declared, functions, facts.tenant)
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
        declared = [by_name[name] for name in names if name in by_name]
        sent, dropped = self._sent(request, tools, declared)
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
        self, request: Request, tools: Sequence[Tool], chosen: Sequence[Tool]
    ) -> tuple[tuple[Tool, ...], list[Tool]]:
        """Return the tools that are sent, those outside the choice first, and those that are left out."""
        names, free = {tool.name for tool in chosen}, {id(tool) for tool in tools}
        untouched = [tool for tool in request.tools if id(tool) not in free]
        dropped = [tool for tool in tools if tool.name not in names]
        return with_marks([*untouched, *chosen], dropped), dropped

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
            receipt, tokens_before=facts.count_tokens(request, target), tokens_after=facts.count_tokens(asked, target)
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
        return (RecordToolUse(self._tenant, tuple(sorted(called)), self._ranking.vector, self._ranking.fingerprint),)

    def failed(self) -> Iterable[Effect]:
        """Return that nothing is learned."""
        return ()


def _asked_by_name(request: Request, names: Iterable[str]) -> set[str]:
    choice = request.tool_choice
    return {choice.name} & set(names) if choice is not None and choice.mode == "named" else set()
