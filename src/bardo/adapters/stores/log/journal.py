"""The call journal: which calls have been sent, in an append-only file that survives the death of the process.

A call is noted before it is sent and again with its row when it has ended, each with one small write into the page cache of the operating
system: a killed process loses nothing of it, a power cut may. What the database has stored is forgotten here, and a file that has
grown is written anew with what is left. A process that starts, or runs on, drains the files of those that died: `recovery.py`.

A file belongs to the process that holds its lock, which the operating system lets go of at its death.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from bardo.adapters.stores.log.row import LogRow, PendingCall, RunningUsage
from bardo.adapters.stores.log.stored import LONGEST_NAME, mended_text, to_json

MOST_BYTES = 4 * 1024 * 1024
"""A file that is larger, and holds mostly what is stored by now, is written anew."""
LONGEST_ROW = 64 * 1024
"""Bytes of an ended call; of a longer one the JSON columns are left out here."""
SUFFIX = ".journal"
SECONDS_BETWEEN_WARNINGS = 60.0

logger = logging.getLogger("bardo.log")
_encode = msgspec.json.Encoder(enc_hook=repr).encode


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
        """Forget calls that are stored, or that nobody will store."""
        with self._lock:
            for request_id in request_ids:
                self._settled += len(self._pending.pop(request_id, b""))
            if self._size > MOST_BYTES:
                self._write_anew()

    def close(self) -> None:
        """Remove the file, unless it holds what is stored nowhere else."""
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
        path = self._folder / f"{os.getpid()}-{secrets.token_hex(6)}{SUFFIX}"
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        if not take_lock(self._file):
            logger.warning("the journal %s cannot be locked: another process may take its calls for lost", path)
        self._path, self._size = path, 0

    def _write_anew(self) -> None:
        """Go on in a new file with what is not stored yet. Dying between the two leaves both, and calls are told apart by their ids."""
        if self._settled * 2 < self._size:
            return
        kept = b"".join(self._pending.values())
        old_file, old_path, old_size = self._file, self._path, self._size
        try:
            self._open()
            self._put(kept)
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
    """Make an open file this process's own. `False` where another process holds it, or nobody can say."""
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
        # A place far behind the end: other processes can read what is before it.
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
    return line if len(line) <= LONGEST_ROW else _encode(_fields(row, without=_JSON))


def _fields(row: LogRow, without: tuple[str, ...] = ()) -> dict[str, Any]:
    return {name: _storable(value) for name, value in msgspec.structs.asdict(row).items() if name not in without}


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return mended_text(value, LONGEST_NAME)
    return value if isinstance(value, int | float | bool | None) else msgspec.Raw(to_json(value).encode())


_JSON = ("usage_raw", "degraded", "receipt", "route", "attempt_records", "pipeline")
