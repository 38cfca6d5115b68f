"""The next step of one batch, from its stored state: read, plan, submit, ask, collect, write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from bardo.adapters.config.gateway import BatchSettings
from bardo.adapters.stores.log.row import LogRow
from bardo.batches.batch_store import BatchStore
from bardo.batches.collection import Collector
from bardo.batches.intake import Intake
from bardo.batches.item_requests import ItemReader
from bardo.batches.outputs import OutputWriter, last_status
from bardo.batches.records import BatchRecord, JobRecord, pause_before
from bardo.batches.results import ResultReader, session_of_batch
from bardo.batches.single_calls import SingleCalls
from bardo.batches.submission import Submitter
from bardo.call.services import Services
from bardo.services.accounts.call_facts import CallFacts
from bardo.values.errors import BardoError, InternalError, OverBudget, RateLimited

# How long results are waited for after a batch's time is up: providers end a job a little late.
_GRACE_SECONDS = 3600.0
_FINAL_STATES = ("collected", "lost")
_decode_row = msgspec.json.Decoder(LogRow).decode


class RowSink:
    """Takes the rows of items into the log. `stored` waits until all that was written is stored, and says whether it is."""

    def __init__(
        self,
        write: Callable[[LogRow], None],
        stored: Callable[[], bool],
        missing: Callable[[list[LogRow]], list[LogRow]],
    ) -> None:
        self.write = write
        self.stored = stored
        self.missing = missing


class BatchSteps:
    """Takes a batch as far as it goes now. Every step can be done again: what was done is stored before the next begins."""

    def __init__(
        self,
        services: Services,
        store: BatchStore,
        settings: BatchSettings,
        *,
        intake: Intake,
        submitter: Submitter,
        collector: Collector,
        singles: SingleCalls,
        results: ResultReader,
        outputs: OutputWriter,
        log: RowSink,
        read_item: ItemReader,
    ) -> None:
        self._services = services
        self._store = store
        self._settings = settings
        self._intake = intake
        self._submitter = submitter
        self._collector = collector
        self._singles = singles
        self._results = results
        self._outputs = outputs
        self._log = log
        self._read_item = read_item
        self._clock = services.clock
        self._written: set[str] = set()

    async def advance(self, batch: BatchRecord, chance: float) -> float:
        """Take a batch on, and return when it is to be looked at again."""
        if batch.status == "validating":
            batch = await self._take_in(batch)
        if batch.over:
            return self._clock()
        await self._intake.plan(batch, self._read_item)
        try:
            await self._check_budget(batch)
        except RateLimited as problem:
            return self._clock() + problem.retry_after
        except OverBudget as problem:
            await self._fail_unsent(batch, problem)
        due = await self._run(batch, chance)
        await self._write_rows(batch)
        if due is None:
            return await self._finish(batch)
        await self._count(batch)
        return due

    async def _take_in(self, batch: BatchRecord) -> BatchRecord:
        """Read the file of a batch that was just made."""
        now = self._clock()
        if not batch.input_file_id:
            return await self._change(batch, lambda row: _begun(row, row.total, now))
        count, problems = await asyncio.to_thread(self._intake.read_file, batch)
        if problems:
            await asyncio.to_thread(self._store.clear_items, batch.id)
            failed = lambda row: replace(row.came_to("failed", now), errors=tuple(problems), total=count)  # noqa: E731
            return await self._change(batch, failed)
        return await self._change(batch, lambda row: _begun(row, count, now))

    async def _check_budget(self, batch: BatchRecord) -> None:
        """Raise OverBudget where the jobs that are open may cost more than is left to the key of a batch. Raises RateLimited.

        Nothing is taken: a job runs for hours, and its calls are counted as they end.
        """
        gate, account = self._services.gate, batch.account
        if gate is None or account is None or not account.has_budget:
            return
        if not any(job.state == "ready" for job in await asyncio.to_thread(self._store.jobs, batch.id)):
            return
        nanos = await asyncio.to_thread(self._store.reserved, batch.tenant)
        own = await asyncio.to_thread(self._store.reserved, batch.tenant, batch.id)
        facts = CallFacts(
            request_id=batch.id, requests=0, nanos=nanos, session=session_of_batch(batch), session_nanos=own
        )
        admission = await gate.accounts.admit(account, facts)
        if admission is not None:
            gate.accounts.release(admission)

    async def _fail_unsent(self, batch: BatchRecord, problem: BardoError) -> None:
        """End the items of the jobs that were not made yet with an error."""
        for job in await asyncio.to_thread(self._store.jobs, batch.id):
            while job.state == "ready" and (
                left := await asyncio.to_thread(self._store.items, batch.id, "planned", job_id=job.id)
            ):
                ended = [self._results.failed(item, batch, problem, job=job) for item in left]
                await asyncio.to_thread(self._store.settle, ended)
            if job.state == "ready":
                await asyncio.to_thread(self._store.put_job, replace(job, state="collected"))

    async def _run(self, batch: BatchRecord, chance: float) -> float | None:
        """Take the jobs of a batch on, and the items that are sent one by one; return when more is due, or None if all have ended."""
        now = self._clock()
        stop = _stop_of(batch, now)
        due: list[float] = []
        jobs = await asyncio.to_thread(self._store.jobs, batch.id)
        providers = {job.upstream_id for job in jobs if job.upstream_id}
        for job in jobs:
            current = job
            while current.state not in _FINAL_STATES and (current.due_at <= now or (stop and not current.cancel_sent)):
                before, current = current, await self._step_or_wait(current, batch, stop, chance, providers)
                if current.due_at > now or current == before:
                    break
            if current.state not in _FINAL_STATES:
                due.append(current.due_at)
        if await self._run_singles(batch, stop):
            due.append(now)
        return min(due) if due else None

    async def _step_or_wait(
        self, job: JobRecord, batch: BatchRecord, stop: str, chance: float, providers: set[str]
    ) -> JobRecord:
        """Do the next step of one job; wait if its provider is no longer configured, and give it up if the batch ends."""
        try:
            return await self._step(job, batch, stop, chance, providers)
        except InternalError as problem:
            if stop:
                return await self._collector.close(job, batch, stop)
            later = replace(job, errors=(problem.message,), due_at=self._clock() + self._settings.max_poll_seconds)
            await asyncio.to_thread(self._store.put_job, later)
            return later

    async def _step(
        self, job: JobRecord, batch: BatchRecord, stop: str, chance: float, providers: set[str]
    ) -> JobRecord:
        """Do the next step of one job. `stop` is why the batch ends early, empty if it does not."""
        now, wait = self._clock(), self._pause(job, chance)
        match job.state:
            case "open" | "ready":
                return await (
                    self._collector.close(job, batch, stop) if stop else self._submitter.submit(job, now, wait)
                )
            case "submitting":
                if now > batch.expires_at + _GRACE_SECONDS:
                    return await self._collector.close(job, batch, "lost")
                return await self._submitter.reconcile(job, now, wait, providers - {job.upstream_id})
            case "submitted":
                if stop and not job.cancel_sent:
                    return await self._collector.cancel(job, now, wait)
                if now > batch.expires_at + 2 * _GRACE_SECONDS:
                    return await self._collector.close(job, batch, "expired")
                return await self._collector.poll(job, now, wait)
            case "ended":
                return await self._collector.collect(job, batch, self._read_item, now, wait)
            case _:
                return await self._collector.close(job, batch, "unsent" if job.word == "unsent" else "refused")

    def _pause(self, job: JobRecord, chance: float) -> float:
        settings, asked = self._settings, job.polls + job.failures
        return pause_before(asked, first=settings.poll_seconds, most=settings.max_poll_seconds, chance=chance)

    async def _run_singles(self, batch: BatchRecord, stop: str) -> bool:
        """Send some of the items that bardo sends by itself, and return whether there may be more."""
        if not stop:
            return await self._singles.run_some(batch, self._read_item)
        state, code = ("canceled", "batch_cancelled") if stop == "canceled" else ("expired", "batch_expired")
        while left := await asyncio.to_thread(self._store.items, batch.id, "local", "running"):
            ended = [
                self._results.without_reply(item, batch, state, code, "The batch ended before this request was sent.")  # type: ignore[arg-type]
                for item in left
            ]
            await asyncio.to_thread(self._store.settle, ended)
        return False

    async def _write_rows(self, batch: BatchRecord) -> None:
        """Write the rows of items that have ended into the log, each once.

        A row is stored with its item, and forgotten once the log has stored it. One that an earlier process wrote is looked for first.
        """
        while waiting := await asyncio.to_thread(self._store.unlogged, batch.id):
            rows = [_decode_row(item.log_row) for item in waiting if item.log_row is not None]
            if batch.id not in self._written:
                rows = await asyncio.to_thread(self._log.missing, rows)
            for row in rows:
                self._log.write(row)
            if not await asyncio.to_thread(self._log.stored):
                return
            await asyncio.to_thread(self._store.logged, batch.id, [item.place for item in waiting])
        self._written.add(batch.id)

    async def _finish(self, batch: BatchRecord) -> float:
        """Write the files of a batch whose items have all ended, and end it."""
        now = self._clock()
        if await asyncio.to_thread(self._store.unlogged, batch.id, 1):
            return now + 1.0  # The log cannot be written now.
        await self._change(batch, lambda row: row if row.status == "cancelling" else row.came_to("finalizing", now))
        written = await asyncio.to_thread(self._outputs.write, batch, now)
        self._written.discard(batch.id)

        def ended(record: BatchRecord) -> BatchRecord:
            names = ("output_file_id", "error_file_id", "counts", "usage", "cost_nanos", "cost_known", "model")
            done = replace(record, **{name: getattr(written, name) for name in names})
            return done.came_to(last_status(done), self._clock())

        await self._change(batch, ended)
        return now

    async def _count(self, batch: BatchRecord) -> None:
        """Store how far a batch is, for its client."""
        counts = await asyncio.to_thread(self._store.count, batch.id)
        if counts != batch.counts:
            await self._change(batch, lambda row: replace(row, counts=counts))

    async def _change(self, batch: BatchRecord, how: Callable[[BatchRecord], BatchRecord]) -> BatchRecord:
        return await asyncio.to_thread(self._store.change, batch.id, how)


def _begun(batch: BatchRecord, count: int, now: float) -> BatchRecord:
    """Return a batch whose items are known; one that was canceled by then stays so."""
    begun = replace(batch, total=count)
    return begun if begun.status != "validating" else begun.came_to("in_progress", now)


def _stop_of(batch: BatchRecord, now: float) -> str:
    """Return why a batch ends before its items have: canceled or expired; empty where it does not."""
    if "cancelling" in batch.times:
        return "canceled"
    return "expired" if now >= batch.expires_at else ""
