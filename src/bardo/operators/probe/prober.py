"""Ask a model in every way that its row allows, cell by cell, and note what came back."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bardo.adapters.net.client import Call, Deadlines, Reply, Transport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.net.problems import origin
from bardo.catalog.forms import WireForm
from bardo.catalog.fragments import merge_fields
from bardo.dialects import dialect
from bardo.operators.probe.audit import Audit, AuditedRequest, Plan
from bardo.operators.probe.cells import Cell, in_turn, output_limit, plan_cells
from bardo.operators.probe.overlay import overlay_row
from bardo.operators.probe.samples import Trial
from bardo.operators.probe.verdicts import decide
from bardo.planning.route import Target
from bardo.reasoning.control import observation
from bardo.reasoning.control.target import ResolvedFacts
from bardo.replies.reply_reader import row_reader
from bardo.values.blocks import TextBlock
from bardo.values.error_cleaning import clean_error
from bardo.values.errors import BardoError, ProviderError, UpstreamRefused
from bardo.values.request import Message, Request
from bardo.values.response import Response
from bardo.values.secrets import shown_url
from bardo.values.wire import WireRequest

_MOST_BYTES = 32 * 1024 * 1024
_SHOWN = 300
# The request was understood, and not taken as it is: another try gives the same.
_REFUSALS = frozenset({400, 405, 409, 415, 422})
# A wrong key, no balance, not allowed, an unknown model: no other request fares better.
_HOPELESS = frozenset({401, 402, 403, 404})


class Sender:
    """Sends the requests of one probe. `clock` gives Unix time, `watch` measures how long a reply takes."""

    def __init__(
        self,
        target: Target,
        transport: Transport,
        keyring: Keyring,
        *,
        deadlines: Deadlines | None = None,
        clock: Callable[[], float] = time.time,
        watch: Callable[[], float] = time.monotonic,
    ) -> None:
        self.target = target
        self._transport = transport
        self._keyring = keyring
        self._deadlines = deadlines or Deadlines()
        self._clock = clock
        self._watch = watch

    def call(self, request: AuditedRequest) -> Call:
        """Return the request as it goes out, without the headers that prove who pays."""
        provider = self.target.provider
        wire = _wire(request.cell, self.target, None)
        headers = {**provider.row.headers, **wire.headers, "content-type": "application/json"}
        return Call(
            url=provider.url(request.path),
            headers=headers,
            body=msgspec.json.encode(request.body),
            provider=provider.id,
        )

    def shown(self, request: AuditedRequest) -> str:
        """Return where the request goes, without what may be a secret."""
        return f"{shown_url(self.target.provider.base_url).rstrip('/')}/{request.path}"

    async def send(self, request: AuditedRequest, turn: int) -> Trial:
        """Return what came of one request. Raises BardoError where no other request would fare better: a key, a balance."""
        began = self._watch()
        try:
            call = self._keyring.sign(self.call(request), self.target.provider, clock=self._clock)
            reply = await self._transport.send(call, self._deadlines)
            body = await _read_body(reply)
            response = self._response(reply, body)
        except BardoError as problem:
            self._clean(problem)
            return _unanswered(request.cell, turn, problem, self._watch() - began)
        if response.error is not None:
            self._clean(response.error)
            return _unanswered(request.cell, turn, response.error, self._watch() - began)
        seconds = self._watch() - began
        seen, usage = observation(response.reasoning), response.usage
        return Trial(
            cell=request.cell.id,
            round=turn,
            outcome="answered",
            reasoning_tokens=seen.reasoning_tokens,
            reported=seen.reported,
            text_seen=seen.text_seen,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost_usd=usage.cost_usd,
            finish=response.finish.raw or response.finish.reason,
            seconds=round(seconds, 3),
        )

    def _clean(self, problem: BardoError) -> None:
        clean_error(problem, self._keyring.secrets([self.target.provider]), now=self._clock())

    def _response(self, reply: Reply, body: bytes) -> Response:
        provider = self.target.provider
        if reply.status >= 300:
            raise dialect(provider.row.dialect).decode_error(reply.status, body, reply.headers, provider.id)
        reader = row_reader(provider.row, streamed=False, provider=provider.id, model=self.target.model)
        reader.feed(body)
        reader.finish()
        return reader.fold.response()


def request_of(cell: Cell, target: Target, limit: int) -> AuditedRequest:
    """Return the request for a cell: a plain question in the provider's dialect, with the cell's fields laid into it."""
    wire = _wire(cell, target, limit)
    body: dict[str, Any] = msgspec.json.decode(wire.body)
    return AuditedRequest(cell=cell, path=wire.path, body=merge_fields(body, cell.fields))


def _wire(cell: Cell, target: Target, limit: int | None) -> WireRequest:
    row = target.provider.row
    system = [("system", cell.system)] if cell.system else []
    messages = tuple(Message(role, (TextBlock(text),)) for role, text in (*system, ("user", cell.question)))  # type: ignore[arg-type]
    request = Request(model=target.model, messages=messages, max_output_tokens=limit)
    return dialect(row.dialect).encode_request(request, row)


async def _read_body(reply: Reply) -> bytes:
    try:
        return await reply.read(_MOST_BYTES)
    finally:
        await reply.close()


def _unanswered(cell: Cell, turn: int, problem: BardoError, seconds: float) -> Trial:
    answered = isinstance(problem, UpstreamRefused)
    if not isinstance(problem, ProviderError) or (answered and problem.status in _HOPELESS):
        raise problem
    refused = answered and problem.status in _REFUSALS
    return Trial(
        cell=cell.id,
        round=turn,
        outcome="refused" if refused else "failed",
        status=problem.status,
        message=problem.message[:_SHOWN],
        seconds=round(seconds, 3),
    )


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
