"""Take the items of a batch in: read the file that a client uploaded, line by line, and plan each item for a job."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from msgspec.structs import replace

from bardo.adapters.config.gateway import BatchSettings
from bardo.batches.batch_store import BatchStore
from bardo.batches.file_store import FileStore
from bardo.batches.item_requests import ItemReader
from bardo.batches.planning import ItemPlanner, PlannedItem
from bardo.batches.records import BatchRecord, ItemRecord, JobRecord, LongLine, split_lines
from bardo.batches.results import ResultReader
from bardo.dialects.batches.clients import LineProblem, read_line
from bardo.values.errors import BardoError

_AT_ONCE = 100
_MOST_PROBLEMS = 100
# Requests are wrapped by a few words and an id in the body of a job.
_WRAPPING_BYTES = 200


class Intake:
    """Reads and plans items. Both can be begun again after they broke off."""

    def __init__(
        self, store: BatchStore, files: FileStore, settings: BatchSettings, planner: ItemPlanner, results: ResultReader
    ) -> None:
        self._store = store
        self._files = files
        self._settings = settings
        self._planner = planner
        self._results = results

    def read_file(self, batch: BatchRecord) -> tuple[int, list[LineProblem]]:
        """Store the items of a batch's file, and return how many there are and its faults. Blocks."""
        self._store.clear_items(batch.id)
        seen: set[str] = set()
        problems: list[LineProblem] = []
        waiting: list[ItemRecord] = []
        count = 0
        for number, line in self._lines(batch, problems):
            line_read = read_line(line, number, endpoint=batch.endpoint, seen_ids=seen)
            if isinstance(line_read, LineProblem):
                problems.append(line_read)
            elif count >= self._settings.max_items:
                message = f"the file has more than {self._settings.max_items} requests"
                problems.append(LineProblem(code="too_many_tasks", message=message, line=number))
            else:
                item = ItemRecord(batch_id=batch.id, place=count, custom_id=line_read.custom_id, body=line_read.body)
                waiting.append(item)
                count += 1
            if len(problems) >= _MOST_PROBLEMS:
                break
            if len(waiting) >= _AT_ONCE:
                self._store.add_items(waiting)
                waiting = []
        self._store.add_items(waiting)
        if not count and not problems:
            problems.append(LineProblem(code="empty_file", message="The input file holds no requests."))
        return count, problems

    def _lines(self, batch: BatchRecord, problems: list[LineProblem]) -> Iterator[tuple[int, bytes]]:
        pieces = self._files.pieces(batch.input_file_id)
        try:
            yield from split_lines(pieces, self._settings.max_job_bytes)
        except LongLine as problem:
            message = f"a request is larger than {self._settings.max_job_bytes} bytes"
            problems.append(LineProblem(code="request_too_large", message=message, line=problem.number))

    async def plan(self, batch: BatchRecord, read_item: ItemReader) -> None:
        """Plan all items that are new. Jobs that are filled are ready to be made then."""
        jobs = JobFiller(batch, await asyncio.to_thread(self._store.jobs, batch.id), self._settings.max_job_bytes)
        while items := await asyncio.to_thread(self._store.items, batch.id, "new", limit=_AT_ONCE):
            planned = [await self._planned(item, batch, read_item, jobs) for item in items]
            await asyncio.to_thread(self._store.settle_planned, planned, jobs.changed())
        jobs.close()
        await asyncio.to_thread(self._store.settle_planned, (), jobs.changed())

    async def _planned(
        self, item: ItemRecord, batch: BatchRecord, read_item: ItemReader, jobs: JobFiller
    ) -> ItemRecord:
        try:
            plan = await self._planner.plan(read_item(item.body, batch), batch)
        except BardoError as problem:
            return self._results.failed(item, batch, problem)
        if plan is None:
            return replace(item, state="local")
        return replace(item, state="planned", job_id=jobs.add(plan), wire=plan.wire.body, layers=plan.layers)


class JobFiller:
    """Puts items into jobs, one for each provider, model and path, within what the provider and bardo take in one."""

    def __init__(self, batch: BatchRecord, jobs: list[JobRecord], max_bytes: int) -> None:
        self._batch = batch
        self._max_bytes = max_bytes
        self._jobs = {job.id: job for job in jobs}
        self._changed: set[str] = set()
        self._open: dict[tuple[object, ...], str] = {}
        for job in jobs:
            if job.state == "open":
                self._open[job.provider, job.model, job.dialect, job.path, tuple(sorted(job.headers.items()))] = job.id

    def add(self, plan: PlannedItem) -> str:
        """Count an item in, and return the id of its job."""
        size = len(plan.wire.body) + _WRAPPING_BYTES
        most = min(self._max_bytes, plan.row.max_bytes)
        job_id = self._open.get(plan.job_key)
        job = None if job_id is None else self._jobs[job_id]
        if job is not None and (job.items >= plan.row.max_items or job.size + size > most):
            self._put(replace(job, state="ready"))
            job = None
        if job is None:
            job = self._new(plan)
            self._open[plan.job_key] = job.id
        self._put(
            replace(job, items=job.items + 1, size=job.size + size, reserved_nanos=job.reserved_nanos + plan.nanos)
        )
        return job.id

    def close(self) -> None:
        """Have all jobs made."""
        for job_id in self._open.values():
            self._put(replace(self._jobs[job_id], state="ready"))
        self._open.clear()

    def changed(self) -> list[JobRecord]:
        """Return the jobs that changed since this was asked for."""
        jobs = [self._jobs[job_id] for job_id in sorted(self._changed)]
        self._changed.clear()
        return jobs

    def _new(self, plan: PlannedItem) -> JobRecord:
        return JobRecord(
            id=f"{self._batch.id}_{len(self._jobs):04d}",
            batch_id=self._batch.id,
            provider=plan.provider,
            model=plan.model,
            dialect=plan.dialect,
            path=plan.wire.path,
            form=plan.row.form,
            headers=dict(plan.wire.headers),
        )

    def _put(self, job: JobRecord) -> None:
        self._jobs[job.id] = job
        self._changed.add(job.id)
