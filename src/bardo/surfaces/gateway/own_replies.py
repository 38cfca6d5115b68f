"""What the gateway answers on bardo's own behalf, as values: the OpenAPI document describes them by these types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from bardo.services.facts.lessons import KnownLesson
from bardo.values.episodes import EpisodeMatch
from bardo.values.reasoning import ReasoningStep, ReasoningVisibility


class RunningReply(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway runs. `server` tells it from other programs that answer at this path."""

    status: Literal["ok"] = "ok"
    server: Literal["bardo"] = "bardo"


class ReadyReply(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway can answer calls. It has these providers, by their ids; none are named to who gives no key where one is asked for."""

    providers: tuple[str, ...]
    status: Literal["ready"] = "ready"


class VersionReply(msgspec.Struct, frozen=True, kw_only=True):
    """The version of Ollama whose API is spoken, and bardo's own."""

    version: str
    bardo: str


class FeedbackReply(msgspec.Struct, frozen=True, kw_only=True):
    """The feedback that was stored: its call, and its score from 0 (bad) to 1 (good)."""

    request_id: str
    score: float
    stored: Literal[True] = True


class CacheReply(msgspec.Struct, frozen=True, kw_only=True):
    """How many replies are kept for the tenant that asks, and how many bytes they take."""

    entries: int
    bytes: int


class PurgedReply(msgspec.Struct, frozen=True, kw_only=True):
    """How many kept replies, or lessons, were removed."""

    removed: int


class LessonsReply(msgspec.Struct, frozen=True, kw_only=True):
    """What providers' refusals taught and holds now, the newest first."""

    data: tuple[KnownLesson, ...]
    object: Literal["list"] = "list"


class EpisodesReply(msgspec.Struct, frozen=True, kw_only=True):
    """The episodes of the tenant that asks which fit a search, the best first."""

    data: tuple[EpisodeMatch, ...]
    object: Literal["list"] = "list"


class EpisodeReasoning(msgspec.Struct, frozen=True, kw_only=True):
    """The thinking of an episode; `content` is null where it cannot be read."""

    visibility: ReasoningVisibility
    content: str | None
    reasoning_tokens: int
    reported: bool
    tokens_approx: bool
    interleaved: bool
    steps: tuple[ReasoningStep, ...]


class EpisodeReply(msgspec.Struct, frozen=True, kw_only=True):
    """One episode, with its reasoning steps. `started_at` is Unix time; `schema_ok` is null where no typed answer was asked for."""

    id: str
    request_id: str
    started_at: float
    tenant: str
    key_id: str
    session: str
    subsystem: str
    provider: str
    model: str
    question: str
    reasoning: EpisodeReasoning
    answer: str
    outcome: str
    verdict: str
    schema_ok: bool | None
    feedback: tuple[float, ...]
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    tags: tuple[str, ...]


class ForgottenReply(msgspec.Struct, frozen=True, kw_only=True):
    """An episode was forgotten; `calls` is 1 where the log held what was said in its call, which is erased too."""

    id: str
    calls: int
    object: Literal["episode"] = "episode"
    deleted: Literal[True] = True


class KeyFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The key of the request: its id and name, never the key. `models` are globs; empty: it may ask for all."""

    id: str
    name: str
    tags: Sequence[str]
    models: Sequence[str]
    expires_at: str | None


class LimitFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A limit of a key, in its own unit: calls, tokens, or US dollars. `resets_at` is there for those of a day and a month.

    Each session has its own `usd_per_session`, so that nothing is told of what is used of it.
    Of other money, `used` is what is `spent`, by the log, and what is `reserved`: held for calls that run, or counted for calls of
    unknown cost.
    """

    limit: float
    used: float | None = None
    remaining: float | None = None
    spent: float | None = None
    reserved: float | None = None
    resets_at: str | None = None
    window_seconds: int | None = None


class UsageSum(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of a day or a month together.

    `spent_usd` is what the key is charged for ended calls, and `cost_usd` what they cost, with `estimated_usd` of replies that did not come
    to their end; `reserved_usd` counts for others besides.
    """

    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    spent_usd: float
    cost_usd: float
    estimated_usd: float
    reserved_usd: float
    calls_of_unknown_cost: int


class ModelUsageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of this month to one model. `cost_usd`, and `charged_usd` for the key, are null where no call's cost is known."""

    provider: str
    model: str
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    estimated_usd: float
    charged_usd: float | None
    calls_of_unknown_cost: int


class UsageReply(msgspec.Struct, frozen=True, kw_only=True):
    """What the key of the request has used, and what it may. `limits` are by the names that `[[keys]]` has for them."""

    key: KeyFacts
    limits: dict[str, LimitFacts]
    today: UsageSum
    this_month: UsageSum
    by_model: Sequence[ModelUsageFacts]


def usage_reply(figures: dict[str, Any]) -> UsageReply:
    """Return the figures of a key as the answer that tells them."""
    return msgspec.convert(figures, UsageReply)
