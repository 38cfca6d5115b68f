"""End a batch: count what became of its items, and write the files of results and errors that OpenAI's clients read."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from bardo.batches.batch_store import BatchStore
from bardo.batches.file_store import PIECE_BYTES, FileStore
from bardo.batches.records import ENDS, BatchRecord, BatchStatus, FileRecord, ItemRecord, result_of
from bardo.dialects.batches.clients import result_line


class Totals(msgspec.Struct):
    """Sums over the items of a batch that have ended."""

    counts: dict[str, int]
    usage: dict[str, int]
    cost_nanos: int = 0
    cost_known: int = 0
    models: set[str] = msgspec.field(default_factory=set)

    def add(self, item: ItemRecord) -> None:
        """Count one item."""
        result = result_of(item)
        self.counts[item.state] = self.counts.get(item.state, 0) + 1
        for name, count in result.usage.items():
            self.usage[name] = self.usage.get(name, 0) + count
        if result.cost_nanos is not None:
            self.cost_nanos += result.cost_nanos
            self.cost_known += 1
        if result.model and len(self.models) < 2:
            self.models.add(result.model)


class OutputWriter:
    """Writes the files of a batch's results. Blocks."""

    def __init__(self, store: BatchStore, files: FileStore, *, retention_seconds: float) -> None:
        self._store = store
        self._files = files
        self._retention = retention_seconds

    def write(self, batch: BatchRecord, now: float) -> BatchRecord:
        """Write what a batch's client reads, and return the batch with its totals. A second run writes the same files anew."""
        totals = Totals(counts={}, usage={})
        if batch.input_file_id:
            outputs = self._write_file(batch, "output", self._lines(batch, totals, good=True), now)
            errors = self._write_file(batch, "error", self._lines(batch, totals, good=False), now)
        else:
            outputs = errors = ""
            for item in self._store.all_items(batch.id, *ENDS):
                totals.add(item)
        return replace(
            batch,
            output_file_id=outputs,
            error_file_id=errors,
            counts=totals.counts,
            usage=totals.usage,
            cost_nanos=totals.cost_nanos,
            cost_known=totals.cost_known,
            model=next(iter(totals.models)) if len(totals.models) == 1 else "",
        )

    def _lines(self, batch: BatchRecord, totals: Totals, *, good: bool) -> Iterator[bytes]:
        states = ("succeeded",) if good else tuple(state for state in ENDS if state != "succeeded")
        for item in self._store.all_items(batch.id, *states):
            totals.add(item)
            result = result_of(item)
            yield result_line(
                request_id=result.request_id,
                custom_id=item.custom_id,
                status=result.status,
                body=result.body,
                code=result.code,
                message=result.message,
                bardo=result.bardo,
            )

    def _write_file(self, batch: BatchRecord, kind: str, lines: Iterator[bytes], now: float) -> str:
        """Write a file, and return its id; empty where there is nothing to write."""
        held, place, size = bytearray(), 0, 0
        file: FileRecord | None = None
        for line in lines:
            if file is None:
                file = self._begin(batch, kind, now)
            held += line
            size += len(line)
            while len(held) >= PIECE_BYTES:
                self._files.add(file.id, place, bytes(held[:PIECE_BYTES]))
                del held[:PIECE_BYTES]
                place += 1
        if file is not None:
            self._files.add(file.id, place, bytes(held))
            self._files.finish(replace(file, state="ready", size=size))
        return "" if file is None else file.id

    def _begin(self, batch: BatchRecord, kind: str, now: float) -> FileRecord:
        file_id = f"file-{kind}-{batch.id.rpartition('_')[2]}"
        self._files.remove(batch.tenant, file_id)
        file = FileRecord(
            id=file_id,
            tenant=batch.tenant,
            state="uploading",
            purpose="batch_output",
            name=f"{batch.id}_{kind}.jsonl",
            size=0,
            created_at=now,
            expires_at=now + (batch.output_seconds or self._retention),
        )
        self._files.begin(file)
        return file


def last_status(batch: BatchRecord) -> BatchStatus:
    """Return how a batch ends whose items have all ended and are counted."""
    if "cancelling" in batch.times:
        return "cancelled"
    return "expired" if batch.counts.get("expired") else "completed"
