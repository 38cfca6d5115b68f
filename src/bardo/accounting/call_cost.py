"""What a call with several attempts cost: one attempt is what the client was answered by, each other one is a part by its cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from bardo.values.attempts import AttemptCause
from bardo.values.cost import UNKNOWN_COST, CallCost, Cause, add_costs

NO_COST = CallCost(nanos=0)
"""What is known to have cost nothing: it was refused before any work, or never sent."""


_GOES_ON = frozenset({"search", "tools"})
"""Causes of attempts by which the model goes on with its answer."""
_WITHIN_ANSWER = _GOES_ON | {"repair"}


class AttemptCost(NamedTuple):
    """What one attempt cost, and why it was made. `answered`: its reply is not known to have failed, or to have come too late."""

    cause: AttemptCause
    cost: CallCost
    answered: bool = True


def call_cost(attempts: Sequence[AttemptCost]) -> CallCost:
    """Return what the attempts of one call cost together, by cause; the parts add up to the total where it is known.

    The answering attempt keeps its own parts: the last that answered, else the last of all, and so do those that go on after a search,
    of the web or for tools. One that repairs a typed answer is not it.
    The cost of an attempt that failed goes under what it led to: `retry`, `failover` or `hedge`.
    """
    if len(attempts) == 1:
        return attempts[0].cost
    answering = _answering(attempts)
    costs = [
        one.cost if place == answering or one.cause in _GOES_ON else as_part(one.cost, _cause(attempts, place))
        for place, one in enumerate(attempts)
    ]
    paid = [cost for cost in costs if cost is not NO_COST]
    return add_costs(paid) if paid else NO_COST


def with_escalations(cost: CallCost, earlier: Sequence[int | None]) -> CallCost:
    """Return what a request cost whose earlier calls, each with nano-dollars, had answers that were not good enough."""
    known = sum(nanos for nanos in earlier if nanos is not None)
    parts = cost.parts | ({"escalation": known} if known else UNKNOWN_COST.parts)
    nanos = None if cost.nanos is None or None in earlier else cost.nanos + known
    # What providers reported, and what the price rows say, is told of the answering call alone.
    return msgspec.structs.replace(cost, nanos=nanos, parts=parts)


def as_part(cost: CallCost, cause: Cause) -> CallCost:
    """Return a cost as one part by what led to it, as far as it is known."""
    nanos = sum(cost.parts.values()) if cost.nanos is None else cost.nanos
    return cost if cost is NO_COST else msgspec.structs.replace(cost, parts={cause: nanos} if nanos else {})


def _answering(attempts: Sequence[AttemptCost]) -> int:
    own = [place for place, one in enumerate(attempts) if one.cause not in _WITHIN_ANSWER]
    answered = [place for place in own if attempts[place].answered]
    return (answered or own or [0])[-1]


def _cause(attempts: Sequence[AttemptCost], place: int) -> Cause:
    """Return what the cost of an attempt that did not answer is for."""
    own = attempts[place].cause
    if own == "repair" or own == "hedge":
        return own
    for later in attempts[place + 1 :]:
        if later.cause == "retry" or later.cause == "failover" or later.cause == "hedge":
            return later.cause
    return "failover" if own == "failover" else "retry"
