"""Make a job at a provider, once.

That it is about to be made is stored before the call is sent. Where it is unknown whether the provider took it (the process was killed, the
answer was lost), the provider's own list of jobs is read before anything is sent again: by our tag, or, where jobs bear none, by the ids
in their results. Where that does not tell either, the job is reported as lost, and never made twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from msgspec.structs import replace

from bardo.batches.batch_store import BatchStore
from bardo.batches.job_calls import JobCalls, Place, is_worth_another_try, may_have_been_taken, seconds_asked_for
from bardo.batches.records import JobRecord
from bardo.dialects.batches.base import BatchCall, JobFacts, JobRequest, UpstreamJob, result_call
from bardo.dialects.shared.json_values import WrongShape
from bardo.values.errors import BardoError, MalformedReply, ProviderError

# Clocks differ: a job that was made at most this long before ours began may be ours.
_SKEW_SECONDS = 300.0
_MOST_PAGES = 20


class Submitter:
    """Makes the jobs of a gateway. Everything it decides is stored before it goes on.

    `settling_seconds`: how long a provider may take until a job that it took is in its list.
    """

    def __init__(self, calls: JobCalls, store: BatchStore, *, settling_seconds: float) -> None:
        self._calls = calls
        self._store = store
        self._settling = settling_seconds

    async def submit(self, job: JobRecord, now: float, wait: float) -> JobRecord:
        """Make a job, and return it as it is then. `wait` is when it is asked for first, or tried again, in seconds."""
        if not job.key and not job.file_id:
            # Files and jobs made with one key are found with that key alone.
            job = await self._put(replace(job, key=self._calls.choose_key(job)))
        place = self._calls.place(job)
        facts = JobFacts(tag=job.id, path=job.path, model=job.model, hours=place.row.hours)
        requests = await asyncio.to_thread(self._requests, job, place, facts)
        try:
            if place.form.uploads and not job.file_id:
                body = await self._calls.ask(place, place.form.upload(requests, facts, place.row))
                job = await self._put(replace(job, file_id=place.form.decode_file(body)))
        except (BardoError, WrongShape) as problem:
            # A file that was uploaded twice is a file too many, and no job.
            return await self._put(_refused(job, _named(problem, place), now, wait, may_be_made=False))
        job = await self._put(
            replace(job, state="submitting", submitting_at=now, submissions=job.submissions + 1, due_at=now + wait)
        )
        try:
            body = await self._calls.ask(place, place.form.create(requests, job.file_id, facts), job.headers)
            made = place.form.decode_job(body)
        except (BardoError, WrongShape) as problem:
            error = _named(problem, place)
            unsure = isinstance(problem, WrongShape) or may_have_been_taken(problem)
            return await self._put(_refused(job, error, now, max(wait, self._settling), may_be_made=unsure))
        return await self.adopt(job, made, now, wait)

    async def reconcile(self, job: JobRecord, now: float, wait: float, other_jobs: Collection[str]) -> JobRecord:
        """Find out whether a job was made, and return it: made, ready to be made again, or asked for later.

        `other_jobs` are the provider's ids of our other jobs.
        """
        place = self._calls.place(job)
        try:
            candidates, all_seen = await self._candidates(place, job, other_jobs)
            if place.row.tagged:
                match, unsure = next((candidate for candidate in candidates if candidate.tag == job.id), None), False
            else:
                match, unsure = await self._by_results(place, job, candidates)
        except (BardoError, WrongShape) as problem:
            pause = max(wait, seconds_asked_for(_named(problem, place)))
            return await self._put(replace(job, due_at=now + pause, failures=job.failures + 1))
        if match is not None:
            return await self.adopt(job, match, now, 0.0)
        if not all_seen or unsure or now < job.submitting_at + self._settling:
            return await self._put(replace(job, due_at=max(now + wait, job.submitting_at + self._settling)))
        return await self._put(replace(job, state="ready", due_at=now))

    async def adopt(self, job: JobRecord, made: UpstreamJob, now: float, wait: float) -> JobRecord:
        """Note that a job was made."""
        job = replace(
            job,
            state="submitted",
            upstream_id=made.id,
            word=made.word,
            submitted_at=job.submitting_at or now,
            due_at=now + wait,
            polls=0,
            failures=0,
            errors=(),
        )
        await asyncio.to_thread(self._store.put_job, job, without_wires=True)
        return job

    def _requests(self, job: JobRecord, place: Place, facts: JobFacts) -> list[bytes]:
        items = self._store.all_items(job.batch_id, "planned", job_id=job.id)
        return [
            place.form.encode_request(JobRequest(key=item_key(job, item.place), body=item.wire or b"{}"), facts)
            for item in items
        ]

    async def _candidates(
        self, place: Place, job: JobRecord, other_jobs: Collection[str]
    ) -> tuple[list[UpstreamJob], bool]:
        """Return the provider's jobs that may be this one, and whether the list was read as far back as one could be."""
        call, candidates = place.form.jobs(), list[UpstreamJob]()
        for _ in range(_MOST_PAGES):
            page = place.form.decode_page(await self._calls.ask(place, call))
            earliest = job.submitting_at - _SKEW_SECONDS
            recent = [other for other in page.jobs if other.created_at is None or other.created_at >= earliest]
            candidates += [other for other in recent if other.id not in other_jobs]
            if not page.next_path or len(recent) < len(page.jobs):
                return candidates, True
            call = BatchCall(method="GET", path=page.next_path)
        return candidates, False

    async def _by_results(
        self, place: Place, job: JobRecord, candidates: list[UpstreamJob]
    ) -> tuple[UpstreamJob | None, bool]:
        """Return the job whose results bear our ids, and whether one that still runs may be ours."""
        unsure = False
        for candidate in candidates:
            if candidate.count is not None and candidate.count != job.items:
                continue
            if candidate.state == "running":
                unsure = True
            elif await self._has_our_ids(place, job, candidate):
                return candidate, False
        return None, unsure

    async def _has_our_ids(self, place: Place, job: JobRecord, other: UpstreamJob) -> bool:
        for path in other.results:
            lines = self._calls.lines(place, result_call(path))
            try:
                async for line in lines:
                    return place_of_key(job, place.form.decode_reply(line).key) is not None
            finally:
                await lines.aclose()
        return False

    async def _put(self, job: JobRecord) -> JobRecord:
        await asyncio.to_thread(self._store.put_job, job)
        return job


