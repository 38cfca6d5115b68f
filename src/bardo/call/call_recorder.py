"""What is kept of one call: its reasoning, before the client learns that the reply is over, and its row in the log, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.accounting.cost import as_part
from bardo.accounting.payments import Payer
from bardo.adapters.stores.log.row import CallOutcome, LogRow, PendingCall
from bardo.call.call_attempts import CallAttempts, SentAttempt
from bardo.call.call_context import CallContext, EpisodeSink
from bardo.call.call_row import Timing, log_row, said_in, subsystem_of
from bardo.call.client_secrets import text_without_key, without_key
from bardo.planning.attempt import Attempt
from bardo.reasoning.replay import is_only_text
from bardo.replies.reply_reader import ReplyReader
from bardo.values.attempts import AttemptCause
from bardo.values.blocks import ReplyBlock
from bardo.values.errors import BardoError
from bardo.values.events import Event, Finish
from bardo.values.request import Request
from bardo.values.response import Response

if TYPE_CHECKING:
    from bardo.services.pipeline.call_layers import CallLayers
    from bardo.services.telemetry.telemetry import CallDetails

_MOST_TIMES_KEPT = 16
"""A reply may bring opaque state after its finish, in a few more reads; each of several choices has a finish."""


class CallRecorder:
    """Keeps and logs one call. It begins when this is made: `started_at` is Unix time."""

    layers: CallLayers | None = None
    """What the layers that worked on the call left; None where it had none."""
    awaits_verdict = False
    """Whether the call is one of a cascade: its row is written when it is known whether its answer was good enough."""
    logged = False
    _unjudged: LogRow | None = None
    _first_byte: float | None = None
    _kept: tuple[ReplyBlock, ...] = ()
    _times_kept = 0
    _came_later = False

    def __init__(
        self,
        context: CallContext,
        request: Request,
        request_id: str,
        tenant: str,
        *,
        key_id: str | None = None,
        tags: tuple[str, ...] = (),
        client_key: str = "",
    ) -> None:
        self._client_key = client_key
        self._context = context
        self._request = request
        self._request_id = request_id
        self.tenant = tenant
        self.key_id = key_id
        self._tags = tags
        self.started_at = context.clock()
        self.attempts = CallAttempts(context.watch, context.prices, self.started_at)
        self.payments = None if context.payments is None else context.payments.of_call(request_id)
        if self.payments is not None:
            self.attempts.payments = self.payments

    def note_sent(
        self, attempt: Attempt, *, cause: AttemptCause = "first", why: str = "", key: str = ""
    ) -> SentAttempt:
        """Note one more attempt, before it is sent: it may cost money from then on."""
        request, target, subsystem = self._request, attempt.target, subsystem_of(self._request, attempt)
        if self.payments is not None:
            self.payments.payer = Payer(tenant=self.tenant, subsystem=subsystem or "")
            self.payments.expect(attempt, request, self._context.prices, self.started_at)
        sent = self.attempts.send(target, cause=cause, why=why, key=key)
        if self._details is not None:
            self._details.sent(target)
        self._context.facts.searches.note(attempt)
        self._context.note_begun(
            PendingCall(
                self._request_id,
                self.started_at,
                request.dialect,
                target.provider.id,
                target.provider.row.dialect,
                request.model,
                target.model,
                request.stream,
                self.attempts.count,
                request.operation,
                self.key_id,
                None if subsystem is None else text_without_key(subsystem, self._client_key),
                self._tags,
            ),
            target,
        )
        return sent

    @property
    def _details(self) -> CallDetails | None:
        telemetry = self._context.telemetry
        return None if telemetry is None else telemetry.details(self._request_id)

    def payment_secrets(self) -> tuple[str, ...]:
        """Return what of the call's payments nobody may quote."""
        return () if self.payments is None else self.payments.secrets

    def payment_fields(self) -> dict[str, Any] | None:
        """Return what the receipt says of the call's payments."""
        return None if self.payments is None else self.payments.fields()

    def note_first_byte(self) -> None:
        """Take the time at which a reply had begun."""
        self._first_byte = self.attempts.age()

    @property
    def has_kept(self) -> bool:
        """Whether something of the reply was kept: then whatever follows is kept too."""
        return bool(self._kept)

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
        response, shown = reader.response_with_reasoning(), None
        if response.blocks == self._kept:
            return
        self._kept = response.blocks
        if not is_only_text(response, self._request):
            if self.layers is not None and self.layers.masks:
                response, shown = self.layers.as_said(response), self.layers.as_shown(response)
            await self._context.remember(
                response,
                self._request,
                attempt,
                self.tenant,
                reply=self._request_id,
                fields=reader.fields_to_return(),
                shown=shown,
            )

    def log(
        self,
        outcome: CallOutcome,
        *,
        attempt: Attempt | None,
        response: Response | None,
        error: BardoError | None,
        forwarded: bool = False,
    ) -> LogRow:
        """Write the call into the log, as far as the reply has come, where one began. `logged` says that it was done."""
        self.logged = True
        if self._details is not None and response is not None:
            self._details.answered(response)
        timing = Timing(
            started_at=self.started_at,
            seconds=self.attempts.age(),
            first_byte_seconds=self._first_byte,
        )
        row = log_row(
            self._request_id,
            self._request,
            timing,
            outcome=outcome,
            attempts=self.attempts.count,
            attempt=attempt,
            response=response,
            error=error,
            forwarded=forwarded,
            keep_content=self._context.limits.keep_content,
            tenant=self.tenant,
            key_id=self.key_id,
            tags=self._tags,
            attempt_records=self.attempts.logged_records(),
            cost=self.attempts.cost(),
            payment=self.payment_fields(),
            layers=self.layers,
        )
        if self._client_key:
            row = without_key(row, self._request, self._client_key, is_known=self.key_id is not None)
        if self.awaits_verdict:
            self._unjudged = row
        else:
            self._context.write(row)
        return row

    def keep_episode(self, episodes: EpisodeSink, row: LogRow, response: Response, schema_ok: bool | None) -> None:
        """Keep the call's thinking, where somebody thought: a kept reply is the thinking of another call.

        `response` is the reply with all of its reasoning; `schema_ok`: whether a typed answer fitted its schema.
        """
        layers = self.layers
        if layers is not None and layers.answer is not None:
            return
        said = said_in(self._request, response, layers)
        if said is None or said[1] is None:
            return
        session = "" if layers is None else layers.session
        episodes.keep(row, said[0], said[1], asked=self._request, session=session, schema_ok=schema_ok)

    def judge(self, *, escalated: bool) -> None:
        """Write the row of a call of a cascade. Where it was `escalated`, all that it cost is the cost of an escalation."""
        row, self._unjudged = self._unjudged, None
        if row is None:
            return
        if escalated:
            parts = as_part(self.attempts.cost(), "escalation").parts
            row = msgspec.structs.replace(row, cost_parts=parts or None)
        self._context.write(row)
