"""Find episodes: the rows of a selection, one by its id, and those that are near to a question by their words and by their meaning.

Loads SQLAlchemy: import it where a memory is opened, and nowhere above.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, func, not_, or_, select, text

from bardo.adapters.config.settings import MemorySettings
from bardo.adapters.stores.log.database import inference_feedback
from bardo.adapters.stores.log.row import LONGEST_NAME, mended_text
from bardo.adapters.stores.memory.episodes import Phrase, cosine, differing_bits, excerpt_of, folded, signature_of
from bardo.adapters.stores.memory.erasure import expired
from bardo.adapters.stores.memory.schema import episodes, texts
from bardo.values.episodes import EpisodeMatch, FoundBy, MemoryStats
from bardo.values.reasoning import ReasoningVisibility

if TYPE_CHECKING:
    from bardo.adapters.stores.memory.episodes import EpisodeSelection

MOST_FOUND = 100
"""Episodes that each of the two searches gives to the other."""
MOST_COMPARED = 1_000
"""Episodes with the nearest signatures whose vectors are compared."""
LEAST_COSINE = 0.4
"""Less similar episodes are not found by their meaning: questions that have nothing to do with each other reach about as much."""
_RANK_OFFSET = 60
"""The constant of reciprocal rank fusion, as its authors chose it."""
# The last there is, in the byte order ids are compared by.
_LAST_CHARACTER = "\U0010ffff"
_column = episodes.c
Ranked = Sequence[tuple[int, float]]


def by_words(
    connection: Connection, phrases: Sequence[Phrase], wanted: Sequence[ColumnElement[bool]], most: int
) -> list[int]:
    """Return the numbers of the episodes that have all of the phrases, then of those that have half of them, the best first."""
    if not phrases:
        return []
    numbers = _with_words(connection, phrases, wanted, most, every=True)
    if len(numbers) < most and len(phrases) > 1:
        some = _with_words(connection, phrases, wanted, most, every=False)
        numbers = list(dict.fromkeys((*numbers, *_with_half(connection, phrases, some))))
    return numbers[:most]


def by_meaning(
    connection: Connection,
    fingerprint: str,
    vector: tuple[float, ...],
    wanted: Sequence[ColumnElement[bool]],
    most: int,
) -> list[tuple[int, float]]:
    """Return the numbers of the most similar episodes, with how similar they are, of those with vectors of the same embedding."""
    asked = int.from_bytes(signature_of(vector), "little")
    query = select(_column.row_number, _column.signature).where(_column.embedding == fingerprint, *wanted)
    rows = connection.execution_options(yield_per=2_000).execute(query)
    near = heapq.nsmallest(
        max(most, MOST_COMPARED), ((differing_bits(signature, asked), number) for number, signature in rows)
    )
    vectors = _vectors(connection, [number for _, number in near])
    scored = ((cosine(vector, stored), number) for number, stored in vectors.items())
    best = heapq.nlargest(most, ((score, number) for score, number in scored if score >= LEAST_COSINE))
    return [(number, score) for score, number in best]


def fused(words: Sequence[int], meaning: Ranked, most: int) -> list[tuple[int, float]]:
    """Return the numbers of both lists in one order, by the sum of their reciprocal ranks."""
    scores: dict[int, float] = {}
    for ranked in (words, [number for number, _ in meaning]):
        for rank, number in enumerate(ranked, start=1):
            scores[number] = scores.get(number, 0.0) + 1 / (_RANK_OFFSET + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], -item[0]))[:most]


def matches(
    connection: Connection, words: Sequence[int], meaning: Ranked, phrases: tuple[Phrase, ...], most: int
) -> list[EpisodeMatch]:
    """Return what was found, in one order, with excerpts."""
    order = fused(words, meaning, most)
    numbers = [number for number, _ in order]
    query = select(episodes, texts.c.question, texts.c.thinking, texts.c.answer).join(
        texts, texts.c.row_number == _column.row_number
    )
    rows = {row.row_number: row for row in connection.execute(query.where(_column.row_number.in_(numbers)))}
    similar, with_words = dict(meaning), set(words)
    return [
        _match(rows[number]._mapping, score, similar.get(number), number in with_words, phrases)
        for number, score in order
        if number in rows
    ]


def _match(
    row: Mapping[Any, Any], score: float, similarity: float | None, has_words: bool, phrases: tuple[Phrase, ...]
) -> EpisodeMatch:
    named = ("id", "request_id", "started_at", "provider", "model", "subsystem", "session", "tenant", "key_id")
    found_by: tuple[FoundBy, ...] = (
        *(("words",) if has_words else ()),
        *(("meaning",) if similarity is not None else ()),
    )
    whole = "\n".join(row[name] for name in ("thinking", "answer") if row[name])
    return EpisodeMatch(
        **{name: row[name] for name in named},
        visibility=row["visibility"],
        reasoning_tokens=row["reasoning_tokens"],
        question=" ".join(row["question"][:300].split()),
        excerpt=excerpt_of(whole, phrases),
        score=score,
        found_by=found_by,
        cosine=None if similarity is None else round(similarity, 4),
    )


def _vectors(connection: Connection, numbers: Sequence[int]) -> dict[int, bytes]:
    column = texts.c
    query = select(column.row_number, column.vector).where(column.row_number.in_(numbers), column.vector.is_not(None))
    return {row[0]: row[1] for row in connection.execute(query)}


def _with_words(
    connection: Connection, phrases: Sequence[Phrase], wanted: Sequence[ColumnElement[bool]], most: int, *, every: bool
) -> list[int]:
    is_sqlite = connection.dialect.name == "sqlite"
    query = select(_column.row_number).where(*wanted).limit(most)
    if is_sqlite:
        joined = query.join(text("memory_words"), text("memory_words.rowid = memory_episodes.row_number"))
        ranked = joined.where(text("memory_words MATCH :phrases")).order_by(text("bm25(memory_words)"))
        asked = (" AND " if every else " OR ").join(map(_for_sqlite, phrases))
    else:
        asked_of = text("memory_texts.words @@ CAST(:phrases AS tsquery)")
        joined = query.join(texts, texts.c.row_number == _column.row_number).where(asked_of)
        ranked = joined.order_by(text("ts_rank_cd(memory_texts.words, CAST(:phrases AS tsquery)) DESC"))
        asked = (" & " if every else " | ").join(map(_for_postgresql, phrases))
    return list(connection.scalars(ranked.order_by(_column.row_number.desc()), {"phrases": asked}))


def _with_half(connection: Connection, phrases: Sequence[Phrase], numbers: Sequence[int]) -> list[int]:
    """Return those of some episodes that have at least half of the phrases: nearly every text has a small word of a long query."""
    column = texts.c
    query = select(column.row_number, column.question, column.thinking, column.answer)
    # The first words stand for their phrases: each text here has one whole phrase already.
    wanted = [phrase.words[0] for phrase in phrases]
    matching: set[int] = set()
    for number, *columns in connection.execute(query.where(column.row_number.in_(numbers))):
        whole = folded(" ".join(columns))
        if 2 * sum(word in whole for word in wanted) >= len(wanted):
            matching.add(number)
    return [number for number in numbers if number in matching]


def _for_sqlite(phrase: Phrase) -> str:
    # Words hold letters and digits only, so that no quote ends the phrase.
    return f'"{" ".join(phrase.words)}"{"*" if phrase.prefix else ""}'


def _for_postgresql(phrase: Phrase) -> str:
    *words, last = (f"'{word}'" for word in phrase.words)
    return f"({' <-> '.join((*words, f'{last}:*' if phrase.prefix else last))})"


def conditions(
    selection: EpisodeSelection, sessions: Sequence[str], settings: MemorySettings | None, now: float
) -> list[ColumnElement[bool]]:
    """Return what the rows of a selection have in common; with `settings`, without those that are too old."""
    equal = (
        (_column.tenant, selection.tenant),
        (_column.key_id, selection.key),
        (_column.subsystem, selection.subsystem),
        (_column.model, selection.model),
    )
    clauses: list[ColumnElement[bool]] = [column == _plain(value) for column, value in equal if value is not None]
    if selection.id is not None:
        clauses.append(or_(_column.id == _plain(selection.id), _column.request_id == _plain(selection.id)))
    if selection.session is not None:
        clauses.append(_column.session.in_([_plain(session) for session in sessions]))
    if selection.since is not None:
        clauses.append(_column.started_at >= selection.since)
    if selection.before is not None:
        clauses.append(_column.started_at < selection.before)
    if settings is not None:
        clauses += [not_(of_tenant & too_old) for of_tenant, too_old in expired(settings, now)]
    return clauses


def tenants_of(connection: Connection) -> list[str]:
    """Return the tenants that have episodes."""
    return list(connection.scalars(select(_column.tenant).distinct()))


def find_row(connection: Connection, name: str, wanted: Sequence[ColumnElement[bool]]) -> list[Mapping[str, Any]]:
    """Return the row of an id, or up to three whose ids begin so."""
    name = _plain(name)
    query = select(episodes, texts.c.question, texts.c.thinking, texts.c.answer)
    query = query.join(texts, texts.c.row_number == _column.row_number).where(*wanted)
    exact = or_(_column.id == name, _column.request_id == name)
    begins = or_(*((column >= name) & (column < name + _LAST_CHARACTER) for column in (_column.id, _column.request_id)))
    rows = connection.execute(query.where(exact).limit(1)).all() or (
        connection.execute(query.where(begins).limit(3)).all() if name else []
    )
    return [row._asdict() for row in rows]


def scores_of(connection: Connection, request_id: str) -> list[float]:
    """Return the scores that were given for the answer to a call, oldest first."""
    column = inference_feedback.c
    query = select(column.score).where(column.request_id == request_id).order_by(column.row_number)
    return list(connection.scalars(query))


def count_of(connection: Connection, wanted: Sequence[ColumnElement[bool]]) -> int:
    """Return how many rows there are."""
    return connection.scalar(select(func.count()).select_from(episodes).where(*wanted)) or 0


def stats_of(connection: Connection, wanted: Sequence[ColumnElement[bool]]) -> MemoryStats:
    """Return what the rows come to."""
    hidden = _column.visibility == ReasoningVisibility.OPAQUE.value
    sums = select(
        func.count().label("episodes"),
        func.count(_column.tenant.distinct()).label("tenants"),
        func.count(_column.session.distinct()).label("sessions"),
        func.count().filter(hidden).label("not_visible"),
        func.coalesce(func.sum(_column.reasoning_tokens), 0).label("reasoning_tokens"),
        func.min(_column.started_at).label("oldest"),
        func.max(_column.started_at).label("newest"),
    )
    row = connection.execute(sums.where(*wanted)).one()
    by_embedding = select(_column.embedding, func.count()).where(_column.embedding.is_not(None), *wanted)
    vectors = {row[0]: row[1] for row in connection.execute(by_embedding.group_by(_column.embedding))}
    whole = {**row._asdict(), "reasoning_tokens": int(row.reasoning_tokens)}
    return MemoryStats(**whole, vectors=vectors)


def _plain(text: str) -> str:
    """Return a text that both engines take."""
    return mended_text(text, LONGEST_NAME)