def item_key(job: JobRecord, place: int) -> str:
    """Return our id of an item at its provider: letters, digits, `_` and `-`, at most 64 of them."""
    return f"{job.id}-{place}"


def place_of_key(job: JobRecord, key: str) -> int | None:
    """Return the place of the item that a provider names by our id, or None if it is none of this job."""
    own, _, place = key.rpartition("-")
    return int(place) if own == job.id and place.isascii() and place.isdigit() else None


def _named(problem: BardoError | WrongShape, place: Place) -> BardoError:
    if isinstance(problem, BardoError):
        return problem
    return MalformedReply(f"the answer of {place.provider.id} is no job: {problem}", provider=place.provider.id)


def _refused(job: JobRecord, problem: BardoError, now: float, wait: float, *, may_be_made: bool) -> JobRecord:
    """Return a job whose submission failed: in doubt, to be tried again later, or refused for good."""
    errors, pause = (problem.message,), max(wait, seconds_asked_for(problem))
    if may_be_made:
        return replace(job, state="submitting", errors=errors, due_at=now + pause, failures=job.failures + 1)
    if is_worth_another_try(problem):
        return replace(job, state="ready", errors=errors, due_at=now + pause, failures=job.failures + 1)
    # Where the error is not its provider's, a key or a login is missing, or an address is not allowed.
    word = "refused" if isinstance(problem, ProviderError) else "unsent"
    return replace(job, state="failed", errors=errors, word=word)
