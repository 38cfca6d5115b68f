"""Perform the effects of the cache for similar questions: index the questions of kept replies, find near ones, and compare answers."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, Protocol

import msgspec

from bardo.adapters.config.settings import model_of_vectors
from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.context.cache.entries import IndexedEntry, ReplyStore, compare_answers
from bardo.context.cache.language import languages
from bardo.context.cache.similar import SimilarAnswers, SimilarRules
from bardo.context.cache.similar_lookup import (
    Candidate,
    CompareAnswers,
    CountSimilar,
    FindSimilar,
    ForgetSimilar,
    decode_index,
    unpacked,
)
from bardo.context.effects import Embed, TextVectors
from bardo.services.pipeline.effects import Effects
from bardo.services.pipeline.embeddings import perform_embed
from bardo.services.pipeline.parts import LayerParts
from bardo.services.pipeline.reply_cache.cache import ReplyCache
from bardo.services.pipeline.reply_cache.evidence import FILE, SimilarEvidence

MOST_WITHOUT_NUMPY = 2_000
"""Questions of one scope; more take longer than a call should wait."""
_FIRST_ROWS = 64
_ROUNDING = 1e-5
_READ_ALL = 16
_TRIED = 64
"""Rows that are compared whole first, to know how similar the most similar ones are at least."""


class VectorRow(msgspec.Struct, frozen=True):
    """A question in the index. `number` is the store's, and `expires` Unix time."""

    number: int
    identity: bytes
    question: str
    answer: str
    expires: float


class _Matrix(Protocol):
    def __len__(self) -> int: ...
    def put(self, row: int, vector: bytes) -> None: ...
    def move(self, source: int, target: int) -> None: ...
    def cut(self, rows: int) -> None: ...
    def most_similar(self, vector: tuple[float, ...], least: float, most: int) -> list[tuple[float, int]]: ...


class VectorIndex:
    """Questions by scope. The scope that was not used for the longest goes first where there are too many. Not for several threads.

    There is one matrix for each scope. With numpy (the extra `bardo[vectors]`) a scope of 100,000 questions is searched in some
    milliseconds. Without it the search is one of plain Python, and only the newest questions of a scope are kept.
    """

    def __init__(self, most: int = 100_000, *, numpy: Any = None) -> None:
        self._most = most
        self._numpy = numpy
        self._scopes: OrderedDict[bytes, _Scope] = OrderedDict()
        self.rows = 0

    def add(self, scope: bytes, vector: bytes, row: VectorRow) -> None:
        """Keep a question, in the place of an earlier one with the same identity."""
        vectors = self._scopes.get(scope)
        if vectors is None:
            matrix: _Matrix = _Plain() if self._numpy is None else _Numpy(self._numpy)
            vectors = self._scopes[scope] = _Scope(matrix, len(vector))
        self._scopes.move_to_end(scope)
        if len(vector) != vectors.width:
            return
        self.rows += vectors.add(vector, row)
        bound = self._most if self._numpy is not None else min(self._most, MOST_WITHOUT_NUMPY)
        while len(vectors) > bound:
            self.rows -= vectors.remove_oldest()
        while self.rows > self._most and len(self._scopes) > 1:
            _, oldest = self._scopes.popitem(last=False)
            self.rows -= len(oldest)

    def clear(self) -> None:
        """Forget all questions."""
        self._scopes.clear()
        self.rows = 0

    def size(self, scope: bytes) -> int:
        """Return how many questions a scope has."""
        vectors = self._scopes.get(scope)
        return 0 if vectors is None else len(vectors)

    def search(
        self, scope: bytes, vector: tuple[float, ...], *, least: float, most: int, now: float
    ) -> list[tuple[float, VectorRow]]:
        """Return the questions of a scope with their cosine similarity, the most similar first. Expired ones are dropped."""
        vectors = self._scopes.get(scope)
        if vectors is None or 4 * len(vector) != vectors.width:
            return []
        self._scopes.move_to_end(scope)
        hits = vectors.search(vector, least, most)
        living = [(cosine, row) for cosine, row in hits if now < row.expires]
        if len(living) < len(hits):
            self.rows -= vectors.remove_expired(now)
        if not len(vectors):
            del self._scopes[scope]
        return living

    def remove(self, scope: bytes, identity: bytes) -> None:
        """Forget a question, whose entry is gone."""
        vectors = self._scopes.get(scope)
        if vectors is not None:
            self.rows -= vectors.remove(identity)


