"""The batches of one gateway process: opened when the first one is asked for, or at its start where some are kept already."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bardo.adapters.config.gateway import BatchSettings
from bardo.adapters.stores.log.row import LogRow
from bardo.batches.item_requests import ItemReader
from bardo.call.services import Services

if TYPE_CHECKING:
    from bardo.adapters.stores.log import LogWriter
    from bardo.batches.keeper import OpenBatches

_log = logging.getLogger("bardo.batches")
_STORED_SECONDS = 10.0


class BatchService:
    """Opens the batches that are kept at `path`. `is_busy` tells whether clients wait for answers now."""

    def __init__(
        self,
        services: Services,
        settings: BatchSettings,
        path: Path | str,
        read_item: ItemReader,
        *,
        log: LogWriter | None,
        log_path: Path | str,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self.settings = settings
        self.read_item = read_item
        self.services = services
        self.is_busy = is_busy
        self._path = path
        self._log = log
        self._log_path = log_path
        self._opened: OpenBatches | None = None
        self._opening = asyncio.Lock()

    async def start(self) -> None:
        """Go on with the batches that an earlier process left, where there may be any."""
        if self.settings.enabled and (isinstance(self._path, str) or self._path.exists()):
            await self.open()

    async def open(self) -> OpenBatches:
        """Return the open batches. Raises DatabaseProblem where they cannot be kept."""
        if self._opened is not None:
            return self._opened
        async with self._opening:
            if self._opened is None:
                self._opened = await asyncio.to_thread(self._open)
                self._opened.keeper.start()
        return self._opened

    async def close(self) -> None:
        """Stop the work, and let go of the database."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.keeper.stop()
            opened.close()

    def _open(self) -> OpenBatches:
        # Loads SQLAlchemy, which a gateway without batches does not need.
        from bardo.batches.batch_steps import RowSink
        from bardo.batches.keeper import open_batches

        log = RowSink(self.write_row, self.rows_stored, self.rows_missing)
        return open_batches(self.services, self.settings, self._path, self.read_item, log, self.is_busy)

    def write_row(self, row: LogRow) -> None:
        """Write the row of an item into the log."""
        self.services.journal.write(row)

    def rows_stored(self) -> bool:
        """Whether all rows that were written are in the log's database. Blocks."""
        return self._log is None or self._log.flush(_STORED_SECONDS)

    def rows_missing(self, rows: list[LogRow]) -> list[LogRow]:
        """Return the rows that the log does not have: an earlier process may have written some. Blocks."""
        if self._log is None or not rows:
            return rows
        from bardo.adapters.stores.log.store import open_store

        self._log.wait_recovered(_STORED_SECONDS)
        store = open_store(self._log_path, keep_content=False)
        try:
            stored = store.stored([row.request_id for row in rows])
        finally:
            store.close()
        return [row for row in rows if row.request_id not in stored]
