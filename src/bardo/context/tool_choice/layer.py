"""The layer `tools`: a request gets the tools that belong to what is asked, the same ones in all turns of a session.

The tools stand at the front of what providers cache of a prompt, so that a list that changes costs the whole prompt anew. What was chosen
for a session stays, in its order, and later turns only append to it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

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
from bardo.context.session_memory import LoadForSession, StoreForSession
from bardo.context.tool_choice.effects import RecordToolUse, ToolPlan
from bardo.context.tool_choice.function_calls import FunctionsPart, offered_functions, with_function_calls
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
from bardo.streams.stage import Stage
from bardo.values.degradation import Degradation
from bardo.values.events import Event
from bardo.values.request import Request, Tool
from bardo.values.response import Response


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
