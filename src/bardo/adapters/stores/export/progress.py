"""How far exports have come, in a small JSON file, so that the next one begins where the last ended."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bardo.adapters.stores.log.journal import take_lock
from bardo.adapters.stores.log.problems import ExportFailed


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The last row of an export: its number, and the id of its call, by which another log is told from this one."""

    row_number: int
    request_id: str


class ExportState:
    """The progress of all exports, by their targets."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, target: str) -> Progress | None:
        """Return how far exports to a target have come. Raises ExportFailed where the file cannot be read."""
        return self._load().get(target)

    def put(self, target: str, progress: Progress) -> None:
        """Note how far exports to a target have come; the file is replaced as a whole. Raises ExportFailed."""
        known = {**self._load(), target: progress}
        try:
            number, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
            with os.fdopen(number, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(known), indent=2))
            Path(name).replace(self._path)
        except OSError as problem:
            raise self._problem("written", problem.strerror or str(problem)) from problem

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other exports with the same state waiting for nothing: raises ExportFailed where one is at work."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self._path.with_name(f"{self._path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as problem:
            raise self._problem("written", problem.strerror or str(problem)) from problem
        try:
            if not take_lock(lock):
                raise ExportFailed(
                    f"another export with the state {self._path} is at work", hint="let it end, or name another --state"
                )
            yield
        finally:
            os.close(lock)

    def _load(self) -> dict[str, Progress]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Progress])
        except FileNotFoundError:
            return {}
        except OSError as problem:
            raise self._problem("read", problem.strerror or str(problem)) from problem
        except msgspec.DecodeError as problem:
            raise self._problem("read", str(problem)) from problem

    def _problem(self, done: str, why: str) -> ExportFailed:
        return ExportFailed(
            f"the state of exports {self._path} cannot be {done}: {why}",
            hint="check the file, or name another with --state",
        )
