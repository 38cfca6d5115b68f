"""Read a log without any code of bardo: plain SQL over sqlite3 or psycopg. It judges what a gateway wrote while it was killed."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

_ROWS = "select request_id, outcome, error_class, cost_nanos, cost_parts from inference_log"
_SUMS = "select coalesce(sum(calls), 0), coalesce(sum(cost_nanos), 0) from inference_rollup"
LOST = "ProcessEnded"


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What a log holds. `wrong_costs`: calls whose cost is not the sum of its parts; `summed` are calls and cost of the table of sums."""

    rows: int
    calls: frozenset[str]
    twice: tuple[str, ...]
    lost: int
    outcomes: dict[str, int]
    cost_nanos: int
    wrong_costs: tuple[str, ...]
    summed: tuple[int, int]

    def mistakes(self, answered: Collection[str], journals: Collection[str]) -> list[str]:
        """Return what is wrong: the rules that a log keeps whatever is killed. `answered` are calls whose reply a client has."""
        missing = [name for name in answered if name not in self.calls]
        rules = (
            (not missing, f"{len(missing)} answered calls have no row: {missing[:3]}"),
            (not self.twice, f"{len(self.twice)} calls have two rows: {self.twice[:3]}"),
            (
                not self.wrong_costs,
                f"{len(self.wrong_costs)} costs are not the sum of their parts: {self.wrong_costs[:3]}",
            ),
            (
                self.summed == (self.rows, self.cost_nanos),
                f"the sums {self.summed} are not those of {self.rows} rows, {self.cost_nanos}",
            ),
            (not journals, f"{len(journals)} journals are left: {list(journals)[:3]}"),
        )
        return [text for holds, text in rules if not holds]


def read_ledger(log: Path | str) -> Ledger:
    """Read all of a log: a file of SQLite, or the address of a PostgreSQL database as libpq takes it."""
    rows, sums = _sqlite(log) if isinstance(log, Path) else _postgres(log)
    counts = Counter(row[0] for row in rows)
    return Ledger(
        rows=len(rows),
        calls=frozenset(counts),
        twice=tuple(name for name, count in counts.items() if count > 1),
        lost=sum(row[2] == LOST for row in rows),
        outcomes=dict(Counter(row[1] for row in rows)),
        cost_nanos=sum(row[3] or 0 for row in rows),
        wrong_costs=tuple(row[0] for row in rows if row[3] and sum(_parts(row[4]).values()) != row[3]),
        summed=(int(sums[0]), int(sums[1])),
    )


def _sqlite(path: Path) -> tuple[list[Any], Any]:
    with closing(sqlite3.connect(path)) as log:
        return log.execute(_ROWS).fetchall(), log.execute(_SUMS).fetchone()


def _postgres(address: str) -> tuple[list[Any], Any]:
    import psycopg

    with psycopg.connect(address) as log:
        return log.execute(_ROWS).fetchall(), log.execute(_SUMS).fetchone()


def _parts(value: Any) -> dict[str, int]:
    found: dict[str, int] = json.loads(value) if isinstance(value, str) else value
    return found or {}
