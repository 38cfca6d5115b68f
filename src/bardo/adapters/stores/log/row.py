"""The values of the inference log: what is written, and what reading it answers."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from bardo.values.attempts import AttemptRecord

CallOutcome = Literal["ok", "error", "cancelled", "broken"]


class LogRow(msgspec.Struct, frozen=True, kw_only=True):
    """One call, as it ended.

    Seconds are seconds, `started_at` is Unix time, `cost_usd` are US dollars. A number that is `None` was not reported, which is not 0.
    `reasoning_*` is the receipt of the call's thinking in words: the policy, what was sent of it, who decided, and the verdict.
    `operation` is what was asked for: generate, complete (OpenAI's older form of it), embed or count_tokens. `error_message` must hold no
    secret: the caller removes them. `tenant` is a digest of the key that a client came with, empty where it came without one. `route` is
    how it was found who answers, for a call that said what it needs. `request_content`, `reply_content` and
    `sent_content`, which is the request of the last attempt as its provider got it, are stored only by a writer that was told to keep
    them. `pipeline` are the receipts of the layers that worked on the call. `cache` is what the cache of replies
    did: `hit`, `similar`, `miss` or `refused:` and the reason, and `reply_saved_nanos` what the reply that it gave had cost.
    """

    request_id: str
    started_at: float
    seconds: float = 0.0
    first_byte_seconds: float | None = None

    client_dialect: str = ""
    provider: str = ""
    provider_dialect: str = ""
    model_asked: str = ""
    model: str = ""
    streamed: bool = False
    passed_through: bool = False
    attempts: int = 1
    operation: str = "generate"

    status: int | None = None
    outcome: CallOutcome = "ok"
    error_class: str | None = None
    error_message: str | None = None
    finish_reason: str | None = None
    finish_raw: str | None = None
    visibility: str | None = None

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    tokens_approx: bool = False
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    usage_raw: Any = None

    cost_usd: float | None = None
    degraded: tuple[dict[str, Any], ...] = ()
    receipt: dict[str, Any] | None = None
    reasoning_intent: str | None = None
    reasoning_emitted: str | None = None
    reasoning_layer: str | None = None
    reasoning_verdict: str | None = None

    request_content: str | None = None
    reply_content: str | None = None

    tenant: str | None = None
    route: dict[str, Any] | None = None

    cost_nanos: int | None = None
    cost_parts: dict[str, int] | None = None
    reported_cost_nanos: int | None = None
    computed_cost_nanos: int | None = None
    cache_saved_nanos: int | None = None
    price_source: str | None = None
    key_id: str | None = None
    subsystem: str | None = None
    tags: tuple[str, ...] = ()
    attempt_records: tuple[AttemptRecord, ...] = ()

    pipeline: dict[str, Any] | None = None
    cache: str | None = None
    reply_saved_nanos: int | None = None
    sent_content: str | None = None


class CallFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which calls are wanted; None is any. `model` is the one that answered or was asked for, `id_part` a part of the id.

    `since` and `until` are Unix times between which a call began.
    """

    provider: str | None = None
    model: str | None = None
    outcome: str | None = None
    verdict: str | None = None
    key_id: str | None = None
    since: float | None = None
    until: float | None = None
    id_part: str = ""


class CallPage(msgspec.Struct, frozen=True, kw_only=True):
    """Calls, newest first, without their contents. `before` is the row before which the next page begins; None after the last."""

    rows: tuple[LogRow, ...]
    before: int | None


class PendingCall(msgspec.Struct, frozen=True, array_like=True):
    """A call that is about to be sent, as far as it is known then. `attempts` counts this one too.

    Of a call whose key has limits it tells the tokens of the prompt, and what the call counts as where nothing more is ever known of it.
    """

    request_id: str
    started_at: float
    client_dialect: str = ""
    provider: str = ""
    provider_dialect: str = ""
    model_asked: str = ""
    model: str = ""
    streamed: bool = False
    attempts: int = 1
    operation: str = "generate"
    key_id: str | None = None
    subsystem: str | None = None
    tags: tuple[str, ...] = ()
    input_tokens: int | None = None
    cost_nanos: int | None = None
    cost_parts: dict[str, int] | None = None


class RunningUsage(NamedTuple):
    """About what a call has used that has not ended. `nanos` is None where nobody knows its price, and `parts` what they are made of."""

    input_tokens: int
    output_tokens: int
    nanos: int | None
    parts: dict[str, int] | None = None


class LogGap(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that are not in the log, how many, and why. Noted in the log itself, so that its reader knows."""

    noticed_at: float
    rows: int
    why: str


class Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody thinks of the answer to one call: `score` from 0 (bad) to 1 (good). `given_at` is Unix time."""

    request_id: str
    given_at: float
    score: float
    comment: str | None = None


class CacheTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What prompt caches did for the calls of one key to one model.

    A sum is over the calls that reported the number, and None where none did. `saved_nanos` is below 0 where writing cost more than
    reading saved. `changing` counts the calls whose prompt begins anew each time, and `why` says where.
    """

    provider: str
    model: str
    key_id: str | None
    calls: int
    input_tokens: int | None
    cached_input_tokens: int | None
    cache_write_tokens: int | None
    saved_nanos: int | None
    changing: int
    why: str = ""


class ReplyCacheTotal(msgspec.Struct, frozen=True, kw_only=True):
    """How many calls the cache of replies treated alike: `cache` is the word of their rows.

    `saved_nanos` is what the kept replies that were given had cost, where that is known, and `unknown` how many of them it is not known of.
    """

    cache: str
    calls: int
    saved_nanos: int | None = None
    unknown: int = 0


class CallTimes(msgspec.Struct, frozen=True, gc=False):
    """How long one call took, and how it ended. `first_byte_seconds` is None where nothing came."""

    started_at: float
    provider: str
    model: str
    seconds: float
    first_byte_seconds: float | None
    outcome: CallOutcome
    error_class: str | None


class LogExtent(msgspec.Struct, frozen=True, kw_only=True):
    """How much a log holds.

    `rows` are the calls, `dropped` the rows that are missing by its notes. `bytes` is the room that it takes, with its indexes, None where
    that is not known. `first` and `last` are the days of the oldest and the newest call, counted from 1970 in UTC, None in an empty log.
    """

    rows: int
    dropped: int
    bytes: int | None
    first: int | None
    last: int | None


class NewRows(msgspec.Struct, frozen=True, kw_only=True):
    """Rows stored since a row number, oldest first, and the number to ask with next time."""

    rows: tuple[LogRow, ...]
    row_number: int
