"""The calls of an agent (`[golem]`): which tier a tick has, whether the day's budget pays for a call, and at which step its session is.

A tick that needs no model is answered here. What the agent does not say of its DIEM is read from the balances that providers tell.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from bardo.accounting.limits import next_day
from bardo.adapters.config.routing import GolemSettings
from bardo.adapters.stores.log.rollup import SECONDS_PER_DAY
from bardo.catalog.rows import ProviderRow
from bardo.context.layer import KeptReply, changed
from bardo.context.sessions import session_name
from bardo.context.tool_choice.session import (
    MOST_NAMED,
    called_in,
    choosable,
    may_be_chosen,
    names_in_words,
    with_marks,
)
from bardo.golem.rows import route_rows, tier_rows
from bardo.golem.running import Means, Settled, Spent, budget_of, is_heartbeat, schedule_steps, settle, verifier_of
from bardo.golem.ticks import kind_of_tick, tools_of_tick
from bardo.planning.route import Provider, RouteRecord, Target
from bardo.planning.vitality import not_of_agent
from bardo.routing.workloads import Workload
from bardo.services.accounts.agent_spending import DaySpending
from bardo.services.accounts.agent_steps import SessionSteps
from bardo.services.facts.balances import Balances
from bardo.services.facts.directory import ProviderDirectory
from bardo.structured import checker
from bardo.values.agent import AgentStep
from bardo.values.cost import usd
from bardo.values.degradation import Degradation
from bardo.values.intent import Intent
from bardo.values.request import Request, SearchLimit, with_search_limit

if TYPE_CHECKING:
    from bardo.adapters.config.accounts import Account


class LocalAnswer(NamedTuple):
    """An answer that needs no model: who gives it, as what it is planned and read, and how it was found."""

    target: Target
    request: Request
    reply: KeptReply
    route: RouteRecord


class AgentCalls:
    """Settles calls of the agent before they are planned. `clock` gives Unix time."""

    def __init__(
        self,
        settings: GolemSettings,
        prefix: str,
        directory: ProviderDirectory,
        balances: Balances,
        spending: DaySpending,
        steps: SessionSteps,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.spending = spending
        self.settings = settings
        self._prefix = prefix
        self._directory = directory
        self._balances = balances
        self._steps = steps
        self._clock = clock
        self._most_diem: tuple[int, float] = (-1, 0.0)

    async def prepare(
        self, request: Request, account: Account | None, tenant: str
    ) -> tuple[Request, LocalAnswer | None]:
        """Return a request with the step of the agent that it is, and its answer where no model is asked.

        Raises InvalidRequest for a tick that no rule knows, and OverBudget where a subsystem does without a model until tomorrow.
        """
        options = request.options
        found = self._directory.found(request.model)
        workload = self._directory.workloads.of_call(options.intent, found.model)
        if workload is None or workload.pressure is None:
            if options.tick is None:
                return request, None
            return _with(request, None, (not_of_agent("tick", options.tick.type or "tick"),)), None
        kind = kind_of_tick(options.tick.type) if options.tick is not None and options.tick.type else ""
        name = workload.name if is_heartbeat(workload.name) else workload.pressure.profile
        count = 0
        if schedule_steps(name) is not None:
            cycle = "" if options.tick is None or options.tick.cycle is None else str(options.tick.cycle)
            count = await self._steps.next(tenant, session_name(request), name, cycle)
        key_id, now = "" if account is None else account.id, self._clock()
        settled = settle(
            name,
            options.tick,
            vitality=options.vitality,
            means=await self.means(key_id),
            count=count,
            golem=self.settings.id,
            prefix=self._prefix,
            asks_model=options.tick is None and self._model_is_named(workload),
            seconds_left=next_day(now) - now,
        )
        if settled.answer is not None and not _fits(settled.answer, request):
            settled = self._with_model(settled, request)
        step = settled.step
        if not is_heartbeat(workload.name):
            step = msgspec.structs.replace(step, workload=workload.name)
        made = self._verified(_with(request, step, settled.degraded), workload, name)
        if (most := self.settings.web_search_budget_per_cycle_usdc) is not None:
            cycle = "" if options.tick is None or options.tick.cycle is None else str(options.tick.cycle)
            limit = SearchLimit(
                setting="[golem] web_search_budget_per_cycle_usdc",
                key=f"cycle {cycle} of {session_name(request)} of {tenant}",
                usd=most,
            )
            made = with_search_limit(made, limit)
        if settled.answer is not None:
            return made, self._local(made, settled)
        return self._with_tools_of(kind, made) if kind and made.tools else made, None

    def _verified(self, request: Request, workload: Workload, name: str) -> Request:
        """Return a request whose answer another model judges, where the documents want that and its provider is configured."""
        judge = verifier_of(name)
        if not self.settings.verify or judge is None or workload.verify or request.options.verify is not None:
            return request
        provider = next((one.id for one in self._directory.providers if one.row.id == judge[0]), None)
        if provider is None:
            return request
        options = msgspec.structs.replace(request.options, verify=f"{provider}/{judge[1]}")
        return msgspec.structs.replace(request, options=options)

    def _with_tools_of(self, kind: str, request: Request) -> Request:
        """Return a request with the tools of a kind of tick (003, "Tool pruning (Layer 5 detail)"), and what was left out.

        Tools that the provider runs stay, and so does what was called before and what the caller's choice names.
        """
        tools = choosable(request.tools)
        choice = request.tool_choice
        named = {choice.name} if choice is not None and choice.mode == "named" else set()
        names = [tool.name for tool in tools]
        kept = set(tools_of_tick(kind, names, stay=called_in(request) | named, own=self.settings.tools))
        dropped = [tool for tool in tools if tool.name not in kept]
        if dropped and not may_be_chosen(request):
            why = f"the caller chooses among some of its tools itself, so that they are not those of the tick ({kind})"
            lost = Degradation("tick", asked=kind, why=why)
            return msgspec.structs.replace(request, degraded=(*request.degraded, lost))
        free = {id(tool) for tool in tools}
        untouched = [tool for tool in request.tools if id(tool) not in free]
        of_kind = sorted((tool for tool in tools if tool.name in kept), key=lambda tool: tool.name)
        sent = with_marks([*untouched, *of_kind], dropped)
        record = {"type": kind, "tools": len(sent), "left_out": [tool.name for tool in dropped[:MOST_NAMED]]}
        made = _with_record(request, record)
        if sent != request.tools:
            # In one order whatever the client's is, so that the beginning of the prompt stays as it was.
            made = changed(made, tools=sent)
        if not dropped:
            return made
        why = f"left out in a tick of {kind}: {names_in_words(dropped)}"
        told = [Degradation("tools", asked=f"{len(request.tools)} tools", sent=f"{len(sent)} tools", why=why)]
        if not sent and choice is not None:
            made = changed(made, tool_choice=None)
            told.append(Degradation("tool_choice", asked=choice.mode, why=f"no tool is one of a tick of {kind}"))
        return msgspec.structs.replace(made, degraded=(*made.degraded, *told))

    async def means(self, key_id: str) -> Means:
        """Return what the agent of a key may spend today, and what it did."""
        by_diem = {one.id for one in self._directory.providers if one.row.id in route_rows().paid_by_diem}
        left = self._diem_left(by_diem)
        most = self._note_diem(left)
        in_usd: dict[str, float] = {}
        in_diem: dict[str, float] = {}
        for key, nanos in (await self.spending.of_key(key_id)).items():
            budget = budget_of(self._subsystem(key.subsystem))
            of_diem = key.provider in by_diem and left is not None
            sums = in_diem if of_diem else in_usd
            sums[budget] = sums.get(budget, 0.0) + usd(nanos)
        spent: dict[str, Spent] = {}
        for budget in {*in_usd, *in_diem}:
            # DIEM pays as long as there is some, dollars the rest.
            covered = min(in_diem.get(budget, 0.0), most)
            most -= covered
            spent[budget] = Spent(usd=in_usd.get(budget, 0.0) + in_diem.get(budget, 0.0) - covered, diem=covered)
        return Means(daily_budget_usd=self.settings.daily_budget_usd, spent=spent, diem=left or 0.0)

    def _subsystem(self, workload: str) -> str:
        """Return the subsystem of a workload, which an operator may have named otherwise."""
        found = self._directory.workloads.get(workload)
        return workload if found is None or found.pressure is None else found.pressure.profile

    def _diem_left(self, providers: set[str]) -> float | None:
        now = self._clock()
        known = [amount for one in sorted(providers) if (amount := self._balances.amount(one, "diem", now)) is not None]
        return sum(known) if known else None

    def _note_diem(self, left: float | None) -> float:
        """Return the most DIEM that was left today: what of it was spent cannot be more."""
        day = int(self._clock() // SECONDS_PER_DAY)
        most = self._most_diem[1] if self._most_diem[0] == day else 0.0
        self._most_diem = (day, max(most, left or 0.0))
        return self._most_diem[1]

    def _model_is_named(self, workload: Workload) -> bool:
        return workload.intent.model is not None or bool(workload.fallbacks)

    def _with_model(self, settled: Settled, request: Request) -> Settled:
        """Return the call with the lowest tier that asks a model, because its caller wants another answer than the rules give."""
        lowest = next(row for row in tier_rows().tier if row.workload)
        asked = settled.step.record["tier"]
        why = "the caller asks for an answer in a schema of its own, which the decision of the rules does not fit"
        record = {**settled.step.record, "tier": lowest.name, "why": why}
        step = AgentStep(workload=lowest.workload, record=record)
        lost = Degradation("tier", asked=asked, sent=lowest.name, why=why)
        return Settled(step=step, degraded=(*settled.degraded, lost))

    def _local(self, request: Request, settled: Settled) -> LocalAnswer:
        """Return the answer of a tick that needs no model as a reply of Chat, read as any other."""
        step = settled.step
        options = msgspec.structs.replace(
            request.options,
            intent=Intent(subsystem=step.workload),
            intent_fields=(),
            profile=None,
            vitality=None,
            tick=None,
            agent_step=None,
        )
        plain = msgspec.structs.replace(request, options=options, reasoning=None)
        rules = tier_rows().without_model
        row = ProviderRow(id=rules.provider, name=rules.name, dialect=rules.dialect)
        target = Target(provider=Provider(id=row.id, row=row, base_url=""), model=step.workload)
        body = {
            "object": "chat.completion",
            "created": int(self._clock()),
            "model": step.workload,
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": settled.answer}, "finish_reason": "stop"}
            ],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        }
        reply = KeptReply(
            provider=row.id,
            model=step.workload,
            dialect=row.dialect,
            content_type="application/json",
            body=msgspec.json.encode(body),
            streamed=False,
            kept_at=self._clock(),
            cost_nanos=0,
        )
        fields = {"workload": step.workload, "strategy": "rules", "relaxed": False, "agent": step.record}
        if request.options.vitality is not None:
            fields["vitality"] = request.options.vitality
        return LocalAnswer(target, plain, reply, RouteRecord(fields=fields))


def _with(request: Request, step: AgentStep | None, degraded: tuple[Degradation, ...]) -> Request:
    options = msgspec.structs.replace(request.options, agent_step=step, tick=None)
    return msgspec.structs.replace(request, options=options, degraded=(*request.degraded, *degraded))


def _with_record(request: Request, tick: dict[str, Any]) -> Request:
    step = request.options.agent_step
    if step is None:
        return request
    step = msgspec.structs.replace(step, record={**step.record, "tick": tick})
    return msgspec.structs.replace(request, options=msgspec.structs.replace(request.options, agent_step=step))


def _fits(answer: str, request: Request) -> bool:
    """Whether an answer is what its caller asks for: anything, or what fits its schema."""
    wanted = request.output_format
    if wanted is None or wanted.schema is None:
        return True
    return checker(wanted.schema).accepts(msgspec.json.decode(answer))
