"""The base of all simulated batch APIs: jobs that end after they were polled a few times."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from bardo.simulators import marks
from bardo.simulators.exchange import Incoming, Refusal, Reply
from bardo.simulators.fields import Fields

Play = Callable[[Incoming, str, Fields], tuple[int, Fields]]
"""Has the model answer one request, whose path is below the base path: the status and the body of the answer."""


@dataclass
class Item:
    """One request of a job: the client's id, the path it is for, and its body; then what came of it."""

    key: str
    path: str
    body: Fields
    outcome: str = ""
    status: int = 200
    reply: Fields = field(default_factory=dict)


@dataclass
class Job:
    """One job. `poll_count` counts how often its client asked how far it is. `about` are the fields that only its API has."""

    id: str
    created: int
    items: list[Item]
    about: Fields
    incoming: Incoming
    poll_count: int = 0
    state: str = "new"
    canceled: bool = False
    ended: int | None = None
    errors: list[Fields] = field(default_factory=list)


class BatchServer(ABC):
    """The jobs of one provider, and what a test may change of how they go.

    A job ends when it was asked for `polls` times. `expired` are the places of the items that come to their time's end before they are
    sent. `lost` are those that no result is given for. `in_order` False gives results in another order than that of the requests.
    `refused` refuses each job as a whole. `holds`: no job ends before this is False again.
    """

    def __init__(self, play: Play) -> None:
        self.polls = 2
        self.expired: set[int] = set()
        self.lost: set[int] = set()
        self.in_order = False
        self.refused = ""
        self.holds = False
        self.jobs: dict[str, Job] = {}
        self._play = play
        self._made = 0

    @abstractmethod
    def answer(self, incoming: Incoming, path: str) -> Reply | None:
        """Answer a request at a path below the base path, or None if it is not about files or jobs."""

    def new_id(self, prefix: str) -> str:
        """Return a unique id."""
        self._made += 1
        return f"{prefix}{marks.token(f'batch/{self._made}/{time.time_ns()}', 24)}"

    def add(self, prefix: str, items: list[Item], about: Fields, incoming: Incoming) -> Job:
        """Begin a job."""
        job = Job(self.new_id(prefix), int(time.time()), items, about, incoming)
        self.jobs[job.id] = job
        return job

    def find(self, job_id: str) -> Job:
        """Return a job. Raises Refusal."""
        if job_id not in self.jobs:
            raise Refusal("bad_value", f"No batch found with id '{job_id}'.", status=404)
        return self.jobs[job_id]

    def ask(self, job: Job) -> Job:
        """Advance a job by one step, as its client polls it."""
        job.poll_count += 1
        if job.state in ("failed", "ended") or (self.holds and not job.canceled):
            return job
        job.state = "running"
        if job.canceled or job.poll_count >= self.polls:
            self._end(job)
        return job

    def cancel(self, job: Job) -> Job:
        """Cancel a job: requests that were not sent yet are never sent."""
        if job.state in ("failed", "ended"):
            raise Refusal("bad_value", f"Cannot cancel a batch with status '{job.state}'.", status=409)
        job.canceled = True
        return job

    def _end(self, job: Job) -> None:
        job.state, job.ended = "ended", int(time.time())
        for index, item in enumerate(job.items):
            if job.canceled and index >= len(job.items) // 2:
                item.outcome = "canceled"
            elif index in self.expired:
                item.outcome = "expired"
            else:
                item.status, item.reply = self._play(job.incoming, item.path, item.body)
                item.outcome = "succeeded" if item.status < 300 else "errored"

    def results(self, job: Job) -> list[Item]:
        """Return the items with their results, in the order in which the API returns them."""
        kept = [item for index, item in enumerate(job.items) if index not in self.lost]
        return kept if self.in_order else kept[::-1]
