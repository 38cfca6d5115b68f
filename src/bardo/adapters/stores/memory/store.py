"""The writing side of the reasoning memory: drafts become episodes, and old or surplus episodes are removed.

Loads SQLAlchemy: import it where a memory is opened, and nowhere above.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, insert
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.exc import SQLAlchemyError

from bardo.adapters.config.settings import MemorySettings
from bardo.adapters.stores.database import engines, revisions
from bardo.adapters.stores.database.problems import MEMORY
from bardo.adapters.stores.log.addressed_store import write_problem
from bardo.adapters.stores.log.batch_writer import BatchWriter
from bardo.adapters.stores.log.row import LARGEST_COUNT, LONGEST_NAME, LogGap, LogRow, mended_text
from bardo.adapters.stores.memory.episodes import (
    EpisodeDraft,
    EpisodeVectors,
    StoredVector,
    draft_of,
    episode_id,
    words_of,
)
from bardo.adapters.stores.memory.erasure import IndexCleaning, remove_surplus
from bardo.adapters.stores.memory.schema import episodes, texts
from bardo.adapters.stores.migrations import MEMORY_BRANCH
from bardo.context.sessions import session_of
from bardo.values.errors import ConfigError
from bardo.values.request import Request
from bardo.values.response import Response

SECONDS_BETWEEN_SWEEPS = 300.0
MOST_WORDS = 16_000
"""Words of one episode in the index of PostgreSQL, whose lists of words have a limit of a megabyte."""
_AGAIN = """CREATE TRIGGER IF NOT EXISTS memory_call_removed AFTER DELETE ON inference_log BEGIN
DELETE FROM memory_episodes WHERE request_id = old.request_id; END"""

_log = logging.getLogger("bardo.memory")


class MemoryWriter(BatchWriter[EpisodeDraft]):
    """Stores episodes from a thread of its own: vectors take time that no call and no row of the log should wait for."""

    what = "memory"

    def __init__(self, store: EpisodeStore) -> None:
        self._episodes = store
        super().__init__(store, batch=50, capacity=1_000)

    def clean_soon(self) -> None:
        """Have the index written anew, because something was deleted from it."""
        self._episodes.cleaning.due = True

    def keep(
        self,
        row: LogRow,
        request: Request,
        response: Response,
        *,
        asked: Request,
        session: str = "",
        schema_ok: bool | None = None,
    ) -> None:
        """Queue the draft of a call, unless the model did not think. Never raises, and never waits."""
        try:
            draft = draft_of(row, request, response, schema_ok=schema_ok)
            if draft is not None:
                session = session or session_of(asked, row.tenant or "")
                self.write(msgspec.structs.replace(draft, session=session))
        except Exception as problem:  # noqa: BLE001 - the call is over: it must not fail because of its memory.
            _log.error("the thinking of %s is not kept: %s", row.request_id, type(problem).__name__)

    def _begin(self) -> None:
        """Remove what became too old while nothing ran."""
        self._episodes.sweep()


def open_writer(
    path: str | Path, settings: MemorySettings, folder: str | None, *, clock: Callable[[], float] = time.time
) -> MemoryWriter:
    """Return what stores episodes beside the log at `path`, which exists. `folder` is that of the embedding, None for no vectors.

    Raises LogUnusable and LogNewer.
    """
    return MemoryWriter(EpisodeStore(path, settings, None if folder is None else EpisodeVectors(folder), clock=clock))


def open_tables(path: str | Path, *, may_be_away: bool = False) -> Engine:
    """Return an engine over the memory's tables, which are made or migrated. Raises LogUnusable and LogNewer.

    `may_be_away`: where their server is away, that is done once it is back.
    """
    engine = revisions.open_current(
        engines.address_of(path, MEMORY),
        MEMORY_BRANCH,
        use=MEMORY,
        prepare=engines.overwrite_removed,
        may_be_away=may_be_away,
    )
    if engine.dialect.name == "sqlite":
        try:
            with engines.transaction(engine, MEMORY) as connection:
                # A later form of the log may copy its table, which loses the trigger.
                connection.exec_driver_sql(_AGAIN)
        except BaseException:
            engine.dispose()
            raise
    return engine


class EpisodeStore:
    """Stores episodes. Used by one thread at a time."""

    def __init__(
        self,
        path: str | Path,
        settings: MemorySettings,
        vectors: EpisodeVectors | None,
        *,
        clock: Callable[[], float] = time.time,
        watch: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open, make or migrate the tables. Raises LogUnusable and LogNewer."""
        self._engine = open_tables(path, may_be_away=True)
        self.name = engines.shown(self._engine.url)
        self._settings = settings
        self._vectors = vectors
        self._clock = clock
        self._watch = watch
        self._swept_at = -math.inf
        self.cleaning = IndexCleaning(self._engine, watch=watch)
        self._is_sqlite = self._engine.dialect.name == "sqlite"
        make = sqlite_insert if self._is_sqlite else postgresql_insert
        self._insert = make(episodes).on_conflict_do_nothing(index_elements=["id"]).returning(episodes.c.row_number)

    def append(self, rows: Sequence[EpisodeDraft]) -> None:
        """Store episodes; a call that has one already keeps it. Raises StoreUnavailable or RowsRefused."""
        try:
            # Vectors take longer than all else, and need no lock.
            made = [self._values(draft) for draft in rows]
            with self._engine.begin() as connection:
                for values, words in made:
                    self._add(connection, values, words)
        except Exception as error:
            raise write_problem(self._engine, error) from error
        self.sweep()

    def sweep(self) -> None:
        """Remove old and surplus episodes, if that was not done for a while."""
        if self._watch() - self._swept_at < SECONDS_BETWEEN_SWEEPS:
            return
        self._swept_at = self._watch()
        try:
            if remove_surplus(self._engine, self._settings, self._clock()):
                self.cleaning.due = True
            self.cleaning.run()
        except SQLAlchemyError as error:
            _log.warning("old episodes cannot be removed now, and are tried again: %s", engines.reason(error))

    def note_gap(self, gap: LogGap) -> None:
        """Do nothing: whoever runs bardo is told by the program's own log."""

    def close(self) -> None:
        """Close the database, with nothing in its index that was deleted."""
        try:
            self.cleaning.run(at_once=True)
        except SQLAlchemyError as error:
            _log.warning("the index of words cannot be written anew: %s", engines.reason(error))
        self._engine.dispose()

    def _add(self, connection: Connection, values: dict[str, Any], contents: dict[str, Any]) -> None:
        number = connection.scalar(self._insert, values)
        if number is not None:
            connection.execute(insert(texts), {"row_number": number, **contents})

    def _values(self, draft: EpisodeDraft) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the values of a draft's two rows."""
        row, chain, made = draft.row, draft.chain, self._vector(draft)
        names = ("tenant", "key_id", "subsystem", "provider", "model", "outcome")
        values: dict[str, Any] = {name: _text(getattr(row, name)) for name in names}
        values |= {
            "id": episode_id(row.request_id),
            "request_id": row.request_id,
            "started_at": row.started_at,
            "session": draft.session,
            "verdict": _text(row.reasoning_verdict),
            "visibility": chain.visibility.value,
            "reasoning_tokens": min(chain.reasoning_tokens, LARGEST_COUNT),
            "tokens_reported": chain.reported,
            "tokens_approx": chain.tokens_approx,
            "interleaved": chain.interleaved,
            "schema_ok": draft.schema_ok,
            "input_tokens": _count(row.input_tokens),
            "output_tokens": _count(row.output_tokens),
            "cost_nanos": _count(row.cost_nanos),
            "tags": msgspec.json.encode([_text(tag) for tag in row.tags]).decode(),
            "embedding": None if made is None else made.embedding,
            "signature": None if made is None else made.signature,
        }
        parts = {"question": draft.question, "thinking": draft.thinking, "answer": draft.answer}
        return values, {**parts, "vector": None if made is None else made.vector, "words": self._index_text(draft)}

    def _vector(self, draft: EpisodeDraft) -> StoredVector | None:
        if self._vectors is None:
            return None
        try:
            return self._vectors.of_episode(draft.question, draft.thinking)
        except ConfigError as problem:
            _log.warning("episodes get no vectors: %s", problem.message)
            self._vectors = None
            return None

    def _index_text(self, draft: EpisodeDraft) -> str | None:
        """Return what the index of words is made of, where that is not the texts."""
        whole = f"{draft.question} {draft.thinking} {draft.answer}"
        if self._is_sqlite:
            return None if whole.isascii() else " ".join(words_of(whole))
        places: dict[str, list[str]] = {}
        for place, word in enumerate(words_of(whole)[:MOST_WORDS], start=1):
            places.setdefault(word, []).append(str(place))
        return " ".join(f"'{word}':{','.join(positions[:255])}" for word, positions in places.items())


def _text(value: str | None) -> str:
    return mended_text(value or "", LONGEST_NAME)


def _count(value: int | None) -> int | None:
    return None if value is None else max(-LARGEST_COUNT, min(value, LARGEST_COUNT))
