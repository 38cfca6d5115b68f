"""What is kept of one call: its reasoning, before the client learns that the reply is over, and its row in the log, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.edge.call_context import CallContext
from bardo.edge.log.row import CallBegun, CallOutcome, LogRow
from bardo.engine.planning import Attempt
from bardo.engine.receipt import receipt
from bardo.engine.reply_reader import ReplyReader
from bardo.values.blocks import ReplyBlock
from bardo.values.errors import BardoError
from bardo.values.events import Event, Finish
from bardo.values.request import Request
from bardo.values.response import Response

_MOST_TIMES_KEPT = 16
"""A reply may bring opaque state after its finish, in a few more reads; each of several choices has a finish."""


MALFORMED_CALLS = "malformed_tool_calls"
"""The key of a route's record that names calls of tools with unreadable arguments; only where it was chosen by what was learned."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """When a call began (Unix time), how long it took, and how long its first piece."""

    started_at: float
    seconds: float
    first_byte_seconds: float | None = None


class CallRecorder:
    """Keeps and logs one call. It begins when this is made: `started_at` is Unix time."""

    def __init__(self, context: CallContext, request: Request, request_id: str, tenant: str) -> None:
        self._context = context
        self._request = request
        self._request_id = request_id
        self._tenant = tenant
        self._first_byte: float | None = None
        self._attempts = 0
        self._kept: tuple[ReplyBlock, ...] = ()
        self._times_kept = 0
        self._came_later = False
        self.started_at = context.clock()
        self._began = context.watch()
        self.logged = False

    def note_sent(self, attempt: Attempt) -> None:
        """Note one more attempt, before it is sent: it may cost money from then on."""
        self._attempts += 1
        request, target = self._request, attempt.target
        self._context.note_begun(
            CallBegun(
                self._request_id,
                self.started_at,
                request.dialect,
                target.provider.id,
                target.provider.row.dialect,
                request.model,
                target.model,
                request.stream,
                self._attempts,
                request.operation,
            )
        )

    def note_resent(self) -> None:
        """Count an attempt that the transport repeated: its connection had been closed before it went out."""
        self._attempts += 1

    def note_first_byte(self) -> None:
        """Take the time at which a reply had begun."""
        self._first_byte = self._context.watch() - self._began

    def is_due(self, events: Sequence[Event]) -> bool:
        """Whether a reply has to be kept before its client gets these events: it may be over with them."""
        if self._kept:
            return bool(events)
        for event in events:  # noqa: SIM110 - asked at every read of a stream, where a loop costs half of what `any` does.
            if type(event) is Finish:
                return True
        return False

    async def remember(self, reader: ReplyReader, attempt: Attempt) -> None:
        """Keep the reply's reasoning before the client learns that the reply is over, and may go on.

        Keeping it costs the length of the reply. One that goes on for long after its finish is kept a few times, and again at its end.
        """
        if self._times_kept >= _MOST_TIMES_KEPT:
            self._came_later = True
            return
        self._times_kept += 1
        await self._keep(reader, attempt)

    async def remember_rest(self, reader: ReplyReader, attempt: Attempt) -> None:
        """Keep what came after the last time that the reply was kept."""
        if self._came_later:
            await self._keep(reader, attempt)

    async def _keep(self, reader: ReplyReader, attempt: Attempt) -> None:
        if not reader.holds_all:
            return  # A reply that is too long to be held is not remembered.
        response = reader.response_with_reasoning()
        if response.blocks != self._kept:
            self._kept = response.blocks
            await self._context.remember(
                response,
                self._request,
                attempt,
                self._tenant,
                reply=self._request_id,
                fields=reader.fields_to_return(),
            )

    def log(
        self,
        outcome: CallOutcome,
        *,
        attempt: Attempt | None,
        response: Response | None,
        error: BardoError | None,
        forwarded: bool = False,
    ) -> None:
        """Write the call into the log, as far as the reply has come, where one began. `logged` says that it was done."""
        self.logged = True
        timing = Timing(
            started_at=self.started_at,
            seconds=self._context.watch() - self._began,
            first_byte_seconds=self._first_byte,
        )
        row = log_row(
            self._request_id,
            self._request,
            timing,
            outcome=outcome,
            attempts=self._attempts,
            attempt=attempt,
            response=response,
            error=error,
            forwarded=forwarded,
            keep_content=self._context.limits.keep_content,
            tenant=self._tenant,
        )
        self._context.write(row)


def log_row(
    request_id: str,
    request: Request,
    timing: Timing,
    *,
    outcome: CallOutcome,
    attempts: int = 1,
    attempt: Attempt | None = None,
    response: Response | None = None,
    error: BardoError | None = None,
    forwarded: bool = False,
    keep_content: bool = False,
    tenant: str | None = None,
) -> LogRow:
    """Return the row of one call. Content goes in only where it is to be kept."""
    fields: dict[str, Any] = {
        "request_id": request_id,
        "started_at": timing.started_at,
        "seconds": timing.seconds,
        "first_byte_seconds": timing.first_byte_seconds,
        "client_dialect": request.dialect,
        "model_asked": request.model,
        "streamed": request.stream,
        "attempts": attempts,
        "tenant": tenant,
        "operation": request.operation,
        "outcome": outcome,
        "status": error.status if error is not None else 200 if response is not None else None,
    }
    if error is not None:
        fields |= {"error_class": type(error).__name__, "error_message": error.message}
    if attempt is not None:
        provider = attempt.target.provider
        fields |= {
            "provider": provider.id,
            "provider_dialect": provider.row.dialect,
            "model": attempt.target.model,
            "passed_through": forwarded,
            "route": None if attempt.route is None else attempt.route.fields,
            **_of_control(attempt),
        }
        if response is not None:
            fields |= _of_response(response)
            fields["receipt"] = made = receipt(response, attempt, forwarded=forwarded)
            fields["reasoning_verdict"] = made.get("verdict")
            if attempt.route is not None and "learned" in attempt.route.fields:
                fields["route"] = {**attempt.route.fields, MALFORMED_CALLS: _malformed_calls(response)}
    if keep_content:
        fields["request_content"] = msgspec.json.encode(request.body or request.messages).decode()
        if response is not None:
            fields["reply_content"] = msgspec.json.encode(response.blocks).decode()
    return LogRow(**fields)


def _malformed_calls(response: Response) -> list[str]:
    """Return the names of the tools that a model called with arguments which are no JSON object: what is learned of it."""
    return [call.name for one in (response, *response.alternatives) for call in one.tool_calls if call.malformed]


def _of_control(attempt: Attempt) -> dict[str, Any]:
    """Return the receipt as far as it is known before a reply."""
    plan = attempt.control
    if plan is None:
        return {}
    return {"reasoning_intent": plan.intent, "reasoning_emitted": plan.emitted, "reasoning_layer": plan.layer}


def _of_response(response: Response) -> dict[str, Any]:
    chain, usage = response.reasoning, response.usage
    return {
        "finish_reason": response.finish.reason,
        "finish_raw": response.finish.raw or None,
        "visibility": chain.visibility.value,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": chain.reasoning_tokens if chain.reported or chain.tokens_approx else None,
        "tokens_approx": chain.tokens_approx,
        "cached_input_tokens": usage.cached_input_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "usage_raw": usage.raw,
        "cost_usd": usage.cost_usd,
        "degraded": tuple(msgspec.to_builtins(response.degraded)),
    }
