"""Take over the calls of processes that died: read their journals, and store what the database does not have.

A journal of a living process is locked, and left alone. Who only reads the log reads the journals too, and moves nothing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from bardo.adapters.stores.log.journal import SUFFIX, is_locked, take_lock
from bardo.adapters.stores.log.problems import RowsRefused
from bardo.adapters.stores.log.row import LogRow, PendingCall, RunningUsage
from bardo.values.cost import nanos_of, usd

_MOST_BYTES = 1 << 30
_LONGEST_LINE = 1 << 20
_ROWS_AT_ONCE = 500
_LARGEST_COST = 9_000_000
"""Dollars whose nano-dollars every reader of JSON holds exactly."""
LOST = "ProcessEnded"
"""The error class of a call whose end nobody saw."""
_WHY = "the process ended before the call did: what it cost is not known"
_WHY_COUNTED = "the process ended before the call did: its cost is that of what had come of it"
_WHY_ESTIMATED = "the process ended before the call did: its cost is estimated from what was sent"

logger = logging.getLogger("bardo.log")
_begun = msgspec.json.Decoder(PendingCall)
_grew = msgspec.json.Decoder(tuple[str, int, int, int | None, dict[str, int] | None])
_ended = msgspec.json.Decoder(LogRow)


@runtime_checkable
class RecoveringStore(Protocol):
    """What recovery needs of a store."""

    name: str

    def append(self, rows: Sequence[LogRow]) -> None: ...

    def stored(self, request_ids: Sequence[str]) -> frozenset[str]:
        """Return which of these calls have a row. Raises StoreUnavailable."""
        ...


def recover(folder: Path, store: RecoveringStore, *, own: Path | None = None) -> int:
    """Store the calls of every journal in `folder` that nobody holds, remove those files, and return how many rows were stored.

    Raises StoreUnavailable, and leaves the files then.
    """
    count = 0
    for path in _journals(folder):
        if path != own:
            count += _recover_one(path, store)
    return count


def waiting_calls(folder: Path) -> list[LogRow]:
    """Return the calls that the journals in `folder` hold, in order of their beginning, without the open calls of living processes."""
    rows: dict[str, LogRow] = {}
    for path in _journals(folder):
        try:
            file = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
        except OSError:
            continue  # Its calls were stored meanwhile, or it is another user's.
        try:
            # One that is empty is just being made: its process is about to lock it.
            lives = os.fstat(file).st_size == 0 or is_locked(file)
            for row in read_journal(_lines(file))[0]:
                before = rows.get(row.request_id)
                if (before is None or before.error_class == LOST) and not (lives and row.error_class == LOST):
                    rows[row.request_id] = row
        finally:
            os.close(file)
    return sorted(rows.values(), key=lambda row: row.started_at)


def _journals(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
    except OSError:
        return []  # No journal was ever written here.


def _recover_one(path: Path, store: RecoveringStore) -> int:
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return 0  # Another process was quicker.
    try:
        if not take_lock(file) or not _is_still(path, file):
            return 0
        rows, unread = read_journal(_lines(file))
        stored = _store_missing(rows, store)
        path.unlink(missing_ok=True)
    finally:
        os.close(file)
    if stored or unread:
        text = "%d calls of a process that ended early are in the inference log at %s now; %d records could not be read"
        logger.warning(text, stored, store.name, unread)
    return stored


def _is_still(path: Path, file: int) -> bool:
    """Return whether the file that was opened is the one that stands there: who was quicker may have removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except OSError:
        return False


def _lines(file: int) -> Iterator[bytes]:
    with os.fdopen(os.dup(file), "rb") as reader:
        reader.seek(0)
        read = 0
        while read < _MOST_BYTES and (line := reader.readline(_LONGEST_LINE)):
            read += len(line)
            yield line


def read_journal(lines: Iterable[bytes]) -> tuple[list[LogRow], int]:
    """Return a row for each call, in order of their beginning, and how many records could not be read."""
    rows: dict[str, LogRow] = {}
    ended: set[str] = set()
    unread = 0
    for line in lines:
        try:
            row = _grown(line, rows, ended) if line.startswith(b"g ") else _row(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
            unread += 1
            continue
        if row is None or (row.request_id in ended and not line.startswith(b"e ")):
            continue
        rows[row.request_id] = row
        if line.startswith(b"e "):
            ended.add(row.request_id)
    return list(rows.values()), unread


def _row(line: bytes) -> LogRow | None:
    if not line.strip():
        return None
    if line.startswith(b"b "):
        call = _begun.decode(line[2:])
        known: Mapping[str, object] = msgspec.structs.asdict(call)
        row = LogRow(**known, outcome="broken", error_class=LOST, error_message=_WHY)  # type: ignore[arg-type]
        if call.cost_nanos is None:
            return row
        return msgspec.structs.replace(
            row, cost_usd=usd(call.cost_nanos), tokens_approx=True, error_message=_WHY_ESTIMATED
        )
    if line.startswith(b"e "):
        return _with_exact_cost(_ended.decode(line[2:]))
    raise ValueError("no record of a journal")


def _grown(line: bytes, rows: Mapping[str, LogRow], ended: set[str]) -> LogRow | None:
    """Return the row of a call with what it had used by this record; None where its end is known, or its beginning is not."""
    request_id, used = (fields := _grew.decode(line[2:]))[0], RunningUsage(*fields[1:])
    row = rows.get(request_id)
    if row is None or request_id in ended:
        return None
    cost = (
        {} if used.nanos is None else {"cost_usd": usd(used.nanos), "cost_nanos": used.nanos, "cost_parts": used.parts}
    )
    return msgspec.structs.replace(
        row,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        tokens_approx=True,
        error_message=_WHY_COUNTED,
        **cost,
    )


def _with_exact_cost(row: LogRow) -> LogRow:
    """Return the row with its exact cost, where it tells it in dollars alone, as journals of earlier versions do."""
    if row.cost_nanos is None and row.cost_usd is not None and 0 <= row.cost_usd <= _LARGEST_COST:
        return msgspec.structs.replace(row, cost_nanos=nanos_of(row.cost_usd))
    return row


def _store_missing(rows: Sequence[LogRow], store: RecoveringStore) -> int:
    count = 0
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        batch = rows[begin : begin + _ROWS_AT_ONCE]
        stored = store.stored([row.request_id for row in batch])
        missing = [row for row in batch if row.request_id not in stored]
        if missing:
            count += _append(missing, store)
    return count


def _append(rows: Sequence[LogRow], store: RecoveringStore) -> int:
    try:
        store.append(rows)
    except RowsRefused as problem:
        if len(rows) == 1:
            logger.error("the row of request %s cannot be logged: %s", rows[0].request_id, problem.message)
            return 0
        return sum(_append([row], store) for row in rows)
    return len(rows)