class _Scope:
    def __init__(self, matrix: _Matrix, width: int) -> None:
        self.width = width
        self._matrix = matrix
        self._rows: list[VectorRow] = []
        self._places: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, vector: bytes, row: VectorRow) -> int:
        place = self._places.get(row.identity)
        if place is None:
            place = self._places[row.identity] = len(self._rows)
            self._rows.append(row)
            self._matrix.put(place, vector)
            return 1
        self._rows[place] = row
        self._matrix.put(place, vector)
        return 0

    def search(self, vector: tuple[float, ...], least: float, most: int) -> list[tuple[float, VectorRow]]:
        return [(cosine, self._rows[place]) for cosine, place in self._matrix.most_similar(vector, least, most)]

    def remove(self, identity: bytes) -> int:
        place = self._places.pop(identity, None)
        if place is None:
            return 0
        last = len(self._rows) - 1
        if place != last:
            self._rows[place] = self._rows[last]
            self._places[self._rows[place].identity] = place
            self._matrix.move(last, place)
        self._rows.pop()
        self._matrix.cut(last)
        return 1

    def remove_expired(self, now: float) -> int:
        gone = [row.identity for row in self._rows if now >= row.expires]
        return sum(self.remove(identity) for identity in gone)

    def remove_oldest(self) -> int:
        """Remove the oldest eighth, so that it is done seldom."""
        order = sorted(self._rows, key=lambda row: row.number)
        return sum(self.remove(row.identity) for row in order[: max(1, len(order) // 8)])


class _Numpy:
    """Vectors in two halves: what the first half leaves possible decides for which rows the second one is read.

    The bound is that of Cauchy and Schwarz, so that nothing is missed; memory is read half as much, which is what a search waits for.
    Only the most similar rows are wanted, so that a few of them, found by their first half, exclude most of the others.
    """

    def __init__(self, numpy: Any) -> None:
        self._numpy = numpy
        self._arrays: list[Any] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, row: int, vector: bytes) -> None:
        values = self._numpy.frombuffer(vector, dtype="<f4")
        half = len(values) // 2
        parts = values[:half], values[half:], self._numpy.linalg.norm(values[half:])
        if not self._arrays:
            shapes = (_FIRST_ROWS, half), (_FIRST_ROWS, len(values) - half), (_FIRST_ROWS,)
            self._arrays = [self._numpy.zeros(shape, dtype="float32") for shape in shapes]
        if row >= len(self._arrays[0]):
            self._arrays = [self._grown(column) for column in self._arrays]
        for column, part in zip(self._arrays, parts, strict=True):
            column[row] = part
        self._count = max(self._count, row + 1)

    def _grown(self, values: Any) -> Any:
        grown = self._numpy.zeros((2 * len(values), *values.shape[1:]), dtype="float32")
        grown[: len(values)] = values
        return grown

    def move(self, source: int, target: int) -> None:
        for column in self._arrays:
            column[target] = column[source]

    def cut(self, rows: int) -> None:
        self._count = rows

    def most_similar(self, vector: tuple[float, ...], least: float, most: int) -> list[tuple[float, int]]:
        if not self._count:
            return []
        head, tail, lengths = (column[: self._count] for column in self._arrays)
        asked = self._numpy.array(vector, dtype="float32")
        first, second = asked[: head.shape[1]], asked[head.shape[1] :]
        scores = head @ first
        least = max(least, self._reached(scores, tail, second, most))
        reach = lengths * self._numpy.linalg.norm(second)
        places = self._numpy.flatnonzero(scores + reach >= least - _ROUNDING)
        # Many rows that are read one by one take longer than all of them in order.
        many = len(places) * _READ_ALL > self._count
        similar = scores[places] + ((tail @ second)[places] if many else tail[places] @ second)
        near = similar >= least
        places, similar = places[near], similar[near]
        if len(places) > most:
            best = self._numpy.argpartition(similar, -most)[-most:]
            places, similar = places[best], similar[best]
        return sorted(zip(map(float, similar), map(int, places), strict=True), reverse=True)

    def _reached(self, scores: Any, tail: Any, second: Any, most: int) -> float:
        """Return a similarity that `most` rows have at least, by those that are best by their first half: others need not be looked at."""
        if len(scores) <= _TRIED or most > _TRIED:
            return -1.0
        tried = self._numpy.argpartition(scores, -_TRIED)[-_TRIED:]
        reached = self._numpy.partition(scores[tried] + tail[tried] @ second, -most)
        return float(reached[-most]) - _ROUNDING


class _Plain:
    def __init__(self) -> None:
        self._vectors: list[array[float]] = []

    def __len__(self) -> int:
        return len(self._vectors)

    def put(self, row: int, vector: bytes) -> None:
        values = unpacked(vector)
        if row == len(self._vectors):
            self._vectors.append(values)
        else:
            self._vectors[row] = values

    def move(self, source: int, target: int) -> None:
        self._vectors[target] = self._vectors[source]

    def cut(self, rows: int) -> None:
        del self._vectors[rows:]

    def most_similar(self, vector: tuple[float, ...], least: float, most: int) -> list[tuple[float, int]]:
        return sorted(self._scores(vector, least), reverse=True)[:most]

    def _scores(self, vector: tuple[float, ...], least: float) -> Iterator[tuple[float, int]]:
        for place, values in enumerate(self._vectors):
            score = sum(map(float.__mul__, vector, values))
            if score >= least:
                yield score, place


def numpy_or_none() -> Any:
    """Return numpy, or None if it is not installed."""
    try:
        return import_module("numpy")
    except ImportError:
        return None


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
        self._read_at = self._stored_at = float("-inf")

    def register(self, effects: Effects) -> None:
        """Register the performers of the effects."""
        effects.register(FindSimilar, self.find)
        effects.register(ForgetSimilar, self.forget, writes=True)
        effects.register(CompareAnswers, self.compare, writes=True)
        effects.register(CountSimilar, self.count, writes=True)

    async def find(self, effect: FindSimilar) -> tuple[Candidate, ...]:
        """Return entries of one scope, the most similar first."""
        await self._read_new()
        if self._index.size(effect.scope) <= _AT_ONCE:
            hits = self._search(effect)
        else:
            hits = await asyncio.get_running_loop().run_in_executor(self._own_thread(), self._search, effect)
        return tuple(
            Candidate(
                identity=row.identity,
                cosine=cosine,
                question=row.question,
                answer=row.answer,
                own=self.evidence.own(row.identity),
                pool=self.evidence.pool(effect.fingerprint, cosine),
            )
            for cosine, row in hits
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
        stored, fresh = embedded.vectors
        cosine = sum(map(float.__mul__, stored, fresh)) if any(stored) and any(fresh) else None
        outcome = compare_answers(effect.kept, effect.fresh, cosine)
        self.evidence.compared(effect.fingerprint, effect.identity, effect.cosine, outcome)
        self._store()

    async def count(self, effect: CountSimilar) -> None:
        """Count a look-up."""
        self.evidence.count(effect.fingerprint, effect.outcome)
        self._store()

    async def close(self) -> None:
        """Wait for the work under way, write the counts, and end the thread."""
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
            entries = await self._calls.ask(
                lambda store, after=after, now=now: store.indexed(after, _ENTRIES_AT_ONCE, now=now),  # type: ignore[misc]
                self._seconds,
            )
            if forgotten != self._forgotten:
                # Some of what was read may have been removed meanwhile.
                continue
            if entries:
                self._add(entries)
            if not entries or len(entries) < _ENTRIES_AT_ONCE:
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
    host, seconds = parts.host, parts.pipeline.cache.timeout_seconds
    perform_embed(parts)
    languages()
    index = VectorIndex(most, numpy=numpy_or_none())
    replies = SimilarReplies(
        cache.calls,
        parts.effects,
        index,
        SimilarEvidence(parts.folder / FILE),
        seconds=seconds,
        clock=host.clock,
        watch=host.watch,
        slow=bool(parts.pipeline.embedding) or model_of_vectors(parts.settings) is not None,
    )
    replies.register(parts.effects)
    cache.forgets.append(replies.forget_all)
    parts.closing.append(replies.close)
    return SimilarAnswers(rules)
