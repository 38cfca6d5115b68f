"""Ask how far jobs are, and take their results: each item gets one, once, in whatever order and however often they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from msgspec.structs import replace

from bardo.batches.batch_store import BatchStore
from bardo.batches.item_requests import ItemReader
from bardo.batches.job_calls import JobCalls, Place, is_worth_another_try, seconds_asked_for
from bardo.batches.records import BatchRecord, ItemRecord, ItemState, JobRecord
from bardo.batches.results import ResultReader
from bardo.batches.submission import place_of_key
from bardo.dialects.batches.base import JobReply, UpstreamJob, result_call
from bardo.dialects.shared.json_values import WrongShape
from bardo.values.errors import BardoError, MalformedReply, UpstreamRefused

_AT_ONCE = 50
# Refusals in a row after which a job is given up that its provider does not know, or does not tell of.
_MOST_REFUSALS = 5
_WITHOUT_RESULT: dict[str, tuple[ItemState, str, str]] = {
    "expired": ("expired", "batch_expired", "This request could not be executed before the completion window expired."),
    "canceled": ("canceled", "batch_cancelled", "This request was cancelled before it was executed."),
    "lost": (
        "errored",
        "batch_submission_unknown",
        "Nobody knows whether the provider took this request: it is not sent twice.",
    ),
    "refused": ("errored", "batch_job_refused", "The provider refused the batch that this request was in"),
    "unsent": ("errored", "batch_job_not_sent", "The batch that this request was in was not sent"),
    "missing": ("errored", "batch_result_missing", "The provider's batch ended without a result for this request."),
}
_ENDED_BY_WORD = {"expired": "expired", "timeout_exceeded": "expired", "cancelled": "canceled", "canceled": "canceled"}


class Collector:
    """Asks for jobs and takes their results. Everything that is decided is stored before it goes on."""

    def __init__(self, calls: JobCalls, store: BatchStore, results: ResultReader) -> None:
        self._calls = calls
        self._store = store
        self._results = results

    async def poll(self, job: JobRecord, now: float, wait: float) -> JobRecord:
        """Ask how far a job is, and return it as it is then; it is asked for again after `wait` seconds."""
        place = self._calls.place(job)
        try:
            status = await self._job_status(place, job)
        except (BardoError, WrongShape) as problem:
            return await self._put(_unanswered(job, problem, now, wait))
        if status.state == "running":
            return await self._put(replace(job, word=status.word, polls=job.polls + 1, failures=0, due_at=now + wait))
        state = "failed" if status.state == "failed" and not (status.results or status.inline) else "ended"
        ended = replace(job, word=status.word, results=status.results, errors=status.errors, failures=0, due_at=now)
        return await self._put(replace(ended, state=state))

    async def cancel(self, job: JobRecord, now: float, wait: float) -> JobRecord:
        """Ask the provider to end a job early, and return it: its results are asked for as before."""
        place = self._calls.place(job)
        try:
            await self._calls.ask(place, place.form.cancel(job.upstream_id))
        except BardoError as problem:
            if is_worth_another_try(problem):
                return await self._put(replace(job, failures=job.failures + 1, due_at=now + wait))
            # A job that has ended by now cannot be canceled.
        return await self._put(replace(job, cancel_sent=True, polls=0, due_at=now + min(wait, 1.0)))

    async def collect(
        self, job: JobRecord, batch: BatchRecord, read_item: ItemReader, now: float, wait: float
    ) -> JobRecord:
        """Take all results of a job that has ended, and return it; it is `collected` once there is nothing more to take."""
        waiting: list[JobReply] = []
        try:
            async for reply in self._replies(job):
                waiting.append(reply)
                if len(waiting) >= _AT_ONCE:
                    await self._take(job, batch, read_item, waiting)
                    waiting = []
            await self._take(job, batch, read_item, waiting)
        except (BardoError, WrongShape) as problem:
            await self._take(job, batch, read_item, waiting)
            return await self._put(_unanswered(job, problem, now, wait))
        return await self.close(job, batch, _ENDED_BY_WORD.get(job.word.lower(), "missing"))

    async def close(self, job: JobRecord, batch: BatchRecord, why: str) -> JobRecord:
        """End the items of a job that have no result, for one of the reasons in `_WITHOUT_RESULT`."""
        state, code, message = _WITHOUT_RESULT[why]
        message = (
            f"{message}: {'; '.join(job.errors)[:500]}" if why in ("refused", "unsent") and job.errors else message
        )
        while left := await asyncio.to_thread(self._store.items, batch.id, "planned", job_id=job.id):
            ended = [self._results.without_reply(item, batch, state, code, message, job=job) for item in left]
            await asyncio.to_thread(self._store.settle, ended)
        return await self._put(replace(job, state="lost" if why == "lost" else "collected"))

    async def _job_status(self, place: Place, job: JobRecord) -> UpstreamJob:
        return place.form.decode_job(await self._calls.ask(place, place.form.status(job.upstream_id)))

    async def _replies(self, job: JobRecord) -> AsyncIterator[JobReply]:
        """Yield the results of a job; what cannot be read as one is passed over. Raises BardoError where they break off."""
        place = self._calls.place(job)
        if not job.results:
            for line in (await self._job_status(place, job)).inline:
                yield place.form.decode_reply(line)
        for path in job.results:
            async for line in self._calls.lines(place, result_call(path)):
                try:
                    yield place.form.decode_reply(line)
                except WrongShape:
                    continue  # Its item ends without a result, and says so.

    async def _take(self, job: JobRecord, batch: BatchRecord, read_item: ItemReader, replies: list[JobReply]) -> None:
        """Store results, of items that have none yet."""
        by_place = await asyncio.to_thread(self._places, job, replies)
        ended: list[ItemRecord] = []
        for item, reply in by_place:
            try:
                asked = read_item(item.body, batch)
            except BardoError as problem:
                ended.append(self._results.failed(item, batch, problem, job=job))
                continue
            ended.append(await self._results.read(item, asked, batch, job, reply))
        await asyncio.to_thread(self._store.settle, ended)

    def _places(self, job: JobRecord, replies: list[JobReply]) -> list[tuple[ItemRecord, JobReply]]:
        """Return the items that replies are for, each once. Blocks."""
        by_place: dict[int, tuple[ItemRecord, JobReply]] = {}
        for reply in replies:
            place = place_of_key(job, reply.key) if reply.key else self._store.place_in_job(job.id, reply.place or 0)
            item = None if place is None else self._store.planned_item(job, place)
            if item is not None and item.place not in by_place:
                by_place[item.place] = (item, reply)
        return list(by_place.values())

    async def _put(self, job: JobRecord) -> JobRecord:
        await asyncio.to_thread(self._store.put_job, job)
        return job


def _unanswered(job: JobRecord, problem: BardoError | WrongShape, now: float, wait: float) -> JobRecord:
    """Return a job whose provider did not tell of it: it is asked for again later, or given up after some refusals in a row."""
    error = problem if isinstance(problem, BardoError) else MalformedReply(f"an answer is none: {problem}")
    failures = job.failures + 1
    refused = isinstance(error, UpstreamRefused) and not is_worth_another_try(error)
    if refused and failures >= _MOST_REFUSALS:
        return replace(job, state="failed", errors=(error.message,), word="refused", failures=failures)
    return replace(job, failures=failures, errors=(error.message,), due_at=now + max(wait, seconds_asked_for(error)))
