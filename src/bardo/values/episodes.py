"""What the reasoning memory keeps of a call, and what a search of it finds."""

from __future__ import annotations

from typing import Literal

import msgspec

from bardo.values.reasoning import ReasoningChain

FoundBy = Literal["words", "meaning"]
SearchBy = Literal["both", "words", "meaning"]


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the past with its thinking.

    `started_at` is Unix time. `reasoning` has no opaque state: of thinking that cannot be read only its tokens are known. `outcome` is how
    the call ended, `verdict` what became of the reasoning policy, `schema_ok` whether a typed answer fitted its schema (None if none was
    asked for), `feedback` the scores that were given, from 0 (bad) to 1 (good), oldest first. `tenant` is the client's, `key_id` the id of
    its key, and `session` the conversation.
    """

    id: str
    request_id: str
    started_at: float
    tenant: str = ""
    key_id: str = ""
    session: str = ""
    subsystem: str = ""
    provider: str = ""
    model: str = ""
    question: str = ""
    reasoning: ReasoningChain = ReasoningChain()
    answer: str = ""
    outcome: str = "ok"
    verdict: str = ""
    schema_ok: bool | None = None
    feedback: tuple[float, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    tags: tuple[str, ...] = ()


class EpisodeMatch(msgspec.Struct, frozen=True, kw_only=True):
    """An episode that a search found.

    `score` orders matches of one search and means nothing else. `found_by` says whether its words or its meaning were found, `cosine` how
    similar its meaning is (None if that was not compared). `excerpt` is a part of its text, around the first word that was found.
    """

    id: str
    request_id: str
    started_at: float
    provider: str = ""
    model: str = ""
    subsystem: str = ""
    session: str = ""
    tenant: str = ""
    key_id: str = ""
    visibility: str = "none"
    reasoning_tokens: int = 0
    question: str = ""
    excerpt: str = ""
    score: float = 0.0
    found_by: tuple[FoundBy, ...] = ()
    cosine: float | None = None


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """What was forgotten: `episodes`, and the `calls` of the log whose content was erased with them.

    `file_clean`: nothing of it is left in the database's files. False where others used the database at that time, so that its file could
    not be written anew, and for PostgreSQL, whose files are its own matter.
    """

    episodes: int = 0
    calls: int = 0
    file_clean: bool = False


class MemoryStats(msgspec.Struct, frozen=True, kw_only=True):
    """What the reasoning memory holds. `vectors` counts the episodes by the embedding of their vectors; others have none."""

    episodes: int = 0
    tenants: int = 0
    sessions: int = 0
    not_visible: int = 0
    reasoning_tokens: int = 0
    oldest: float | None = None
    newest: float | None = None
    vectors: dict[str, int] = {}
