"""Keep files in pieces in the state database: no whole file is ever in memory, and every process of a gateway sees them.

Loads SQLAlchemy: import it where batches are opened, and nowhere above.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from sqlalchemy import ColumnElement, Engine, Row, delete, func, insert, or_, select, update

from bardo.adapters.stores.database.engines import transaction
from bardo.batches.records import FileRecord
from bardo.batches.schema import batch_file_pieces as pieces
from bardo.batches.schema import batch_files as files

PIECE_BYTES = 256 * 1024
# An upload that did not end by then never will: the process that took it is gone.
_UPLOAD_SECONDS = 24 * 3600.0


class FileStore:
    """The files of all tenants. Every method is a transaction of its own, blocks, and raises DatabaseUnusable where that fails."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, file: FileRecord) -> None:
        """Begin a file, which is invisible until it is finished."""
        with transaction(self._engine) as connection:
            connection.execute(insert(files), msgspec.structs.asdict(file))

    def add(self, file_id: str, place: int, data: bytes) -> None:
        """Add a piece, unless the file was removed: whoever uploads may leave while a piece is on its way."""
        with transaction(self._engine) as connection:
            if connection.scalar(select(files.c.id).where(files.c.id == file_id)) is not None:
                connection.execute(insert(pieces), {"file_id": file_id, "place": place, "data": data})

    def finish(self, file: FileRecord, *, most: int | None = None) -> bool:
        """Show a finished file to its tenant, and return whether all files of the tenant fit into `most` bytes."""
        shown = select(func.coalesce(func.sum(files.c.size), 0)).where(
            files.c.tenant == file.tenant, files.c.state == "ready", files.c.id != file.id
        )
        with transaction(self._engine) as connection:
            if most is not None and int(connection.scalar(shown) or 0) + file.size > most:
                return False
            connection.execute(update(files).where(files.c.id == file.id).values(**msgspec.structs.asdict(file)))
        return True

    def find(self, tenant: str, file_id: str, now: float) -> FileRecord | None:
        """Return a tenant's file, or None if there is none, or no longer."""
        wanted = select(files).where(files.c.id == file_id, files.c.tenant == tenant, files.c.state == "ready")
        with transaction(self._engine) as connection:
            row = connection.execute(wanted.where(_alive(now))).first()
        return None if row is None else _record(row)

    def listed(
        self, tenant: str, now: float, *, purpose: str, limit: int, after: FileRecord | None, newest_first: bool
    ) -> list[FileRecord]:
        """Return a page of a tenant's files, one more than `limit` where there are more."""
        wanted = select(files).where(files.c.tenant == tenant, files.c.state == "ready", _alive(now))
        if purpose:
            wanted = wanted.where(files.c.purpose == purpose)
        place, names = (files.c.created_at, files.c.id), (after.created_at, after.id) if after is not None else None
        if names is not None:
            earlier = (place[0] < names[0]) | ((place[0] == names[0]) & (place[1] < names[1]))
            later = (place[0] > names[0]) | ((place[0] == names[0]) & (place[1] > names[1]))
            wanted = wanted.where(earlier if newest_first else later)
        order = [column.desc() if newest_first else column.asc() for column in place]
        with transaction(self._engine) as connection:
            return [_record(row) for row in connection.execute(wanted.order_by(*order).limit(limit + 1))]

    def remove(self, tenant: str, file_id: str) -> bool:
        """Remove a tenant's file, and return whether there was one."""
        with transaction(self._engine) as connection:
            count = connection.execute(delete(files).where(files.c.id == file_id, files.c.tenant == tenant)).rowcount
            if count:
                connection.execute(delete(pieces).where(pieces.c.file_id == file_id))
        return bool(count)

    def pieces(self, file_id: str) -> Iterator[bytes]:
        """Yield a file's pieces in order, each read when it is asked for."""
        place = 0
        while (data := self.piece(file_id, place)) is not None:
            yield data
            place += 1

    def piece(self, file_id: str, place: int) -> bytes | None:
        """Return one piece; None behind the last."""
        wanted = select(pieces.c.data).where(pieces.c.file_id == file_id, pieces.c.place == place)
        with transaction(self._engine) as connection:
            data: bytes | None = connection.scalar(wanted)
        return None if data is None else bytes(data)

    def size_of(self, tenant: str) -> int:
        """Return how many bytes a tenant's files have together, those that are being uploaded included."""
        own = select(files.c.id).where(files.c.tenant == tenant)
        wanted = select(func.coalesce(func.sum(func.length(pieces.c.data)), 0)).where(pieces.c.file_id.in_(own))
        with transaction(self._engine) as connection:
            return int(connection.scalar(wanted) or 0)

    def expire(self, now: float) -> None:
        """Remove expired files, and uploads that never ended."""
        never = (files.c.state == "uploading") & (files.c.created_at < now - _UPLOAD_SECONDS)
        with transaction(self._engine) as connection:
            gone = list(connection.scalars(select(files.c.id).where(or_(files.c.expires_at <= now, never))))
            for begin in range(0, len(gone), 100):
                some = gone[begin : begin + 100]
                connection.execute(delete(pieces).where(pieces.c.file_id.in_(some)))
                connection.execute(delete(files).where(files.c.id.in_(some)))


def _alive(now: float) -> ColumnElement[bool]:
    return or_(files.c.expires_at.is_(None), files.c.expires_at > now)


def _record(row: Row[tuple[object, ...]]) -> FileRecord:
    return msgspec.convert({str(name): value for name, value in row._mapping.items()}, FileRecord)
