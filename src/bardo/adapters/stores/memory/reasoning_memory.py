"""The reasoning memory as people and programs use it: search past thinking, show one call's, forget it.

Everything here blocks, and any thread may call it. Nothing is opened before it is first used.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.adapters.config.settings import MemorySettings
from bardo.adapters.stores.database.problems import AmbiguousRequest
from bardo.adapters.stores.memory.episodes import EVERYTHING, EpisodeSelection, EpisodeVectors, phrases_of
from bardo.context.sessions import named_session
from bardo.reasoning.steps import stepped
from bardo.values.episodes import Episode, EpisodeMatch, Erased, MemoryStats, SearchBy
from bardo.values.errors import InvalidRequest
from bardo.values.reasoning import ReasoningChain, ReasoningCost, ReasoningVisibility
from bardo.values.usage import usd

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Engine

    from bardo.adapters.stores.log import LogWriter
    from bardo.adapters.stores.memory.store import MemoryWriter

MOST_MATCHES = 100
SEARCHES = ("both", "words", "meaning")


class ReasoningMemory:
    """The episodes beside the log at `path`. `folder` is that of the embedding, None for no search by meaning.

    `writer` and `log` are what stores episodes and calls in this process, or None if nothing does.
    """

    def __init__(
        self,
        path: str | Path,
        settings: MemorySettings,
        folder: str | None,
        *,
        writer: MemoryWriter | None = None,
        log: LogWriter | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._settings = settings
        self._vectors = None if folder is None else EpisodeVectors(folder)
        self._writer = writer
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._read_engine: Engine | None = None
        self._write_engine: Engine | None = None

    def search(
        self, query: str, selection: EpisodeSelection = EVERYTHING, *, limit: int = 10, by: SearchBy = "both"
    ) -> list[EpisodeMatch]:
        """Return the episodes that fit a query, the best first. Raises InvalidRequest, LogMissing and LogUnusable.

        Words, `"phrases"` and `begin*` are looked for, as they stand in questions, thinking and answers; and episodes that mean something
        similar, where there are vectors. `by` takes one of the two.
        """
        from bardo.adapters.stores.memory import search as searching

        if by not in SEARCHES:
            raise InvalidRequest(f"by is {str(by)[:100]!r}", hint=f"use one of {', '.join(SEARCHES)}", param="by")
        phrases, limit = phrases_of(query), max(1, min(limit, MOST_MATCHES))
        most = max(limit, searching.MOST_FOUND)
        made = None if by == "words" or self._vectors is None or not query.strip() else self._vectors.of_text(query)
        self._flush()
        with self._connect() as connection:
            wanted = self._conditions(connection, selection)
            words = [] if by == "meaning" else searching.by_words(connection, phrases, wanted, most)
            meaning = [] if made is None else searching.by_meaning(connection, *made, wanted, most)
            return searching.matches(connection, words, meaning, phrases, limit)

    def show(self, episode: str, *, tenant: str | None = None) -> Episode | None:
        """Return an episode by its id, its call's id, or a beginning that only it has, or None if there is none.

        Raises AmbiguousRequest, LogMissing and LogUnusable.
        """
        from bardo.adapters.stores.memory.search import find_row, scores_of

        self._flush()
        with self._connect() as connection:
            wanted = self._conditions(connection, EpisodeSelection(tenant=tenant))
            rows = find_row(connection, episode, wanted)
            if len(rows) > 1:
                ids = ", ".join(row["id"] for row in rows[:2])
                raise AmbiguousRequest(
                    f"several episodes begin with {episode[:100]!r}: {ids}", hint="give more of the id"
                )
            return _episode(rows[0], scores_of(connection, rows[0]["request_id"])) if rows else None

    def count(self, selection: EpisodeSelection) -> int:
        """Return how many episodes `forget` would remove. Raises LogMissing and LogUnusable."""
        from bardo.adapters.stores.memory.search import count_of

        self._flush()
        with self._connect() as connection:
            return count_of(connection, self._conditions(connection, selection, expired=True))

    def forget(self, selection: EpisodeSelection, *, thorough: bool = True) -> Erased:
        """Remove episodes, and the content of their calls from the log. Raises LogMissing and LogUnusable.

        `thorough` writes SQLite's index and its file anew, so that no trace is left: that takes as long as copying the file, and the log's
        writer waits. Without it deleted data is overwritten in its place, and the index is written anew within an hour.
        """
        from bardo.adapters.stores.memory import erasure

        self._flush()
        if self._log is not None:
            # A row that comes later would bring the content with it.
            self._log.flush()
        with self._connect() as connection:
            wanted = self._conditions(connection, selection, expired=True)
        with self._problems():
            engine = self._write()
            removed, calls = erasure.erase(engine, wanted)
            if not removed:
                return Erased(file_clean=True)
            clean = thorough and erasure.rewrite(engine)
            if not thorough:
                erasure.empty_journal(engine)
                if self._writer is not None:
                    self._writer.clean_soon()
        return Erased(episodes=removed, calls=calls, file_clean=clean)

    def stats(self, *, tenant: str | None = None) -> MemoryStats:
        """Return what the memory holds. Raises LogMissing and LogUnusable."""
        from bardo.adapters.stores.memory.search import stats_of

        self._flush()
        with self._connect() as connection:
            return stats_of(connection, self._conditions(connection, EpisodeSelection(tenant=tenant)))

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            for engine in (self._read_engine, self._write_engine):
                if engine is not None:
                    engine.dispose()
            self._read_engine = self._write_engine = None

    def _flush(self) -> None:
        """Have stored what waits to be stored."""
        if self._writer is not None:
            self._writer.flush()

    def _conditions(
        self, connection: Connection, selection: EpisodeSelection, *, expired: bool = False
    ) -> list[ColumnElement[bool]]:
        """Return what the rows of a selection have in common. Without `expired`, rows that are too old are left out."""
        from bardo.adapters.stores.memory.search import conditions, tenants_of

        sessions: tuple[str, ...] = ()
        if selection.session is not None:
            whose = [selection.tenant] if selection.tenant is not None else tenants_of(connection)
            sessions = (selection.session, *(named_session(selection.session, tenant) for tenant in whose))
        return conditions(selection, sessions, None if expired else self._settings, self._clock())

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        with self._problems(), self._open_reader().connect() as connection:
            yield connection

    @contextmanager
    def _problems(self) -> Iterator[None]:
        from sqlalchemy.exc import SQLAlchemyError

        from bardo.adapters.stores.database.engines import address_of, unusable
        from bardo.adapters.stores.database.problems import MEMORY

        try:
            yield
        except SQLAlchemyError as error:
            raise unusable(address_of(self._path, MEMORY), error, MEMORY) from error

    def _open_reader(self) -> Engine:
        """Return the engine to read with. Raises LogMissing where there is no memory."""
        from bardo.adapters.stores.database import engines, revisions
        from bardo.adapters.stores.database.problems import MEMORY
        from bardo.adapters.stores.migrations import MEMORY_BRANCH

        with self._lock:
            if self._read_engine is not None:
                return self._read_engine
            engine = engines.open_for_reading(engines.address_of(self._path, MEMORY), MEMORY)
            try:
                with engine.connect() as connection:
                    stored = revisions.stored_revision(connection, MEMORY_BRANCH)
                if stored is None:
                    place = engines.shown(engine.url)
                    raise MEMORY.missing(f"{place} holds no reasoning memory", hint=MEMORY.how_to_find)
            except BaseException:
                engine.dispose()
                raise
            self._read_engine = engine
        if stored != MEMORY_BRANCH.newest:
            self._write()
        return engine

    def _write(self) -> Engine:
        from bardo.adapters.stores.memory.store import open_tables

        with self._lock:
            if self._write_engine is None:
                self._write_engine = open_tables(self._path)
            return self._write_engine


def _episode(row: Mapping[str, Any], scores: Sequence[float]) -> Episode:
    named = ("id", "request_id", "started_at", "tenant", "key_id", "session", "subsystem", "provider", "model")
    further = ("question", "answer", "outcome", "verdict", "schema_ok", "input_tokens", "output_tokens")
    tokens, visibility = row["reasoning_tokens"], ReasoningVisibility(row["visibility"])
    chain = ReasoningChain(
        provider=row["provider"],
        model=row["model"],
        visibility=visibility,
        content=row["thinking"] or None,
        reasoning_tokens=tokens,
        reported=row["tokens_reported"],
        tokens_approx=row["tokens_approx"],
        interleaved=row["interleaved"],
        cost=ReasoningCost(reasoning_tokens=tokens),
    )
    return Episode(
        **{name: row[name] for name in (*named, *further)},
        reasoning=stepped(chain),
        feedback=tuple(scores),
        cost_usd=None if row["cost_nanos"] is None else usd(row["cost_nanos"]),
        tags=tuple(msgspec.json.decode(row["tags"], type=list[str])),
    )
