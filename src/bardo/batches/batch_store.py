"""Keep batches, their items and jobs in the state database. Which process works at a batch is a lease in its row.

Loads SQLAlchemy: import it where batches are opened, and nowhere above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, case, delete, func, insert, select, update

from bardo.adapters.stores.database.engines import transaction
from bardo.batches.records import BatchRecord, ItemRecord, ItemState, JobRecord
from bardo.batches.schema import batch_items as items
from bardo.batches.schema import batch_jobs as jobs
from bardo.batches.schema import batches

_decode_batch = msgspec.json.Decoder(BatchRecord).decode
_decode_job = msgspec.json.Decoder(JobRecord).decode
_ITEM_COLUMNS = ItemRecord.__struct_fields__


class BatchStore:
    """The batches of all tenants. Every method is a transaction of its own, blocks, and raises DatabaseUnusable where that fails."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # Batches

    def add(self, batch: BatchRecord, new_items: Sequence[ItemRecord] = ()) -> None:
        """Add a batch, with the items that are known already."""
        row = {
            "id": batch.id,
            "tenant": batch.tenant,
            "dialect": batch.dialect,
            "created_at": batch.created_at,
            "owner": "",
            "lease_until": 0.0,
        }
        with transaction(self._engine) as connection:
            connection.execute(insert(batches), {**row, **_state_of(batch), "due_at": 0.0})
            _insert_items(connection, new_items)

    def find(self, tenant: str, batch_id: str, dialect: str) -> BatchRecord | None:
        """Return a tenant's batch, where its client speaks the dialect it was made in."""
        wanted = select(batches.c.record).where(
            batches.c.id == batch_id, batches.c.tenant == tenant, batches.c.dialect == dialect
        )
        with transaction(self._engine) as connection:
            record = connection.scalar(wanted)
        return None if record is None else _decode_batch(record)

    def get(self, batch_id: str) -> BatchRecord | None:
        """Return a batch, whoever's it is."""
        with transaction(self._engine) as connection:
            record = connection.scalar(select(batches.c.record).where(batches.c.id == batch_id))
        return None if record is None else _decode_batch(record)

    def listed(
        self,
        tenant: str,
        dialect: str,
        *,
        limit: int,
        after: BatchRecord | None = None,
        before: BatchRecord | None = None,
    ) -> list[BatchRecord]:
        """Return a page of a tenant's batches, newest first, one more than `limit` where there are more."""
        wanted = select(batches.c.record).where(batches.c.tenant == tenant, batches.c.dialect == dialect)
        place = (batches.c.created_at, batches.c.id)
        if after is not None:
            at = (after.created_at, after.id)
            wanted = wanted.where((place[0] < at[0]) | ((place[0] == at[0]) & (place[1] < at[1])))
        if before is not None:
            at = (before.created_at, before.id)
            wanted = wanted.where((place[0] > at[0]) | ((place[0] == at[0]) & (place[1] > at[1])))
        order = [column.asc() if before is not None else column.desc() for column in place]
        with transaction(self._engine) as connection:
            return [_decode_batch(record) for record in connection.scalars(wanted.order_by(*order).limit(limit + 1))]

    def change(
        self, batch_id: str, how: Callable[[BatchRecord], BatchRecord], *, due_at: float | None = None
    ) -> BatchRecord:
        """Change a batch in one transaction, and return it as it is then. `due_at` is when it is to be looked at next."""
        with transaction(self._engine) as connection:
            record = connection.scalars(select(batches.c.record).where(batches.c.id == batch_id)).one()
            batch = how(_decode_batch(record))
            values: dict[str, Any] = _state_of(batch)
            if due_at is not None:
                values["due_at"] = due_at
            connection.execute(update(batches).where(batches.c.id == batch_id).values(**values))
        return batch

    def remove(self, batch_id: str) -> None:
        """Remove a batch and all that belongs to it."""
        with transaction(self._engine) as connection:
            for table, column in ((items, items.c.batch_id), (jobs, jobs.c.batch_id), (batches, batches.c.id)):
                connection.execute(delete(table).where(column == batch_id))

    def open_batches(self, tenant: str) -> int:
        """Return how many batches of a tenant are not over."""
        wanted = select(func.count()).where(batches.c.tenant == tenant, batches.c.over.is_(False))
        with transaction(self._engine) as connection:
            return int(connection.scalar(wanted) or 0)

    def reserved(self, tenant: str, batch_id: str = "") -> int:
        """Return what the jobs of a tenant, or of one of its batches, that have no results yet may cost, in nano-dollars."""
        wanted = select(jobs.c.record).join(batches, batches.c.id == jobs.c.batch_id)
        if batch_id:
            wanted = wanted.where(batches.c.id == batch_id)
        with transaction(self._engine) as connection:
            rows = connection.scalars(wanted.where(batches.c.tenant == tenant, batches.c.over.is_(False)))
            return sum(job.reserved_nanos for job in map(_decode_job, rows) if job.state not in ("collected", "lost"))

    def ended_before(self, when: float) -> list[str]:
        """Return the batches that are over and were made before a time."""
        wanted = select(batches.c.id).where(batches.c.over.is_(True), batches.c.created_at < when).limit(100)
        with transaction(self._engine) as connection:
            return list(connection.scalars(wanted))

    # Leases

    def lease(self, owner: str, now: float, seconds: float) -> BatchRecord | None:
        """Lease a batch that is due and not leased, or return None if there is none."""
        due = (batches.c.over.is_(False), batches.c.due_at <= now, batches.c.lease_until <= now)
        wanted = select(batches.c.id, batches.c.record).where(*due).order_by(batches.c.due_at).limit(1)
        with transaction(self._engine) as connection:
            row = connection.execute(wanted).first()
            if row is None:
                return None
            held = {"owner": owner, "lease_until": now + seconds, "due_at": now}
            taken = connection.execute(update(batches).where(batches.c.id == row.id, *due).values(**held)).rowcount
        return _decode_batch(row.record) if taken else None

    def renew(self, batch_id: str, owner: str, now: float, seconds: float) -> bool:
        """Keep a lease; False where another process has taken it."""
        own = (batches.c.id == batch_id, batches.c.owner == owner)
        with transaction(self._engine) as connection:
            return bool(connection.execute(update(batches).where(*own).values(lease_until=now + seconds)).rowcount)

    def release(self, batch_id: str, owner: str, due_at: float) -> None:
        """Give a lease back; the batch is looked at again at `due_at`, or at once where it was changed in the meantime."""
        own = (batches.c.id == batch_id, batches.c.owner == owner)
        due = case((batches.c.due_at == 0.0, 0.0), else_=due_at)
        with transaction(self._engine) as connection:
            connection.execute(update(batches).where(*own).values(owner="", lease_until=0.0, due_at=due))

    def next_due(self) -> float | None:
        """Return when the next batch is to be looked at, or None if all are over."""
        wanted = select(func.min(func.max(batches.c.due_at, batches.c.lease_until)))
        if self._engine.dialect.name != "sqlite":
            wanted = select(func.min(func.greatest(batches.c.due_at, batches.c.lease_until)))
        with transaction(self._engine) as connection:
            return connection.scalar(wanted.where(batches.c.over.is_(False)))

    # Jobs

    def jobs(self, batch_id: str) -> list[JobRecord]:
        """Return the jobs of a batch, in the order they were made in."""
        wanted = select(jobs.c.record).where(jobs.c.batch_id == batch_id).order_by(jobs.c.id)
        with transaction(self._engine) as connection:
            return [_decode_job(record) for record in connection.scalars(wanted)]

    def put_job(self, job: JobRecord, *, without_wires: bool = False) -> None:
        """Store a job as it is now. `without_wires`: the bodies of its requests are at the provider, and kept no longer."""
        with transaction(self._engine) as connection:
            _put_job(connection, job)
            if without_wires:
                connection.execute(update(items).where(items.c.job_id == job.id).values(wire=None))

    # Items

    def clear_items(self, batch_id: str) -> None:
        """Forget the items of a batch, to read its file anew."""
        with transaction(self._engine) as connection:
            connection.execute(delete(items).where(items.c.batch_id == batch_id))

    def add_items(self, new_items: Sequence[ItemRecord]) -> None:
        """Add items."""
        with transaction(self._engine) as connection:
            _insert_items(connection, new_items)

    def items(
        self, batch_id: str, *states: ItemState, job_id: str | None = None, after: int = -1, limit: int = 100
    ) -> list[ItemRecord]:
        """Return the next items of a batch in any of the states, by their places, from behind `after`."""
        wanted = select(items).where(items.c.batch_id == batch_id, items.c.place > after)
        if states:
            wanted = wanted.where(items.c.state.in_(states))
        if job_id is not None:
            wanted = wanted.where(items.c.job_id == job_id)
        with transaction(self._engine) as connection:
            rows = connection.execute(wanted.order_by(items.c.place).limit(limit))
            return [_item(row) for row in rows]

    def planned_item(self, job: JobRecord, place: int) -> ItemRecord | None:
        """Return an item of a job that has no result yet."""
        rows = self.items(job.batch_id, "planned", job_id=job.id, after=place - 1, limit=1)
        return rows[0] if rows and rows[0].place == place else None

    def place_in_job(self, job_id: str, number: int) -> int | None:
        """Return the place in its batch of the item that stands at a place of a job."""
        wanted = select(items.c.place).where(items.c.job_id == job_id).order_by(items.c.place)
        with transaction(self._engine) as connection:
            return connection.scalar(wanted.offset(number).limit(1))

    def all_items(self, batch_id: str, *states: ItemState, job_id: str | None = None) -> Iterator[ItemRecord]:
        """Yield all of these items, a hundred read at a time."""
        after = -1
        while page := self.items(batch_id, *states, job_id=job_id, after=after):
            yield from page
            after = page[-1].place

    def count(self, batch_id: str) -> dict[str, int]:
        """Return how many items of a batch are in each state."""
        wanted = select(items.c.state, func.count()).where(items.c.batch_id == batch_id).group_by(items.c.state)
        with transaction(self._engine) as connection:
            return {str(row[0]): int(row[1]) for row in connection.execute(wanted)}

    def settle_planned(self, planned: Sequence[ItemRecord], of_jobs: Sequence[JobRecord]) -> None:
        """Store items that were planned, with the jobs they went to."""
        with transaction(self._engine) as connection:
            for job in of_jobs:
                _put_job(connection, job)
            for item in planned:
                _update_item(connection, item, ("new",))

    def settle(self, ended: Sequence[ItemRecord]) -> list[ItemRecord]:
        """Store items that have ended, each once: those that had ended before are left as they are, and not among those returned."""
        with transaction(self._engine) as connection:
            return [item for item in ended if _update_item(connection, item, ("new", "planned", "local", "running"))]

    def begin_local(self, item: ItemRecord) -> bool:
        """Note that an item is sent now; False where it has ended."""
        with transaction(self._engine) as connection:
            return _update_item(connection, item, ("local", "running"))

    def unlogged(self, batch_id: str, limit: int = 500) -> list[ItemRecord]:
        """Return items whose rows may not be in the log yet."""
        wanted = select(items).where(items.c.batch_id == batch_id, items.c.log_row.is_not(None)).limit(limit)
        with transaction(self._engine) as connection:
            return [_item(row) for row in connection.execute(wanted)]

    def logged(self, batch_id: str, places: Sequence[int]) -> None:
        """Note that the rows of these items are in the log."""
        with transaction(self._engine) as connection:
            for begin in range(0, len(places), 500):
                some = items.c.place.in_(places[begin : begin + 500])
                connection.execute(update(items).where(items.c.batch_id == batch_id, some).values(log_row=None))


