"""Let calls through that are within the limits of their keys, count their use while they run and when they end, and end those over budget.

All of it happens in one event loop; the state database is asked in threads, one question at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from bardo.accounting.limits import (
    MONEY,
    UNKNOWN,
    Allowance,
    Demand,
    KeyLimits,
    Reservation,
    Shortage,
    seconds_of_budget,
    session_account,
    session_of_id,
)
from bardo.adapters.config.accounts import Account, BudgetSettings
from bardo.adapters.stores.database.problems import DatabaseProblem
from bardo.adapters.stores.log.row import LogRow, RunningUsage
from bardo.services.accounts.call_facts import (
    CallFacts,
    charged_nanos,
    demand_of,
    overrun,
    refusal,
    tokens_of,
    unknown_nanos,
)
from bardo.services.accounts.leases import Estimate, Lease, LeaseStore
from bardo.values.errors import BardoError

_LEAST_BYTES, _MOST_BYTES = 512, 16_384
"""How many bytes of all replies of a key may come between two looks."""


class BudgetMeter:
    """The meter of one key. A model writes no more than one token a byte, of which a thousand cost `thousand_nanos`.

    `look` counts the bytes that came and returns the rest of the budget, in nano-dollars. `check` asks the store whether the budget is
    spent, and ends the calls where it is, or None if they go on. `alone`: no other process spends of the same budget.

    A budget that is spent ends the running calls of its key at once. The meter looks again after as many bytes as the rest of the budget
    may pay for, and holds the bytes that come while the store of limits is asked.
    """

    def __init__(
        self,
        look: Callable[[], int | None],
        check: Callable[[], Coroutine[Any, Any, None]] | None,
        alone: Callable[[], bool],
    ) -> None:
        self.thousand_nanos = 0
        self.fed: set[str] = set()
        """The requests of whose replies something came since the last look."""
        self._look = look
        self._check = check
        self._alone = alone
        self._bytes = 0
        self._known: int | None = None
        """What was left when the store was asked last."""
        self._checking: asyncio.Task[None] | None = None

    def allow(self, size: int) -> int:
        """Return how many of so many bytes may be read now. Where none may, `wait` says when."""
        if self._checking is not None:
            return 0
        if self._bytes <= 0 and not self._look_again():
            return 0
        allowed = size if self._check is None else min(size, self._bytes)
        self._bytes -= allowed
        return allowed

    def _look_again(self) -> bool:
        """Count what came, and return whether more may be read."""
        left = self._look()
        if left is None or self._check is None:
            self._bytes = _MOST_BYTES
            return True
        if self._known is None:
            self._known = left
        # What others spend is seen by asking, the more often the less is left.
        if left < 0 or (left * 2 <= self._known and not self._alone()):
            self._checking = asyncio.get_running_loop().create_task(self._check())
            self._checking.add_done_callback(self._end_check)
            return False
        # A frame has more bytes than what the model wrote.
        affordable = left * 1000 // self.thousand_nanos if self.thousand_nanos else _MOST_BYTES
        self._bytes = min(max(affordable, _LEAST_BYTES), _MOST_BYTES)
        return True

    async def wait(self) -> int:
        """Return once something may be read, or its call was ended; and how many bytes may be, also where the store cannot be asked."""
        if self._checking is not None:
            await asyncio.wait([self._checking])
        return _LEAST_BYTES

    def _end_check(self, _: asyncio.Task[None]) -> None:
        self._checking, self._known, self._bytes = None, None, 0


class StreamMeter:
    """The meter of the reply to one request, by those of its key and of its session."""

    def __init__(self, meters: Sequence[BudgetMeter], request_id: str) -> None:
        self._meters = meters
        self._request_id = request_id

    def allow(self, size: int) -> int:
        """Return how many of so many bytes may be read now. Where none may, `wait` says when."""
        for meter in self._meters:
            size = meter.allow(size) if size else 0
            meter.fed.add(self._request_id)  # Behind it: a look counts what was read before this piece.
        return size

    async def wait(self) -> int:
        """Return once something may be read, or the reply was cut; and how many bytes may be."""
        return min([await meter.wait() for meter in self._meters])


_WAITS = (0.03, 0.06)
"""Seconds after which a call at a time too many is tried again: another process may just be returning one."""
_REFUSED_SECONDS = 0.25
"""For how long a refusal is repeated without asking again."""
_AWAY_SECONDS = 1.0
"""For how long a state database that could not be used is not asked by calls."""
_COUNT_SECONDS = 0.05
"""How old the figures of running calls may be by which a new call is let through."""
_LEAST_GROWTH = 250
"""Tokens by which an answer grows before the log is told of it, between two syncs."""
_FEW_AT_A_TIME = 20
"""The unused part of a smaller limit is given back at once."""

T = TypeVar("T")

_log = logging.getLogger("bardo.keys")


class RowQueue(Protocol):
    """The log, as far as it says how many rows wait to be stored, and takes what calls have used that have not ended."""

    @property
    def waiting(self) -> int: ...

    def note_growth(self, request_id: str, used: RunningUsage) -> None:
        """Note what a running call counts as should this process end before it does."""


class RunningCall(Protocol):
    """A call whose reply is being read."""

    def so_far(self, prompt_tokens: int) -> RunningUsage:
        """Return about what it has used so far. `prompt_tokens` are those of its prompt where they were not counted."""

    def cut(self, error: BardoError) -> None:
        """End it with an error."""

    def count(self, meter: StreamMeter) -> None:
        """Ask `meter` of each piece of its reply before it is read."""


class Share(NamedTuple):
    """The part of one allowance that a call has taken: that of its key, or of its session."""

    account: str
    allowance: Allowance
    taken: Reservation


class Admission(NamedTuple):
    """A call that was let through, with what it took of its session, where the money of sessions is limited, and of its key."""

    account: Account
    facts: CallFacts
    shares: tuple[Share, ...]

    def has_part_of(self, account: str) -> bool:
        """Whether it took something of this allowance."""
        return any(share.account == account for share in self.shares)


class _RunningRecord:
    """A running call: what it has cost so far, and how many tokens of its answer the log was told of."""

    __slots__ = ("admission", "call", "nanos", "noted")

    def __init__(self, call: RunningCall, admission: Admission) -> None:
        self.call = call
        self.admission = admission
        self.nanos = 0
        self.noted = admission.facts.likely_output


class _Refusal(NamedTuple):
    """Why a call was refused, which is repeated until a time; `shortage` is None while the store is asked."""

    until: float
    demand: Demand
    shortage: Shortage | None


class _PendingSpend(NamedTuple):
    """Money that a call spent of one allowance, until the log has stored its row: `row` is the row's number among those of this process.

    What no row will tell, the money of a call of unknown cost, waits for the next `sync` instead.
    """

    row: int
    share: Share
    nanos: int


class Admissions:
    """The calls of this process that come with a limited key. `clock` gives Unix time."""

    def __init__(
        self,
        store: LeaseStore,
        log: RowQueue | None,
        *,
        budgets: BudgetSettings = BudgetSettings(),  # noqa: B008 - a frozen value
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self.log = log
        self._budgets = budgets
        self._clock = clock
        self._allowances: dict[str, Allowance] = {}
        self._admitted: dict[str, Admission] = {}
        self._running: dict[str, _RunningRecord] = {}
        self._meters: dict[str, BudgetMeter] = {}
        self._counted_at = 0.0
        self._grown: set[str] = set()
        """The keys with a running call that has cost more than was taken for it, since that was last looked at."""
        self._refusals: dict[str, _Refusal] = {}
        self._leasing: Counter[str] = Counter()
        """How many calls that wait for a lease take something of each allowance."""
        self._spent: deque[_PendingSpend] = deque()
        self._estimated: list[_PendingSpend] = []
        self._rows = 0
        self._alone = True
        self._away: tuple[float, DatabaseProblem] | None = None
        self._asking = asyncio.Lock()
        self._returning: set[asyncio.Task[None]] = set()

    async def admit(self, account: Account, facts: CallFacts) -> Admission:
        """Let a call through. Raises RateLimited and OverBudget, and DatabaseProblem where more must be leased and cannot be."""
        admission = self.admit_now(account, facts)
        if admission is not None:
            return admission
        needed, shares = self._limits_of(account, facts), list[Share]()
        self._leasing.update([own for own, _ in needed])
        try:
            for own, limits in needed:
                shares.append(await self._share(own, limits, demand_of(limits, facts)))
        except BaseException:
            self._return_shares(shares)
            raise
        finally:
            self._leasing.subtract([own for own, _ in needed])
            self._leasing += Counter()  # Those of which none waits any more are gone by that.
        return self._let_through(account, facts, shares)

    def admit_now(self, account: Account, facts: CallFacts) -> Admission | None:
        """Let a call through for which enough is leased, or None if more must be leased first."""
        if self._running and self._clock() - self._counted_at >= _COUNT_SECONDS:
            self._count_running(least=_LEAST_GROWTH)
        shares: list[Share] = []
        for own, limits in self._limits_of(account, facts):
            allowance = self._allowances.get(own)
            is_current = allowance is not None and allowance.limits == limits
            taken = allowance.take(demand_of(limits, facts), self._clock()) if allowance and is_current else None
            if allowance is None or taken is None:
                self._return_shares(shares)
                return None
            shares.append(Share(own, allowance, taken))
        return self._let_through(account, facts, shares)

    def _limits_of(self, account: Account, facts: CallFacts) -> tuple[tuple[str, KeyLimits], ...]:
        """Return the limits of a call: its session's first, which is given back whole if its key has too little left."""
        limits = account.limits
        if limits.usd_per_session is None:
            return ((account.id, limits),)
        session = session_account(account.id, facts.session, self._clock())
        return ((session.id, limits.of_session()), (account.id, limits.of_key()))

    def _let_through(self, account: Account, facts: CallFacts, shares: Sequence[Share]) -> Admission:
        admission = self._admitted[facts.request_id] = Admission(account, facts, tuple(shares))
        return admission

    def _return_shares(self, shares: Sequence[Share]) -> None:
        """Give back what was taken for a call that was not let through."""
        for share in shares:
            share.allowance.settle(share.taken, tokens=0, nanos=0, now=self._clock())

    def watch(self, request_id: str, call: RunningCall) -> None:
        """Count what a call takes while its reply is read; one that was not let through here is none of ours."""
        admission = self._admitted.get(request_id)
        if admission is None:
            return
        self._running[request_id] = _RunningRecord(call, admission)
        meters = []
        for share in admission.shares:
            if share.taken.money:
                meter = self._meter(share.account)
                meter.thousand_nanos = max(meter.thousand_nanos, admission.facts.thousand_nanos)
                meters.append(meter)
        if meters:
            call.count(StreamMeter(meters, request_id))

    def admitted(self, request_id: str) -> CallFacts | None:
        """Return the facts about a call that was let through and has not ended."""
        admission = self._admitted.get(request_id)
        return None if admission is None else admission.facts

    @property
    def rows_stored(self) -> int:
        """How many rows of calls of this process the log has stored."""
        return self._rows - (0 if self.log is None else self.log.waiting)

    def allowance(self, account: Account) -> Allowance | None:
        """Return what this process has leased for a key."""
        return self._allowances.get(account.id)

    def settle(self, row: LogRow) -> None:
        """Count what a call took, by its row in the log; calls that were not let through here are none of ours."""
        self._rows += 1
        self._running.pop(row.request_id, None)
        admission = self._admitted.pop(row.request_id, None)
        if admission is None:
            return
        tokens, budgets = tokens_of(row), self._budgets
        nanos = charged_nanos(row, budgets)
        counted = unknown_nanos(row, admission.account, admission.facts, budgets) if nanos is None else nanos
        if tokens is None and admission.facts.prompt_tokens is not None:
            tokens = min(admission.facts.tokens, admission.facts.prompt_tokens + budgets.assumed_output_tokens)
        for share in admission.shares:
            spent = share.allowance.settle(share.taken, tokens=tokens, nanos=counted, now=self._clock())
            if spent and nanos is None:
                self._estimated.append(_PendingSpend(self._rows, share, spent))
            elif spent and share.taken.money:
                self._spent.append(_PendingSpend(self._rows, share, spent))
        self._free(admission)

    def release(self, admission: Admission) -> None:
        """Release all that a call took which was not sent."""
        self._running.pop(admission.facts.request_id, None)
        if self._admitted.pop(admission.facts.request_id, None) is not None:
            self._return_shares(admission.shares)
            self._free(admission)

    async def sync(self) -> None:
        """Give unused leases back, and store the usage of calls: to its end, also if its caller is cancelled."""
        await asyncio.shield(asyncio.get_running_loop().create_task(self._sync()))

    async def _sync(self) -> None:
        async with self._asking:
            now = self._clock()
            self._count_running()
            # An estimate and the leases without it are stored at once: no process sees it twice, or not at all.
            estimated, self._estimated = self._estimated, []
            for estimate in estimated:
                estimate.share.allowance.forget(estimate.share.taken, estimate.nanos)
            rows = self._changes(now)
            estimates = [Estimate(call.share.account, call.share.taken.day_number, call.nanos) for call in estimated]
            try:
                self._alone = await self._ask(lambda: self._store.sync(rows, estimates, now)) <= 1
            except BaseException:
                for estimate in estimated:
                    estimate.share.allowance.forget(estimate.share.taken, -estimate.nanos)
                self._estimated = [*estimated, *self._estimated]
                raise
            self._note_stored(rows)
            self._forget_idle_sessions()
            grown, self._grown = self._grown, set()
            if self._budgets.overrun == "cut":
                for account in grown:
                    await self._cut_overrun(account)

    def _forget_idle_sessions(self) -> None:
        """Keep nothing of sessions of which no call runs and nothing waits: clients name as many as they like."""
        needed = {share.account for entry in self._admitted.values() for share in entry.shares} | self._leasing.keys()
        for own, allowance in list(self._allowances.items()):
            if allowance.is_idle and own not in needed and session_of_id(own) is not None:
                del self._allowances[own]
                self._meters.pop(own, None)
                self._refusals.pop(own, None)

    async def clean(self) -> None:
        """Remove what counts no longer."""
        async with self._asking:
            now = self._clock()
            await self._ask(lambda: self._store.clean(now))

    async def leave(self) -> None:
        """Store what calls have taken, and return all that is leased: this process ends."""
        await self.sync()
        async with self._asking:
            await self._ask(self._store.leave)

    def _meter(self, account_id: str) -> BudgetMeter:
        meter = self._meters.get(account_id)
        if meter is None:
            check = partial(self._check_overrun, account_id) if self._budgets.overrun == "cut" else None
            meter = self._meters[account_id] = BudgetMeter(partial(self._look, account_id), check, lambda: self._alone)
        return meter

    def _count_running(self, *, least: int = 1) -> None:
        """Take what running calls have used beyond what was taken for them: new calls are refused for it at once."""
        now = self._counted_at = self._clock()
        for request_id, watched in self._running.items():
            self._count(request_id, watched, now, least)

    def _count(self, request_id: str, watched: _RunningRecord, now: float, least: int) -> None:
        """Take what one call has used, and tell the log where its answer is longer than it knows by `least` tokens."""
        account, facts, shares = watched.admission
        used = watched.call.so_far(facts.prompt_tokens or 0)
        if used.nanos is None and not facts.free and self._budgets.rule(account.unknown_cost) == "estimate":
            used = used._replace(nanos=self._budgets.assumed_nanos(used.input_tokens, used.output_tokens))
        watched.nanos = self._budgets.charged(used.nanos or 0)
        tokens = used.input_tokens + used.output_tokens
        for share in shares:
            if share.allowance.grow(share.taken, tokens=tokens, nanos=watched.nanos, now=now):
                self._grown.add(share.account)
        if self.log is not None and facts.prompt_tokens is not None and used.output_tokens >= watched.noted + least:
            watched.noted = used.output_tokens
            self.log.note_growth(request_id, used)

    def _look(self, account_id: str) -> int | None:
        """Count the calls of a key or session of which something came, and return the rest of its budget besides their cost."""
        fed, now = self._meters[account_id].fed, self._clock()
        for request_id in fed:
            watched = self._running.get(request_id)
            if watched is not None:
                self._count(request_id, watched, now, _LEAST_GROWTH)
        fed.clear()
        spare = self._allowances[account_id].spare_nanos()
        return None if spare is None else spare + self._unused(account_id)

    def _unused(self, account_id: str) -> int:
        """Return what was taken for running calls of a key that they have not used so far."""
        return sum(
            max(0, share.taken.nanos - call.nanos)
            for call in self._running.values()
            for share in call.admission.shares
            if share.account == account_id
        )

    async def _check_overrun(self, account_id: str) -> None:
        """End the running calls of a key where its budget is spent."""
        if self._away is not None and self._clock() < self._away[0]:
            return
        try:
            async with self._asking:
                await self._cut_overrun(account_id)
        except DatabaseProblem as problem:
            _log.warning("whether the budget of %s is spent cannot be found out now: %s", account_id, problem)

    async def _cut_overrun(self, account_id: str) -> None:
        """End the running calls of a key whose budget is spent."""
        calls = [call for call in self._running.values() if call.admission.has_part_of(account_id)]
        for _ in range(2):
            # A cost that moved from here to the log just now was counted in both: looked at again, it is counted once.
            if not calls:
                return
            now, allowance = self._clock(), self._allowances[account_id]
            self._forget_stored()
            rows, before = self._rows_of(account_id, now), allowance.used_nanos()
            await self._ask(partial(self._store.sync, rows, (), now))
            self._note_stored(rows)
            used = await self._ask(partial(self._store.used, account_id, now))
            unused = self._unused(account_id)
            limits = allowance.limits.named()
            budgets = [(name, limit) for name, limit in limits if name in MONEY and limit is not None]
            allowance.correct({name: limit - used.total(name, now) for name, limit in budgets}, before)
            spent = [(name, limit) for name, limit in budgets if used.total(name, now) - unused > limit]
            if not spent:
                return
        name, limit = spent[0]
        for call in calls:
            call.call.cut(overrun(name, limit, seconds_of_budget(name, now), account_id))

    def _changes(self, now: float) -> list[Lease]:
        self._forget_stored()
        return [row for own in self._allowances for row in self._rows_of(own, now)]

    def _forget_stored(self) -> None:
        """Count money no longer as spent here that the log has stored: its sums hold it."""
        while self._spent and self._spent[0].row <= self.rows_stored:
            spent = self._spent.popleft()
            spent.share.allowance.forget(spent.share.taken, spent.nanos)

    async def _share(self, account: str, limits: KeyLimits, demand: Demand) -> Share:
        """Take what a call needs of one allowance. Raises RateLimited and OverBudget."""
        allowance = self._allowance(account, limits)
        taken = allowance.take(demand, self._clock()) or await self._lease(account, allowance, demand)
        return Share(account, allowance, taken)

    async def _lease(self, account: str, allowance: Allowance, demand: Demand) -> Reservation:
        """Take what a call needs from a new lease. Raises RateLimited and OverBudget."""
        waits = iter(() if self._alone else _WAITS)
        while True:
            outcome = self._refused(account, demand) or await self._claim(account, allowance, demand)
            if isinstance(outcome, Reservation):
                return outcome
            if outcome is None:
                continue  # Another call cost more than estimated in between.
            wait = next(waits, None) if outcome.name == "concurrency" else None
            if wait is None:
                raise refusal(outcome, account)
            await asyncio.sleep(wait)

    def _refused(self, account: str, demand: Demand) -> Shortage | None:
        """Return why a call that needs no less was refused a moment ago."""
        denial = self._refusals.get(account)
        if denial is None or self._clock() >= denial.until or not _needs_no_less(demand, denial.demand):
            return None
        return denial.shortage

    async def _claim(self, account: str, allowance: Allowance, demand: Demand) -> Reservation | Shortage | None:
        self._check_away()
        async with self._asking:
            # While this call waited for its turn, another one may have waited in vain.
            self._check_away()
            now = self._clock()
            # Another call may have leased for this one too, while it waited for its turn.
            taken = allowance.take(demand, now)
            if taken is not None:
                return taken
            wants = allowance.renew(demand, now)
            rows = self._rows_of(account, now)
            for want in wants:
                allowance.gauges[want.name, want.period].stored = UNKNOWN
            asking = self._refusals[account] = _Refusal(now, demand, None)
            outcome = await self._ask(lambda: self._store.claim(account, rows, wants, now))
            self._note_stored(rows)
            if isinstance(outcome, Shortage):
                # Unless a call has ended, or other limits hold, since the store was asked.
                if outcome.name != "concurrency" and self._refusals.get(account) is asking:
                    self._refusals[account] = _Refusal(now + min(_REFUSED_SECONDS, outcome.seconds), demand, outcome)
                return outcome
            allowance.lease(outcome.leased, outcome.left, now)
            for want in wants:
                gauge = allowance.gauges[want.name, want.period]
                gauge.stored = want.used + outcome.leased[want.name, want.period]
            return allowance.take(demand, now)

    def _check_away(self) -> None:
        """Raise DatabaseProblem where the state database could not be used a moment ago: calls do not wait for it one after the other."""
        if self._away is not None and self._clock() < self._away[0]:
            raise self._away[1]

    async def _ask(self, question: Callable[[], T]) -> T:
        """Ask the state database in a thread. No other call asks before the answer is there, even if this call is cancelled."""
        asking = asyncio.ensure_future(asyncio.to_thread(question))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            while not asking.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([asking])
            raise
        except DatabaseProblem as problem:
            self._away = (self._clock() + _AWAY_SECONDS, problem)
            raise

    def _allowance(self, account: str, limits: KeyLimits) -> Allowance:
        allowance = self._allowances.setdefault(account, Allowance(limits))
        if allowance.limits != limits:
            allowance.change(limits)
            self._refusals.pop(account, None)
        return allowance

    def _rows_of(self, account: str, now: float) -> list[Lease]:
        """Give all unused leases of an account back, and return the rows of usage that the state database does not hold.

        Until it is noted as stored, it is unknown whether it is: who stores it may be cancelled, or the database fail behind it.
        """
        allowance = self._allowances[account]
        allowance.shrink(now)
        rows = []
        for period, gauge in allowance.gauges.items():
            used = max(0, gauge.used)
            if gauge.stored != used:
                gauge.stored = UNKNOWN
                rows.append(Lease(account, period, used))
        return rows

    def _note_stored(self, rows: Sequence[Lease]) -> None:
        for account, period, amount in rows:
            gauge = self._allowances[account].gauges.get(period)
            if gauge is not None:
                gauge.stored = amount

    def _free(self, admission: Admission) -> None:
        for share in admission.shares:
            self._refusals.pop(share.account, None)
        limit = admission.account.limits.concurrency
        if limit is None or limit >= _FEW_AT_A_TIME or self._alone:
            return
        task = asyncio.get_running_loop().create_task(self._return(admission.account.id))
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)

    async def _return(self, account: str) -> None:
        """Let other processes have at once what of a small limit is free again."""
        try:
            async with self._asking:
                now = self._clock()
                rows = self._rows_of(account, now)
                await self._ask(lambda: self._store.sync(rows, (), now))
                self._note_stored(rows)
        except DatabaseProblem as problem:
            _log.warning("what is free of the limits of %s cannot be returned: %s", account, problem)


def _needs_no_less(demand: Demand, other: Demand) -> bool:
    return (
        demand.requests >= other.requests
        and demand.tokens >= other.tokens
        and (other.nanos is None or (demand.nanos is not None and demand.nanos >= other.nanos))
    )
