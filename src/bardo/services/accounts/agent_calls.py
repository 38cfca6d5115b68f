"""The calls of an agent (`[golem]`): the tier of a tick, the step of its session, and whether the day's budget pays for the call.

A tick that needs no model is answered here. A DIEM figure that the agent does not give is read from the balances that providers tell.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sqlite3
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from bardo.accounting.limits import next_day
from bardo.adapters.config.routing import GolemSettings
from bardo.adapters.stores.log.rollup import SECONDS_PER_DAY
from bardo.adapters.stores.log.row import LogRow
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
from bardo.golem.running import (
    Means,
    Settled,
    Spent,
    budget_of,
    is_heartbeat,
    kind_of_tick,
    schedule_steps,
    settle,
    tools_of_tick,
    verifier_of,
)
from bardo.planning.route import Provider, RouteRecord, Target
from bardo.planning.workloads import not_of_agent
from bardo.routing.workloads import Workload
from bardo.services.facts.balances import Balances
from bardo.services.facts.directory import ProviderDirectory
from bardo.structured import checker
from bardo.values.agent import AgentStep
from bardo.values.degradation import Degradation
from bardo.values.errors import OperatorError
from bardo.values.request import Intent, Request, SearchLimit, with_search_limit
from bardo.values.usage import usd

if TYPE_CHECKING:
    from bardo.adapters.config.accounts import Account
    from bardo.adapters.stores.log.reader import LogReader

_SECONDS = 1.0
_MOST_UNREAD = 100_000


class SpendKey(NamedTuple):
    """Whose money it is, for what, and where it went."""

    key_id: str
    subsystem: str
    provider: str


class DaySpending:
    """The nano-dollars of today. `path` is the log's place, or None if there is none; `clock` gives Unix time.

    They are sums by key, subsystem and provider. A day is one of UTC. The log is read at most once a second, and has the calls of other
    workers and of earlier processes; until it has a call of this process, that call counts by itself. `waiting` returns how many of the
    latest rows the log does not have yet.
    """

    def __init__(
        self, path: Path | str | None, clock: Callable[[], float] = time.time, waiting: Callable[[], int] = lambda: 0
    ) -> None:
        self._path = path
        self._clock = clock
        self._waiting = waiting
        self._day = -1
        self._rows = 0
        self._own: Counter[SpendKey] = Counter()
        # Where the log cannot be read for so long, entries forgotten here are counted twice later rather than not at all.
        self._unread: deque[tuple[int, SpendKey, int]] = deque(maxlen=_MOST_UNREAD)
        self._logged: Mapping[SpendKey, int] = {}
        self._read_at = -_SECONDS
        self._reader: LogReader | None = None
        self._lock = threading.Lock()
        self._reading: asyncio.Lock | None = None

    def note(self, row: LogRow) -> None:
        """Count a call that has ended, before the log is given its row."""
        self._begin_day()
        self._rows += 1
        # The known part of a cost counts as spent, even if the whole is unknown.
        nanos = row.cost_nanos if row.cost_nanos is not None else sum((row.cost_parts or {}).values())
        if row.subsystem and nanos and int(row.started_at // SECONDS_PER_DAY) == self._day:
            key = SpendKey(row.key_id or "", row.subsystem, row.provider)
            self._own[key] += nanos
            self._unread.append((self._rows, key, nanos))

    async def of_key(self, key_id: str) -> dict[SpendKey, int]:
        """Return what was spent today with a key; an empty id is that of calls without one."""
        self._begin_day()
        if self._path is not None:
            self._reading = self._reading or asyncio.Lock()
            async with self._reading:
                if self._clock() - self._read_at >= _SECONDS:
                    await self._read()
        return {
            key: self._logged.get(key, 0) + self._own[key]
            for key in {**self._logged, **self._own}
            if key.key_id == key_id
        }

    def close(self) -> None:
        """Close the log."""
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def _begin_day(self) -> None:
        day = int(self._clock() // SECONDS_PER_DAY)
        if day != self._day:
            self._day, self._logged, self._read_at = day, {}, -_SECONDS
            self._own.clear()
            self._unread.clear()

    async def _read(self) -> None:
        day, self._read_at = self._day, self._clock()
        # What the log has before it is read is in its sums.
        stored = self._rows - self._waiting()
        try:
            sums = await asyncio.to_thread(self._sums, day)
        except OperatorError as problem:
            _log.warning("what the agent spent today cannot be read: %s", problem.message)
            return
        if day != self._day:
            return
        self._logged = sums
        while self._unread and self._unread[0][0] <= stored:
            _, key, nanos = self._unread.popleft()
            self._own[key] -= nanos

    def _sums(self, day: int) -> dict[SpendKey, int]:
        from bardo.adapters.stores.log.reader import LogReader

        assert self._path is not None
        with self._lock:
            if self._reader is None:
                self._reader = LogReader(self._path)
            groups = self._reader.costs(("key", "subsystem", "provider"), since=float(day * SECONDS_PER_DAY))
        return {
            SpendKey(*(str(group.of[name]) for name in ("key", "subsystem", "provider"))): group.sums.cost_nanos
            + group.sums.partial_nanos
            for group in groups
            if group.of["subsystem"]
        }


IDLE_SECONDS = 3600
"""After which a session begins anew."""
_MOST_SESSIONS = 20_000
_FILE_SECONDS = 5.0
_log = logging.getLogger("bardo.agent")


class SessionSteps:
    """The counts of sessions. `path` is the file that holds them, None for memory; `clock` gives Unix time.

    A temperature that changes within a session follows from them. They are counted in memory, or in a file that the workers of a gateway
    share.
    """

    def __init__(self, path: Path | None, clock: Callable[[], float]) -> None:
        self._path = path
        self._clock = clock
        self._counts: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._lock = threading.Lock()

    async def next(self, *parts: str) -> int:
        """Return how many calls a session had before this one, and count this one. `parts` say which session it is."""
        # Clients choose names, which may be long.
        key = hashlib.blake2b("\0".join(parts).encode(errors="replace"), digest_size=16).hexdigest()
        if self._path is None:
            return self._in_memory(key)
        try:
            return await asyncio.to_thread(self._in_file, self._path, key)
        except (sqlite3.Error, OSError) as problem:
            # A temperature is no reason for a call to fail: this worker counts alone until the file can be used.
            _log.warning("the calls of an agent's session are counted in this worker alone: %s", problem)
            return self._in_memory(key)

    def _in_memory(self, key: str) -> int:
        now = self._clock()
        count, at = self._counts.pop(key, (0, now))
        count = count if now - at < IDLE_SECONDS else 0
        self._counts[key] = (count + 1, now)
        while len(self._counts) > _MOST_SESSIONS:
            self._counts.popitem(last=False)
        return count

    def _in_file(self, path: Path, key: str) -> int:
        now = self._clock()
        opened = sqlite3.connect(path, timeout=_FILE_SECONDS, isolation_level=None)
        with self._lock, closing(opened) as database, database:
            # Two that have read the file and then want to write it would each wait for the other: SQLite has one of them fail at once.
            database.execute("BEGIN IMMEDIATE")
            database.execute("CREATE TABLE IF NOT EXISTS step (session TEXT PRIMARY KEY, count INTEGER, at REAL)")
            database.execute("DELETE FROM step WHERE at <= ?", (now - IDLE_SECONDS,))
            counted = "INSERT INTO step VALUES (?, 1, ?) ON CONFLICT (session) DO UPDATE SET count = count + 1, at = excluded.at"
            row = database.execute(f"{counted} RETURNING count", (key, now)).fetchone()
        return int(row[0]) - 1


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
        meaning = self._directory.meaning_of(request.model)
        workload = self._directory.workloads.of_call(options.intent, meaning.model)
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
        provider = next((provider.id for provider in self._directory.providers if provider.row.id == judge[0]), None)
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
        names_left = set(tools_of_tick(kind, names, stay=called_in(request) | named, own=self.settings.tools))
        dropped = [tool for tool in tools if tool.name not in names_left]
        if dropped and not may_be_chosen(request):
            why = f"the caller chooses among some of its tools itself, so that they are not those of the tick ({kind})"
            lost = Degradation("tick", asked=kind, why=why)
            return msgspec.structs.replace(request, degraded=(*request.degraded, lost))
        free = {id(tool) for tool in tools}
        untouched = [tool for tool in request.tools if id(tool) not in free]
        of_kind = sorted((tool for tool in tools if tool.name in names_left), key=lambda tool: tool.name)
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
        by_diem = {payer.id for payer in self._directory.providers if payer.row.id in route_rows().paid_by_diem}
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
        row = self._directory.workloads.get(workload)
        return workload if row is None or row.pressure is None else row.pressure.profile

    def _diem_left(self, providers: set[str]) -> float | None:
        now = self._clock()
        amounts = [
            amount for name in sorted(providers) if (amount := self._balances.amount(name, "diem", now)) is not None
        ]
        return sum(amounts) if amounts else None

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
