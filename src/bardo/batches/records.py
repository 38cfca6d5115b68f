"""The stored rows of batches (files, their lines in pieces, batches, items, and the jobs at providers), and how long to wait for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from bardo.adapters.config.accounts import Account
from bardo.dialects.batches.clients import LineProblem
from bardo.planning.model_names import ThinkingRules


class LongLine(Exception):
    """A line is longer than one may be; `number` counts from 1."""

    def __init__(self, number: int) -> None:
        super().__init__(f"line {number} is too long")
        self.number = number


def split_lines(pieces: Iterable[bytes], longest: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file that is given in pieces, with their numbers from 1. Raises LongLine; empty lines are passed over."""
    held: list[bytes] = []
    size = number = 0
    for piece in pieces:
        *whole, rest = piece.split(b"\n")
        for end in whole:
            number += 1
            line = b"".join([*held, end])
            held, size = [], 0
            if len(line) > longest:
                raise LongLine(number)
            if line.strip():
                yield number, line
        held.append(rest)
        size += len(rest)
        if size > longest:
            raise LongLine(number + 1)
    line = b"".join(held)
    if line.strip():
        yield number + 1, line


def pause_before(polls: int, *, first: float, most: float, chance: float) -> float:
    """Return how many seconds to wait before something is asked for again: half as long again each time, give or take a quarter."""
    return min(most, first * 1.5 ** min(polls, 30)) * (0.75 + chance / 2)


FileState = Literal["uploading", "ready"]
BatchStatus = Literal[
    "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
]
OVER: tuple[BatchStatus, ...] = ("failed", "completed", "expired", "cancelled")
ItemState = Literal["new", "planned", "local", "running", "succeeded", "errored", "canceled", "expired"]
"""Planned: it belongs to a job at a provider. Local: bardo sends it by itself; running: it was sent. The others are ends."""
ENDS: tuple[ItemState, ...] = ("succeeded", "errored", "canceled", "expired")
JobState = Literal["open", "ready", "submitting", "submitted", "ended", "collected", "failed", "lost"]
"""Open: items are still added. Submitting: its creation was or is being sent. Lost: it is unknown whether it was made."""


class FileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One file. Times are Unix time; it is gone after `expires_at`, None is never."""

    id: str
    tenant: str
    state: FileState
    purpose: str
    name: str
    size: int
    created_at: float
    expires_at: float | None = None


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One batch.

    `endpoint` is the path whose requests it holds. `account` is the key that pays, and `rules` what holds for the thinking of its key;
    `headers` are the headers of the request that made it, as far as they are about its items. `times` are when it came to each status.
    `counts` are items by their ends, `usage` tokens by kind, and `cost_nanos` the known cost, of `cost_known` items.
    """

    id: str
    tenant: str
    dialect: str
    endpoint: str
    created_at: float
    expires_at: float
    status: BatchStatus = "validating"
    window: str = "24h"
    metadata: dict[str, str] | None = None
    input_file_id: str = ""
    output_file_id: str = ""
    error_file_id: str = ""
    output_seconds: int | None = None
    account: Account | None = None
    rules: tuple[ThinkingRules, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    errors: tuple[LineProblem, ...] = ()
    times: dict[str, float] = {}
    total: int = 0
    counts: dict[str, int] = {}
    usage: dict[str, int] = {}
    cost_nanos: int = 0
    cost_known: int = 0
    model: str = ""

    @property
    def key_id(self) -> str | None:
        """The id of the key that pays, or None if no keys are asked for."""
        return None if self.account is None else self.account.id

    @property
    def over(self) -> bool:
        """Whether nothing will change any more."""
        return self.status in OVER

    def came_to(self, status: BatchStatus, now: float) -> BatchRecord:
        """Return the batch with a new status."""
        return msgspec.structs.replace(self, status=status, times={**self.times, status: now})


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One job at a provider, with the requests of a batch that go to one model by one path.

    `dialect` is that of the endpoint that was planned for. `polls` counts how often it was asked for since something changed, `failures`
    how often in a row that went wrong. `reserved_nanos` is what its items may cost, as far as that is known.
    """

    id: str
    batch_id: str
    provider: str
    model: str
    dialect: str
    path: str
    form: str
    headers: dict[str, str] = {}
    key: str = ""
    state: JobState = "open"
    items: int = 0
    size: int = 0
    file_id: str = ""
    upstream_id: str = ""
    word: str = ""
    results: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    submitting_at: float = 0.0
    submitted_at: float = 0.0
    due_at: float = 0.0
    polls: int = 0
    failures: int = 0
    submissions: int = 0
    reserved_nanos: int = 0
    cancel_sent: bool = False


class ItemResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one item: a body in the client's dialect, and beside it bardo's report on the call.

    `status` is None if there was no reply; `code` and `message` say why then.
    """

    request_id: str = ""
    status: int | None = None
    body: msgspec.Raw = msgspec.Raw(b"null")
    code: str = ""
    message: str = ""
    bardo: dict[str, Any] = {}
    usage: dict[str, int] = {}
    cost_nanos: int | None = None
    model: str = ""


class ItemRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a batch: its place from 0, the client's own id of it, and its body as the client wrote it.

    `layers` is what the pipeline's layers need when its reply comes.
    """

    batch_id: str
    place: int
    custom_id: str
    body: bytes
    state: ItemState = "new"
    job_id: str | None = None
    wire: bytes | None = None
    result: bytes | None = None
    log_row: bytes | None = None
    layers: bytes | None = None


_decode_result = msgspec.json.Decoder(ItemResult).decode


def result_of(item: ItemRecord) -> ItemResult:
    """Return what became of an item that has ended."""
    assert item.state in ENDS, item.state
    return _decode_result(item.result or b"{}")
