"""Feedback on answers, stored in the log's database beside the calls.

Rows of calls are never changed: feedback has a table of its own, and a call may have several. A call of another tenant is as unknown as
one that never was.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bardo.adapters.stores.log.row import Feedback

if TYPE_CHECKING:
    from sqlalchemy import Engine


class FeedbackStore:
    """The feedback of a log. It opens the database at its first use. Its methods block; any thread may call them."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    def add(self, feedback: Feedback, tenant: str) -> bool:
        """Store feedback on a call of a tenant; False where the log knows no such call. Raises LogUnusable."""
        from sqlalchemy import insert, select
        from sqlalchemy.exc import SQLAlchemyError

        from bardo.adapters.stores.log.database import address_of, inference_feedback, inference_log, unusable
        from bardo.adapters.stores.log.row import LONGEST_MESSAGE, mended_text

        column = inference_log.c
        owned = (column.request_id == feedback.request_id, column.tenant == tenant)
        call = select(column.row_number).where(*owned).limit(1)
        fields = msgspec.structs.asdict(feedback)
        if feedback.comment is not None:
            fields["comment"] = mended_text(feedback.comment, LONGEST_MESSAGE)
        with self._lock:
            try:
                with self._open_once().begin() as connection:
                    if connection.scalar(call) is None:
                        return False
                    connection.execute(insert(inference_feedback), fields)
                    return True
            except SQLAlchemyError as error:
                raise unusable(address_of(self._path), error) from error

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    def _open_once(self) -> Engine:
        if self._engine is None:
            from bardo.adapters.stores.log.database import address_of, open_current

            self._engine = open_current(address_of(self._path))
        return self._engine
