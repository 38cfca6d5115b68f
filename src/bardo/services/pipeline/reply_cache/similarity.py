"""Perform what the cache asks for about similar questions: find them, compare answers, and count how it went."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bardo.adapters.config.embeddings import model_of_vectors
from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.context.cache.answers import compare_answers
from bardo.context.cache.entries import IndexedEntry, ReplyStore
from bardo.context.cache.index import decode_index
from bardo.context.cache.language import languages
from bardo.context.cache.similar import SimilarAnswers, SimilarRules
from bardo.context.cache.similar_lookup import (
    Candidate,
    CompareAnswers,
    CountSimilar,
    FindSimilar,
    ForgetSimilar,
    LoadWordTables,
)
from bardo.context.embed import Embed, TextVectors
from bardo.services.pipeline.effects import Effects
from bardo.services.pipeline.embeddings import perform_embed
from bardo.services.pipeline.parts import LayerParts
from bardo.services.pipeline.reply_cache.cache import ReplyCache
from bardo.services.pipeline.reply_cache.evidence import FILE, SimilarEvidence
from bardo.services.pipeline.reply_cache.vectors import VectorIndex, VectorRow, numpy_or_none

_log = logging.getLogger("bardo.cache")
_ENTRIES_AT_ONCE = 500
_MOST_READS = 20
_READ_EVERY_SECONDS = 1.0
_STORE_EVERY_SECONDS = 5.0
_SECONDS_TO_END = 5.0
_MOST_UNDER_WAY = 64
_AT_ONCE = 2_000
"""Questions of a scope that are searched without leaving the event loop: well under a millisecond with numpy."""


class SimilarReplies:
    """The index of one program, fed by the store of replies. `clock` gives Unix time, and `watch` measures time.
    `slow`: vectors of texts take milliseconds.

    Other programs that share the store are noticed within a second.
    """

    def __init__(
        self,
        calls: StoreCalls[ReplyStore],
        effects: Effects,
        index: VectorIndex,
        evidence: SimilarEvidence,
        *,
        seconds: float,
        clock: Callable[[], float],
        watch: Callable[[], float],
        slow: bool,
    ) -> None:
        self.evidence = evidence
        self._calls, self._effects, self._index = calls, effects, index
        self._seconds, self._clock, self._watch = seconds, clock, watch
        self._slow = slow
        self._under_way: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._last = 0
        self._forgotten = 0
        self._loaded = False
        self._read_at = self._stored_at = float("-inf")

    def register(self, effects: Effects) -> None:
        """Register the performers of the effects."""
        effects.register(LoadWordTables, self.load)
        effects.register(FindSimilar, self.find)
        effects.register(ForgetSimilar, self.forget, writes=True)
        effects.register(CompareAnswers, self.compare, writes=True)
        effects.register(CountSimilar, self.count, writes=True)

    async def load(self, effect: LoadWordTables) -> None:
        """Load the tables of words beside the event loop."""
        if not self._loaded:
            await asyncio.to_thread(languages)
            self._loaded = True

    async def find(self, effect: FindSimilar) -> tuple[Candidate, ...]:
        """Return entries of one scope, the most similar first."""
        await self._read_new()
        if self._index.size(effect.scope) <= _AT_ONCE:
            found = self._search(effect)
        else:
            found = await asyncio.get_running_loop().run_in_executor(self._own_thread(), self._search, effect)
        return tuple(
            Candidate(
                identity=row.identity,
                cosine=cosine,
                question=row.question,
                answer=row.answer,
                own=self.evidence.own(row.identity),
                pool=self.evidence.pool(effect.fingerprint, cosine),
            )
            for cosine, row in found
        )

    async def forget(self, effect: ForgetSimilar) -> None:
        """Forget an entry that is no longer in the store."""
        with self._lock:
            self._index.remove(effect.scope, effect.identity)

    def forget_all(self) -> None:
        """Forget all entries: those that are still in the store are read again."""
        with self._lock:
            self._index.clear()
            self._last, self._read_at = 0, float("-inf")
            self._forgotten += 1

    async def compare(self, effect: CompareAnswers) -> None:
        """Compare two answers, and count the outcome: not before the caller goes on where vectors take long."""
        if self._slow:
            self._begin(self._compared(effect))
        else:
            await self._compared(effect)

    async def _compared(self, effect: CompareAnswers) -> None:
        embedded: TextVectors = await self._effects.perform(Embed((effect.kept, effect.fresh)))
        kept, fresh = embedded.vectors
        cosine = sum(map(float.__mul__, kept, fresh)) if any(kept) and any(fresh) else None
        outcome = compare_answers(effect.kept, effect.fresh, cosine)
        self.evidence.compared(effect.fingerprint, effect.identity, effect.cosine, outcome)
        self._store()

    async def count(self, effect: CountSimilar) -> None:
        """Count a look-up."""
        self.evidence.count(effect.fingerprint, effect.outcome)
        self._store()

    async def close(self) -> None:
        """Wait for what is under way, write what was learned, and end the thread."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=_SECONDS_TO_END)
        await asyncio.to_thread(self._write)
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)

    def _search(self, effect: FindSimilar) -> list[tuple[float, VectorRow]]:
        with self._lock:
            return self._index.search(
                effect.scope, effect.vector, least=effect.least_cosine, most=effect.most, now=self._clock()
            )

    async def _read_new(self) -> None:
        """Add what was put into the store since the last time to the index."""
        if not self._calls.in_memory and self._watch() - self._read_at < _READ_EVERY_SECONDS:
            return
        self._read_at = self._watch()
        for _ in range(_MOST_READS):
            after, now, forgotten = self._last, self._clock(), self._forgotten
            found = await self._calls.ask(
                lambda store, after=after, now=now: store.indexed(after, _ENTRIES_AT_ONCE, now=now),  # type: ignore[misc]
                self._seconds,
            )
            if forgotten != self._forgotten:
                # Some of what was read may have been removed meanwhile.
                continue
            if found:
                self._add(found)
            if not found or len(found) < _ENTRIES_AT_ONCE:
                return

    def _add(self, entries: Sequence[IndexedEntry]) -> None:
        with self._lock:
            for entry in entries:
                self._last = max(self._last, entry.number)
                question = decode_index(entry.index)
                if question is not None:
                    row = VectorRow(
                        entry.number, entry.identity, question.question, question.answer, expires=entry.expires
                    )
                    self._index.add(question.scope, question.vector, row)

    def _store(self) -> None:
        if self._watch() - self._stored_at >= _STORE_EVERY_SECONDS:
            self._stored_at = self._watch()
            self._begin(asyncio.to_thread(self._write))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work beside the call. What fails is noted in the program's own log."""
        if len(self._under_way) >= _MOST_UNDER_WAY:
            work.close()
            return
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            _log.warning("answers to similar questions cannot be compared: %s", type(problem).__name__)

    def _write(self) -> None:
        try:
            self.evidence.store()
        except (sqlite3.Error, OSError) as problem:
            _log.warning("what was learned of similar questions cannot be stored: %s", problem)

    def _own_thread(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="bardo-similar")
        return self._thread


def similar_answers(parts: LayerParts, cache: ReplyCache, rules: SimilarRules, *, most: int) -> SimilarAnswers:
    """Return what looks for similar questions, and have its effects performed. `most` questions are kept in the index."""
    runner, seconds = parts.runner, parts.pipeline.cache.timeout_seconds
    perform_embed(parts)
    index = VectorIndex(most, numpy=numpy_or_none())
    replies = SimilarReplies(
        cache.calls,
        parts.effects,
        index,
        SimilarEvidence(parts.folder / FILE),
        seconds=seconds,
        clock=runner.clock,
        watch=runner.watch,
        slow=bool(parts.pipeline.embedding) or model_of_vectors(parts.settings) is not None,
    )
    replies.register(parts.effects)
    cache.forgets.append(replies.forget_all)
    parts.closing.append(replies.close)
    return SimilarAnswers(rules)
