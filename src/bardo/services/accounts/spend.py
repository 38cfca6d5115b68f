"""What the calls of a key have cost, by the inference log: the one place where settled costs are kept.

Loads SQLAlchemy when it is first asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bardo.adapters.stores.log.rollup import day_of
from bardo.values.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class ModelUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of a key to one model.

    `cost_known` counts those whose cost is known, which are summed in `nanos`, `estimated_nanos` a part of them; `charged` is what the key
    is charged for them.
    """

    provider: str
    model: str
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    nanos: int
    cost_known: int
    estimated_nanos: int = 0
    charged: int


class LogSpend:
    """Reads the sums that a log keeps. `path` is None where the log is off, and `charged` says what a key is charged for a cost.

    Its methods block; any thread may call them.
    """

    def __init__(self, path: str | Path | None, charged: Callable[[int], int] = int) -> None:
        self._path = path
        self._charged = charged
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    def __call__(self, account: str, first_day: int, last_day: int) -> int:
        """Return the nano-dollars that a key is charged for its calls from the first to the last day (20261123), of known cost."""
        return sum(one.charged for one in self.by_model(account, first_day, last_day))

    def by_model(self, account: str, first_day: int, last_day: int) -> Sequence[ModelUsage]:
        """Return the calls of a key by model, the costliest first."""
        from sqlalchemy import func, select

        from bardo.adapters.stores.log.schema import inference_rollup

        row = inference_rollup.c
        cost = func.sum(row.cost_nanos)
        sums = (row.calls, row.failed, row.input_tokens, row.output_tokens)
        statement = (
            select(
                row.provider,
                row.model,
                *map(func.sum, sums),
                cost,
                func.sum(row.cost_known),
                func.sum(row.estimated_nanos),
            )
            .where(row.key_id == account, row.day >= _day_of_log(first_day), row.day <= _day_of_log(last_day))
            .group_by(row.provider, row.model)
            .order_by(cost.desc(), row.provider, row.model)
        )
        with self._reading() as connection:
            rows = connection.execute(statement).all()
        counted = [(*one[:2], *map(int, one[2:])) for one in rows]
        names = ModelUsage.__struct_fields__
        return [ModelUsage(**dict(zip(names, [*one, self._charged(one[-3])], strict=True))) for one in counted]

    def close(self) -> None:
        """Close the log."""
        with self._lock:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        from sqlalchemy.exc import SQLAlchemyError

        from bardo.adapters.stores.log.database import address_of, unusable

        if self._path is None:
            raise ConfigError(
                "a key has a budget, and the log is off: nobody knows what was spent",
                hint="set enabled = true under [log]",
            )
        try:
            with self._open_log(self._path).connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise unusable(address_of(self._path), error) from error

    def _open_log(self, path: str | Path) -> Engine:
        from bardo.adapters.stores.log.database import address_of, check_readable, open_for_reading

        with self._lock:
            if self._engine is None:
                engine = open_for_reading(address_of(path))
                try:
                    check_readable(engine, address_of(path))
                except BaseException:
                    engine.dispose()
                    raise
                self._engine = engine
            return self._engine


def _day_of_log(day: int) -> int:
    begin = datetime(day // 10_000, day // 100 % 100, day % 100, tzinfo=UTC)
    return day_of(begin.timestamp())
