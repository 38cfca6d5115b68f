"""The attempts of one call as they are made and end: what the log, the receipt and the cost of the call are made from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.accounting.cost import NO_COST, AttemptCost, call_cost
from bardo.planning.route import Target
from bardo.services.facts.price_book import PriceBook
from bardo.values.attempts import AttemptCause, AttemptRecord
from bardo.values.cost import UNKNOWN_COST, CallCost, usd
from bardo.values.errors import BardoError, CallerError, OperatorError, OverBudget, ProviderError, UpstreamRefused
from bardo.values.usage import Usage

if TYPE_CHECKING:
    from bardo.services.payments.payer import CallPayments

_AT_WORK = frozenset({408, 499, 502, 504, 520, 522, 524})
"""Statuses by which a proxy tells that it stopped waiting: the server behind it may have done the work, and billed it."""
_FILTERED = "content_filter"
"""Azure bills a prompt that its filter refused (learn.microsoft.com, "Content filtering", read 2026-11)."""


class SentAttempt(msgspec.Struct, eq=False):
    """One attempt, from before it is sent.

    `whole`: its reply came to its end. `lost`: another attempt of the same call was quicker. `paid_nanos` is
    what was paid for it from the wallet.
    """

    target: Target
    cause: AttemptCause
    why: str
    key: str
    started: float
    seconds: float | None = None
    error: BardoError | None = None
    usage: Usage | None = None
    may_have_cost: bool = True
    paid_nanos: int = 0
    whole: bool = False
    lost: bool = False
    open: bool = True
    cost: CallCost = UNKNOWN_COST


class CallAttempts:
    """The attempts of one call, which begins when this is made. `watch` counts seconds, `now` is the Unix time whose prices it pays."""

    payments: CallPayments | None = None
    count = 0
    """How many were sent, with those that the transport repeated, because their connection had been closed before they went out."""

    def __init__(self, watch: Callable[[], float], prices: PriceBook, now: float) -> None:
        self._watch = watch
        self._began = watch()
        self._prices = prices
        self._now = now
        self._sent: list[SentAttempt] = []

    def age(self) -> float:
        """Return the seconds since the call began."""
        return self._watch() - self._began

    @property
    def last_target(self) -> Target | None:
        """Where the last attempt went; None where there is none yet."""
        return self._sent[-1].target if self._sent else None

    def send(self, target: Target, *, cause: AttemptCause, why: str = "", key: str = "") -> SentAttempt:
        """Note an attempt that is about to be sent: it may cost money from then on."""
        attempt = SentAttempt(target, cause, why, key, self._watch() - self._began)
        self._sent.append(attempt)
        self.count += 1
        return attempt

    def end(
        self,
        attempt: SentAttempt | None = None,
        *,
        error: BardoError | None = None,
        usage: Usage | None = None,
        may_have_cost: bool | None = None,
        whole: bool = True,
        lost: bool = False,
    ) -> None:
        """Note how an attempt ended: by default the latest that is open. One that has ended stays as it is.

        `may_have_cost` is told by the error where it is not given. `whole`: the reply came to its end; of any other `usage` tells what
        passed. `lost`: another attempt was quicker.
        """
        one = attempt or self._latest_open()
        if one is None or not one.open:
            return
        one.open = False
        one.lost = lost
        one.whole = whole and error is None and not lost
        one.seconds = self._watch() - self._began - one.started
        one.error = error
        one.usage = usage
        one.may_have_cost = may_have_cost_of(error) if may_have_cost is None else may_have_cost
        if self.payments is not None:
            one.paid_nanos = self.payments.take_nanos()
        one.cost = self._cost_of(one)

    def _latest_open(self) -> SentAttempt | None:
        for one in reversed(self._sent):
            if one.open:
                return one
        return None

    def _cost_of(self, one: SentAttempt) -> CallCost:
        usage = one.usage
        if one.paid_nanos:
            # What was paid is the bill, whatever the provider counts besides.
            usage = msgspec.structs.replace(usage or _NO_USAGE, cost_usd=usd(one.paid_nanos))
        if usage is None or not (usage.reported or usage.cost_usd is not None):
            return UNKNOWN_COST if one.may_have_cost else NO_COST
        target = one.target
        cost = self._prices.cost(target.provider, target.model, usage, self._now)
        return msgspec.structs.replace(cost, approx=True) if usage.approx else cost

    @property
    def has_open(self) -> bool:
        """Whether an attempt has not ended."""
        return self._latest_open() is not None

    def ended_nanos(self) -> int:
        """Return what the attempts that have ended cost, as far as that is known."""
        return sum(one.cost.nanos or 0 for one in self._sent if not one.open)

    def cost(self) -> CallCost:
        """Return what the call cost by the attempts that have ended; unknown while one is open."""
        if len(self._sent) == 1:
            return self._sent[0].cost
        return call_cost([_attempt_cost(one) for one in self._sent]) if self._sent else NO_COST

    def logged_records(self) -> tuple[AttemptRecord, ...]:
        """Return the attempts for the log, which tells of a single one only where it says which server it went to."""
        if len(self._sent) == 1 and not self._sent[0].target.provider.address:
            return ()
        return self.records()

    def records(self) -> tuple[AttemptRecord, ...]:
        """Return the attempts in the order in which they were sent."""
        return tuple([_record(one) for one in self._sent])


def may_have_cost_of(error: BardoError | None) -> bool:
    """Return whether an attempt that ended like this may be billed: not where it was refused, or never reached the provider."""
    if error is None:
        return True
    if isinstance(error, UpstreamRefused):
        return error.status in _AT_WORK or error.upstream_code == _FILTERED
    if isinstance(error, ProviderError):
        return error.reached
    if isinstance(error, OverBudget):
        return True  # It had been sent, and was cut.
    return not isinstance(error, CallerError | OperatorError)


def cost_fields(cost: CallCost) -> dict[str, Any]:
    """Return the fields of a log row that tell what the call cost."""
    return {
        "cost_usd": None if cost.nanos is None else usd(cost.nanos),
        "cost_nanos": cost.nanos,
        "cost_parts": cost.parts or None,
        "reported_cost_nanos": cost.reported_nanos,
        "computed_cost_nanos": cost.computed_nanos,
        "cache_saved_nanos": cost.saved_nanos,
        "price_source": cost.source or None,
    }


def _attempt_cost(one: SentAttempt) -> AttemptCost:
    return AttemptCost(one.cause, one.cost, one.error is None and not one.lost)


def _record(one: SentAttempt) -> AttemptRecord:
    usage, error = one.usage or _NO_USAGE, one.error
    return AttemptRecord(
        cause=one.cause,
        provider=one.target.provider.id,
        model=one.target.model,
        why=one.why,
        address=one.target.provider.address,
        key=one.key,
        started=round(one.started, 6),
        seconds=None if one.seconds is None else round(one.seconds, 6),
        status=error.status if error is not None else 200 if one.whole else None,
        error="" if error is None else type(error).__name__,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        nanos=one.cost.nanos,
        tokens_approx=usage.approx,
    )


_NO_USAGE = Usage()