def _state_of(batch: BatchRecord) -> dict[str, Any]:
    return {"record": msgspec.json.encode(batch), "over": batch.over}


def _item(row: Any) -> ItemRecord:
    values = row._mapping
    return ItemRecord(**{name: _plain(values[name]) for name in _ITEM_COLUMNS})


def _plain(value: Any) -> Any:
    # psycopg gives memory views.
    return bytes(value) if isinstance(value, memoryview) else value


def _insert_items(connection: Connection, new_items: Sequence[ItemRecord]) -> None:
    if new_items:
        connection.execute(insert(items), [msgspec.structs.asdict(item) for item in new_items])


def _update_item(connection: Connection, item: ItemRecord, before: tuple[ItemState, ...]) -> bool:
    own = (items.c.batch_id == item.batch_id, items.c.place == item.place, items.c.state.in_(before))
    values = {name: getattr(item, name) for name in ("state", "job_id", "wire", "result", "log_row", "layers")}
    return bool(connection.execute(update(items).where(*own).values(**values)).rowcount)


def _put_job(connection: Connection, job: JobRecord) -> None:
    record = msgspec.json.encode(job)
    changed = connection.execute(update(jobs).where(jobs.c.id == job.id).values(record=record)).rowcount
    if not changed:
        connection.execute(insert(jobs), {"id": job.id, "batch_id": job.batch_id, "record": record})
