"""The rows of episodes: which ones are meant, one of them, and what they come to.

Loads SQLAlchemy: import it where a memory is opened, and nowhere above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, func, not_, or_, select

from bardo.adapters.config.settings import MemorySettings
from bardo.adapters.stores.log.database import inference_feedback
from bardo.adapters.stores.log.row import LONGEST_NAME, mended_text
from bardo.adapters.stores.memory.erasure import expired
from bardo.adapters.stores.memory.schema import episodes, texts
from bardo.values.episodes import MemoryStats
from bardo.values.reasoning import ReasoningVisibility

if TYPE_CHECKING:
    from bardo.adapters.stores.memory.reasoning_memory import EpisodeSelection

_column = episodes.c
# The last there is, in the byte order ids are compared by.
_LAST_CHARACTER = "\U0010ffff"


def conditions(
    selection: EpisodeSelection, sessions: Sequence[str], settings: MemorySettings | None, now: float
) -> list[ColumnElement[bool]]:
    """Return what the rows of a selection have in common; with `settings`, without what is too old."""
    equal = (
        (_column.tenant, selection.tenant),
        (_column.key_id, selection.key),
        (_column.subsystem, selection.subsystem),
        (_column.model, selection.model),
    )
    found: list[ColumnElement[bool]] = [column == _plain(value) for column, value in equal if value is not None]
    if selection.id is not None:
        found.append(or_(_column.id == _plain(selection.id), _column.request_id == _plain(selection.id)))
    if selection.session is not None:
        found.append(_column.session.in_([_plain(one) for one in sessions]))
    if selection.since is not None:
        found.append(_column.started_at >= selection.since)
    if selection.before is not None:
        found.append(_column.started_at < selection.before)
    if settings is not None:
        found += [not_(of_tenant & too_old) for of_tenant, too_old in expired(settings, now)]
    return found


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
