"""The usage of a key's limits by a call: before it is sent, by its facts, and when it has ended, by its row in the log."""

from __future__ import annotations

import msgspec

from bardo.accounting.limits import Demand, KeyLimits, LimitName, Shortage, session_of_id
from bardo.adapters.config.accounts import NANOS, Account, BudgetSettings
from bardo.adapters.stores.log.row import LogRow
from bardo.values.errors import OverBudget, RateLimited


class CallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a call before it is sent.

    `nanos` is what its key may be charged for it, or None if it is unknown; `free`: it can cost nothing. `prompt_tokens` are those of the
    request alone, and `likely_output` those that its answer is taken to have where nothing came of it. `likely_nanos` is what the call
    counts as then, if its cost is unknown.

    `thousand_nanos` is what a thousand tokens of its answer may cost, 0 where it is unknown.

    `session` is the conversation that the call belongs to, as its client names it, and `session_nanos` what that may be charged, where it
    is not `nanos`.

    `requests` and `slots` are 0 for a further call of one request, and for one that another call of the request waits for.
    """

    request_id: str
    tokens: int = 0
    nanos: int | None = None
    prompt_tokens: int | None = None
    likely_output: int = 0
    likely_nanos: int | None = None
    thousand_nanos: int = 0
    free: bool = False
    requests: int = 1
    slots: int = 1
    session: str = ""
    session_nanos: int | None = None


_NEXT_SESSION = (
    "begin a new session, ask for a shorter answer, or ask whoever runs bardo for more; calls that name no session "
    "(X-Bardo-Session) count together, day by day (UTC)"
)


def refusal(shortage: Shortage, account: str) -> RateLimited | OverBudget:
    """Return the error for a call that a limit of an account has too little left for."""
    name, limit, left, seconds = shortage
    if name == "usd_per_session":
        message = f"the session's budget of {limit / NANOS:g} US dollars has {left / NANOS:g} left, and the call may cost more"
        return OverBudget(message, hint=_NEXT_SESSION, limit=name, retry_after=_unless_named(account, seconds))
    if name in ("usd_per_day", "usd_per_month"):
        span = "today" if name == "usd_per_day" else "this month"
        message = f"the key's budget of {limit / NANOS:g} US dollars for {span} has {left / NANOS:g} left, and the call may cost more"
        hint = "ask for a shorter answer, wait until the budget begins anew (UTC), or ask whoever runs bardo for more"
        return OverBudget(message, hint=hint, limit=name, retry_after=seconds)
    words = {
        "requests_per_minute": f"{limit} requests per minute",
        "tokens_per_minute": f"{limit} tokens per minute",
        "concurrency": f"{limit} calls at a time",
    }
    message = f"the key may make no more than {words[name]} ({name})"
    return RateLimited(message, hint=f"try again in {max(1, round(seconds))} s", limit=name, retry_after=seconds)


def overrun(name: LimitName, limit: int, seconds: float, account: str) -> OverBudget:
    """Return the error that ends an answer because the budget of its account is spent: a key, or a session of one."""
    if name == "usd_per_session":
        message = f"the session's budget of {limit / NANOS:g} US dollars is spent, and the answer was ended"
        return OverBudget(message, hint=_NEXT_SESSION, limit=name, retry_after=_unless_named(account, seconds))
    span = "today" if name == "usd_per_day" else "this month"
    message = f"the key's budget of {limit / NANOS:g} US dollars for {span} is spent, and the answer was ended"
    hint = "wait until the budget begins anew (UTC), or ask whoever runs bardo for more"
    return OverBudget(message, hint=hint, limit=name, retry_after=seconds)


def _unless_named(account: str, seconds: float) -> float | None:
    """Return after how many seconds the budget of a session begins anew: never where it has a name."""
    session = session_of_id(account)
    return None if session is not None and session.name else seconds


def demand_of(limits: KeyLimits, facts: CallFacts) -> Demand:
    """Return what a call takes of limits. One that may give more tokens than a minute has needs the whole minute."""
    tokens = facts.tokens
    if limits.tokens_per_minute is not None:
        tokens = min(tokens, limits.tokens_per_minute)
    if facts.free:
        return Demand(facts.requests, tokens, None, facts.slots)
    nanos = facts.nanos
    if limits.usd_per_session is not None and facts.session_nanos is not None:
        nanos = facts.session_nanos
    # A call of unknown cost needs at least something to be left.
    return Demand(facts.requests, tokens, 1 if nanos is None else nanos or None, facts.slots)


def tokens_of(row: LogRow) -> int | None:
    """Return the tokens of a call, with those of attempts that failed on the way, or None if they were not counted."""
    tried = sum((record.input_tokens or 0) + (record.output_tokens or 0) for record in row.attempt_records)
    if not tried and row.input_tokens is None and row.output_tokens is None:
        return 0 if _took_nothing(row) else None
    return max(tried, (row.input_tokens or 0) + (row.output_tokens or 0))


def charged_nanos(row: LogRow, budgets: BudgetSettings) -> int | None:
    """Return what the key of a call is charged for it, or None if its cost is unknown."""
    if row.cost_nanos is None:
        return 0 if _took_nothing(row) else None
    return budgets.charged(row.cost_nanos)


def unknown_nanos(row: LogRow, account: Account, facts: CallFacts, budgets: BudgetSettings) -> int | None:
    """Return what a call counts as whose cost is unknown, or None if only its estimate before it was sent is there."""
    counted = row.output_tokens is not None and row.input_tokens is not None
    if not counted:
        return facts.likely_nanos
    rule = budgets.rule(account.unknown_cost)
    if rule == "estimate":
        return budgets.charged(budgets.assumed_nanos(row.input_tokens or 0, row.output_tokens or 0))
    return 0 if rule == "allow" else None


def _took_nothing(row: LogRow) -> bool:
    """Whether a call that ended without counts was not sent, or refused: providers ask nothing for that."""
    return row.attempts == 0 or (row.outcome == "error" and row.output_tokens is None and row.cost_nanos == 0)
