"""How long calls took, asked of a log in SQL that both engines speak: the newest ones, by the index on when calls began.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from bardo.adapters.stores.log.row import CallTimes
from bardo.adapters.stores.log.schema import inference_log
from bardo.adapters.stores.log.stored import LONGEST_NAME, mended_text

_column = inference_log.c
_READ = tuple(_column[name] for name in CallTimes.__struct_fields__)


def call_times(
    connection: Connection, limit: int, *, since: float, until: float | None, key: str | None
) -> list[CallTimes]:
    """Return the last calls that began from `since` to before `until`, newest first; `key` is whose, None for those of all."""
    wanted = [_column.started_at >= since]
    wanted += [] if until is None else [_column.started_at < until]
    wanted += [] if key is None else [_column.key_id == mended_text(key, LONGEST_NAME)]
    query = select(*_READ).where(*wanted).order_by(_column.started_at.desc()).limit(limit)
    return [CallTimes(*row) for row in connection.execute(query)]
