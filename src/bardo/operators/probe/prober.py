"""Runs a probe within its limits: request by request, noted after each, so that it can be stopped at any time and go on later."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from bardo.adapters.net.problems import origin
from bardo.catalog.forms import WireForm
from bardo.operators.probe.audit import Audit, Plan
from bardo.operators.probe.cells import in_turn, output_limit, plan_cells
from bardo.operators.probe.overlay import overlay_row
from bardo.operators.probe.samples import Trial
from bardo.operators.probe.sending import Sender, request_of
from bardo.operators.probe.verdicts import decide
from bardo.planning.route import Target
from bardo.reasoning.control.target import ResolvedFacts

REPEATS = 5
_MOST_REFUSALS = 2
"""Of one cell: a refusal does not depend on chance, so it is asked for once more and no more."""
_MOST_FAILURES = 3
"""In a row: whoever does not answer now may answer later."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The most of each, None without limit. `cost_usd` holds where the provider says what a call cost."""

    calls: int | None = None
    cost_usd: float | None = None


def plan_probe(
    target: Target, facts: ResolvedFacts, *, forms: Sequence[WireForm] = (), repeats: int = REPEATS, seed: int = 0
) -> Plan:
    """Return everything that would be sent. Raises InvalidRequest where there is no setting to turn."""
    cells = plan_cells(facts, forms)
    limit = output_limit(facts, cells)
    return Plan(
        provider=target.provider.id,
        address=origin(target.provider.base_url),
        dialect=target.provider.row.dialect,
        model=target.model,
        forms=tuple(form.name for form in forms) or (facts.form.name,),
        repeats=repeats,
        seed=seed,
        requests=tuple(request_of(cell, target, limit) for cell in cells),
    )


async def run_probe(
    audit: Audit, sender: Sender, *, limits: Limits | None = None, keep: Callable[[Audit], None] = lambda _: None
) -> Audit:
    """Send what the audit still lacks, and return it with that; `keep` is given it after each request.

    Raises BardoError where no request would be answered: a wrong key, no balance, an unknown model. What came before is kept.
    """
    bounds = limits or Limits()
    requests = {sent.cell.id: sent for sent in audit.plan.requests}
    refusals = Counter(trial.cell for trial in audit.trials if trial.outcome == "refused")
    sent, failures = 0, 0
    for cell, turn in in_turn(audit.plan.cells, audit.plan.repeats, audit.plan.seed, audit.settled):
        if refusals[cell.id] >= _MOST_REFUSALS:
            continue
        stopped = _stopped(audit, sent, failures, bounds)
        if stopped:
            return msgspec.structs.replace(audit, stopped=stopped)
        trial = await sender.send(requests[cell.id], turn)
        audit = msgspec.structs.replace(audit, trials=(*audit.trials, trial))
        sent += 1
        failures = failures + 1 if trial.outcome == "failed" else 0
        refusals[cell.id] += trial.outcome == "refused"
        keep(audit)
    lost = sum(trial.outcome == "failed" for trial in audit.trials)
    stopped = f"{lost} requests failed" if lost else ""
    return msgspec.structs.replace(audit, stopped=stopped)


def conclude(audit: Audit, facts: ResolvedFacts, day: datetime.date, note: str) -> Audit:
    """Return the audit with what it shows, and the row that follows."""
    decision = decide(audit.plan.cells, audit.trials)
    return msgspec.structs.replace(audit, decision=decision, row=overlay_row(facts, decision, day, note))


def _stopped(audit: Audit, sent: int, failures: int, limits: Limits) -> str:
    """Say why no further request is sent, empty where one is."""
    if failures >= _MOST_FAILURES:
        last: Trial = audit.trials[-1]
        return f"{failures} requests in a row failed: {last.message}"
    if limits.calls is not None and sent >= limits.calls:
        return f"the limit of {limits.calls} calls is reached"
    costs = [trial.cost_usd for trial in audit.trials if trial.cost_usd is not None]
    # The dearest so far may come again: the limit is not to be passed, not even by the last call.
    if limits.cost_usd is not None and costs and sum(costs) + max(costs) > limits.cost_usd:
        return f"the limit of ${limits.cost_usd:g} would be passed"
    return ""
