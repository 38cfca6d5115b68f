"""The call journal: which calls have been sent, in an append-only file that survives the death of the process.

A call is noted before it is sent and again with its row when it has ended, each with one small write into the page cache of the operating
system: a killed process loses nothing of it, a power cut may. What the database has stored is forgotten here, and a file that has grown is
written anew with the remaining calls. A process that starts, or runs on, stores what the files of those that died hold, where the database
does not have it.

A file belongs to the process that holds its lock, which the operating system lets go of at its death. Who only reads the log reads
the journals too, and moves nothing.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from bardo.adapters.stores.database.problems import RowsRefused
from bardo.adapters.stores.log.row import LONGEST_NAME, LogRow, PendingCall, RunningUsage, mended_text, to_json
from bardo.values.usage import nanos_of, usd

MOST_BYTES = 4 * 1024 * 1024
"""A file that is larger, and holds mostly stored calls, is written anew."""
LONGEST_ROW = 64 * 1024
"""Bytes of an ended call; of a longer one the JSON columns are left out here."""
SUFFIX = ".journal"
SECONDS_BETWEEN_WARNINGS = 60.0

logger = logging.getLogger("bardo.log")
_encode = msgspec.json.Encoder(enc_hook=repr).encode
_JSON_COLUMNS = ("usage_raw", "degraded", "receipt", "route", "attempt_records", "pipeline")
_MOST_BYTES_READ = 1 << 30
_TRIES_TO_LOCK = 5
_LONGEST_LINE = 1 << 20
_ROWS_AT_ONCE = 500
_LARGEST_COST = 9_000_000
"""Dollars whose nano-dollars every reader of JSON holds exactly."""
LOST = "ProcessEnded"
"""The error class of a call whose end is unknown."""
_WHY = "the process ended before the call did: what it cost is not known"
_WHY_COUNTED = "the process ended before the call did: its cost is that of what had come of it"
_WHY_ESTIMATED = "the process ended before the call did: its cost is estimated from what was sent"

_begun = msgspec.json.Decoder(PendingCall)
_grew = msgspec.json.Decoder(tuple[str, int, int, int | None, dict[str, int] | None])
_ended = msgspec.json.Decoder(LogRow)


class CallJournal:
    """The journal of this process, in `folder`. Any thread may call; nothing here raises for a disk that fails."""

    def __init__(self, folder: Path, *, write: Callable[[int, bytes], int] = os.write) -> None:
        self._folder = folder
        self._write_bytes = write
        self._lock = threading.Lock()
        self._pending: dict[str, bytes] = {}
        self._settled = 0
        """Bytes of the file that belong to calls which are stored."""
        self._path: Path | None = None
        self._file = -1
        self._size = 0
        self._failing = False
        self._warned_at = -SECONDS_BETWEEN_WARNINGS
        self._closed = False

    @property
    def folder(self) -> Path:
        """Where journals of this log are."""
        return self._folder

    @property
    def path(self) -> Path | None:
        """The file of this process, once there is one."""
        return self._path

    @property
    def works(self) -> bool:
        """Whether the last record could be written."""
        return self._file >= 0 and not self._failing

    def begin(self, call: PendingCall) -> None:
        """Note a call that is about to be sent."""
        self._append(call.request_id, b"b " + _encode(call) + b"\n")

    def grow(self, request_id: str, used: RunningUsage) -> None:
        """Note what a call has used that was begun and has not ended. The latest note counts."""
        self._append(request_id, b"g " + _encode([request_id, *used]) + b"\n", is_begun=True)

    def end(self, row: LogRow) -> None:
        """Note how a call ended, without what was asked and answered."""
        self._append(row.request_id, b"e " + _encode_row(row) + b"\n")

    def settle(self, request_ids: Iterable[str]) -> None:
        """Forget calls that are stored, or that will not be."""
        with self._lock:
            for request_id in request_ids:
                self._settled += len(self._pending.pop(request_id, b""))
            if self._size > MOST_BYTES:
                self._write_anew()

    def close(self) -> None:
        """Remove the file, unless it holds calls that are stored nowhere else."""
        with self._lock:
            self._closed = True
            if self._path is not None and not self._pending:
                self._path.unlink(missing_ok=True)
            self._let_go()

    def abandon(self) -> None:
        """Let go of the file in a forked child: it is the parent's."""
        self._lock = threading.Lock()
        self._closed = True
        self._let_go()

    def _append(self, request_id: str, line: bytes, *, is_begun: bool = False) -> None:
        with self._lock:
            before = self._pending.get(request_id)
            if self._closed or (is_begun and before is None):
                return
            self._pending[request_id] = line if before is None else before + line
            try:
                if self._file < 0:
                    self._open()
                if self._failing:
                    # What a full disk cut short must not spoil the next record.
                    self._put(b"\n" + line)
                    self._recovered()
                else:
                    self._put(line)
            except OSError as problem:
                self._failed(problem)

    def _put(self, data: bytes) -> None:
        written = self._write_bytes(self._file, data)
        self._size += written
        if written != len(data):
            raise OSError("the disk is full")

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for tries_left in reversed(range(_TRIES_TO_LOCK)):
            path = self._folder / f"{os.getpid()}-{secrets.token_hex(6)}{SUFFIX}"
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
            if take_lock(file) and _is_still(path, file):
                break
            # Whoever looks for journals of dead processes may have found it before it was locked, and has removed it then.
            if tries_left:
                os.close(file)
                path.unlink(missing_ok=True)
            else:
                logger.warning("the journal %s cannot be locked: another process may take its calls for lost", path)
        self._file, self._path, self._size = file, path, 0

    def _write_anew(self) -> None:
        """Go on in a new file with the calls that are not stored yet. Dying between the two leaves both; their ids tell calls apart."""
        if self._settled * 2 < self._size:
            return
        lines = b"".join(self._pending.values())
        old_file, old_path, old_size = self._file, self._path, self._size
        try:
            self._open()
            self._put(lines)
        except OSError as problem:
            self._drop_half_written(old_file, old_path, old_size)
            self._failed(problem)
            return
        self._settled = 0
        if old_path is not None:
            old_path.unlink(missing_ok=True)
        os.close(old_file)

    def _drop_half_written(self, old_file: int, old_path: Path | None, old_size: int) -> None:
        if self._file not in (old_file, -1):
            os.close(self._file)
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        self._file, self._path, self._size = old_file, old_path, old_size

    def _let_go(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _failed(self, problem: OSError) -> None:
        self._failing = True
        now = time.monotonic()
        if now - self._warned_at >= SECONDS_BETWEEN_WARNINGS:
            self._warned_at = now
            text = "the call journal in %s cannot be written (%s): calls go on, and a kill would lose their rows"
            logger.error(text, self._folder, problem.strerror or problem)

    def _recovered(self) -> None:
        self._failing = False
        logger.warning("the call journal in %s is written again", self._folder)


def journal_folder(path: str | Path) -> Path:
    """Return where the journals of a log are: beside its file, and for a database elsewhere in this machine's data folder."""
    if isinstance(path, str) and "://" in path:
        home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
        digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return Path(home) / "bardo" / f"calls-{digest}"
    return Path(path).absolute().with_name(f"{Path(path).name}.calls")


def take_lock(file: int) -> bool:
    """Make an open file this process's own. Return False if another process holds it, or this is unknown."""
    try:
        import fcntl
    except ImportError:  # Windows
        return _take_lock_of_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_locked(file: int) -> bool:
    """Return whether an open file belongs to a process that lives. It is locked for that only as long as the question takes."""
    try:
        import fcntl
    except ImportError:  # Windows: closing the file lets go of the lock.
        return not _take_lock_of_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


def _take_lock_of_windows(file: int) -> bool:
    import msvcrt  # type: ignore[unused-ignore, import-not-found]

    try:
        # A place far behind the end: other processes can read the bytes before it.
        os.lseek(file, 2**40, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        os.lseek(file, 0, os.SEEK_SET)
    except OSError:
        return False
    return True


def _encode_row(row: LogRow) -> bytes:
    if row.request_content is not None or row.reply_content is not None:
        row = msgspec.structs.replace(row, request_content=None, reply_content=None, sent_content=None)
    try:
        line = _encode(row)
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
        # A lone surrogate, or a value that no JSON can hold.
        line = _encode(_fields(row))
    return line if len(line) <= LONGEST_ROW else _encode(_fields(row, without=_JSON_COLUMNS))


def _fields(row: LogRow, without: tuple[str, ...] = ()) -> dict[str, Any]:
    return {name: _storable(value) for name, value in msgspec.structs.asdict(row).items() if name not in without}


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return mended_text(value, LONGEST_NAME)
    return value if isinstance(value, int | float | bool | None) else msgspec.Raw(to_json(value).encode())


@runtime_checkable
class RecoveringStore(Protocol):
    """The part of a store that recovery needs."""

    name: str

    def append(self, rows: Sequence[LogRow]) -> None: ...

    def stored(self, request_ids: Sequence[str]) -> frozenset[str]:
        """Return which of these calls have a row. Raises StoreUnavailable."""
        ...


def recover(folder: Path, store: RecoveringStore, *, own: Path | None = None) -> int:
    """Store the calls of every journal in `folder` that no process holds, remove those files, and return how many rows were stored.

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
        while read < _MOST_BYTES_READ and (line := reader.readline(_LONGEST_LINE)):
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
        fields: Mapping[str, object] = msgspec.structs.asdict(call)
        row = LogRow(**fields, outcome="broken", error_class=LOST, error_message=_WHY)  # type: ignore[arg-type]
        if call.cost_nanos is None:
            return row
        return msgspec.structs.replace(
            row, cost_usd=usd(call.cost_nanos), tokens_approx=True, error_message=_WHY_ESTIMATED
        )
    if line.startswith(b"e "):
        return _with_exact_cost(_ended.decode(line[2:]))
    raise ValueError("no record of a journal")


def _grown(line: bytes, rows: Mapping[str, LogRow], ended: set[str]) -> LogRow | None:
    """Return the row of a call with what it had used by this record, or None if its end is known, or its beginning is not."""
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
