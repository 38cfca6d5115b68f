"""What is kept of one call: its reasoning, before the client learns that the reply is over, and its row in the log, once."""

from __future__ import annotations

from bardo.edge.log.row import CallBegun, CallOutcome
from bardo.edge.means import Means
from bardo.edge.record import Timing, log_row
from bardo.edge.reply_bytes import Step
from bardo.engine.exchange import Attempt
from bardo.engine.pipeline import ReplyReader
from bardo.values.blocks import ReplyBlock
from bardo.values.errors import BardoError
from bardo.values.events import Finish
from bardo.values.request import Request

_MOST_TIMES_KEPT = 16
"""A reply may bring opaque state after its finish, in a few more reads; each of several choices has a finish."""


class Noting:
    """Keeps and notes one call. It begins when this is made: `started_at` is Unix time."""

    def __init__(self, means: Means, request: Request, request_id: str, tenant: str) -> None:
        self._means = means
        self._request = request
        self._request_id = request_id
        self._tenant = tenant
        self._first_byte: float | None = None
        self._attempts = 0
        self._kept: tuple[ReplyBlock, ...] = ()
        self._times_kept = 0
        self._came_later = False
        self.started_at = means.clock()
        self._began = means.watch()
        self._noted = False

    def sent(self, attempt: Attempt) -> None:
        """Note one more attempt, before it is sent: it may cost money from then on."""
        self._attempts += 1
        request, target = self._request, attempt.target
        self._means.note_begun(
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
            )
        )

    def sent_again(self) -> None:
        """Count an attempt that the transport repeated: its connection had been closed before it went out."""
        self._attempts += 1

    def heard(self) -> None:
        """Take the time at which a reply had begun."""
        self._first_byte = self._means.watch() - self._began

    async def remember(self, step: Step, reader: ReplyReader, attempt: Attempt) -> None:
        """Keep the reply's reasoning before the client learns that the reply is over, and may go on.

        Keeping it costs the length of the reply. One that goes on for long after its finish is kept a few times, and again at its end.
        """
        if not (self._kept and step.events) and not any(type(event) is Finish for event in step.events):
            return
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
        response = reader.heard()
        if response.blocks != self._kept:
            self._kept = response.blocks
            await self._means.remember(
                response,
                self._request,
                attempt,
                self._tenant,
                reply=self._request_id,
                fields=reader.fields_to_return(),
            )

    def note(
        self, outcome: CallOutcome, *, attempt: Attempt | None, reader: ReplyReader | None, error: BardoError | None
    ) -> None:
        """Write the call into the log, once: as far as the reply has come, where one began."""
        if self._noted:
            return
        self._noted = True
        timing = Timing(
            started_at=self.started_at,
            seconds=self._means.watch() - self._began,
            first_byte_seconds=self._first_byte,
        )
        row = log_row(
            self._request_id,
            self._request,
            timing,
            outcome=outcome,
            attempts=self._attempts,
            attempt=attempt,
            response=None if reader is None else reader.fold.response(),
            error=error,
            keep_content=self._means.limits.keep_content,
        )
        self._means.write(row)
