"""The values of the inference log: the rows written, the rows read, and how both engines hold them.

What goes in comes out, or is visibly mended: values that one of the engines cannot hold (lone surrogates, NUL, absurd token counts,
infinities in a cost), and those longer than a log should hold. Everything else survives exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
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
    `session`, `agent` and `repository` are the conversation, the program and the repository that the client named.
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

    session: str | None = None
    agent: str | None = None
    repository: str | None = None


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
    session: str | None = None
    agent: str | None = None
    repository: str | None = None


class RunningUsage(NamedTuple):
    """About what a call has used that has not ended. `nanos` is None if its price is unknown, and `parts` are their parts."""

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
    """Feedback on the answer to one call: `score` from 0 (bad) to 1 (good). `given_at` is Unix time."""

    request_id: str
    given_at: float
    score: float
    comment: str | None = None


class CacheTotal(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of prompt caches on the calls of one key to one model.

    A sum is over the calls that reported the number, and None if none did. `saved_nanos` is below 0 where writing cost more than
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
    """How long one call took, and how it ended. `first_byte_seconds` is None if nothing came."""

    started_at: float
    provider: str
    model: str
    seconds: float
    first_byte_seconds: float | None
    outcome: CallOutcome
    error_class: str | None


class LogExtent(msgspec.Struct, frozen=True, kw_only=True):
    """How much a log holds.

    `rows` are the calls, `dropped` the rows that are missing by its notes. `bytes` is the room that it takes, with its indexes, None if
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


LONGEST_NAME = 500
LONGEST_MESSAGE = 2_000
LONGEST_JSON = 200_000
LONGEST_CONTENT = 1_000_000
DEEPEST_JSON = 100
# What every reader of JSON holds exactly; sums of many still fit 64 bits.
LARGEST_COUNT = 2**53 - 1

LONGEST_TEXTS = {
    "error_message": LONGEST_MESSAGE,
    "request_content": LONGEST_CONTENT,
    "reply_content": LONGEST_CONTENT,
    "sent_content": LONGEST_CONTENT,
}
"""Characters of the texts that are not cut at LONGEST_NAME."""
CONTENTS = ("request_content", "reply_content", "sent_content")
LISTS = ("tags", "attempt_records")
"""Lists that most rows do not have: an empty one takes no room."""
_SURROGATES = re.compile("[\ud800-\udfff]")
_ENCODER = msgspec.json.Encoder(enc_hook=lambda value: mended_text(repr(value), LONGEST_MESSAGE))


def encode_texts(values: Sequence[Any], longest: int) -> Sequence[Any]:
    """Return the texts of one column as both engines can hold them. Most need no change, and many are alike."""
    for text in {*values}:
        if text is not None and (len(text) > longest or not text.isascii() or "\0" in text):
            return [None if text is None else mended_text(text, longest) for text in values]
    return values


def encode_counts(values: Sequence[Any]) -> Sequence[Any]:
    """Return the counts of one column within what every reader holds: they come from providers, so any number may arrive."""
    for count in {*values}:
        if count is not None and not -LARGEST_COUNT <= count <= LARGEST_COUNT:
            return [None if count is None else max(-LARGEST_COUNT, min(count, LARGEST_COUNT)) for count in values]
    return values


def encode_costs(values: Sequence[Any]) -> Sequence[Any]:
    """Return the costs of one column, without those that are no number."""
    return [None if cost is None or not math.isfinite(cost) else cost for cost in values]


def encode_json(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values of one column as JSON text."""
    return [None if value is None else to_json(value) for value in values]


def encode_lists(values: Sequence[Any]) -> Sequence[Any]:
    """Return the lists of one column as JSON text, and nothing for an empty one."""
    return [to_json(value) if value else None for value in values]


def encode_nulls(values: Sequence[Any]) -> Sequence[Any]:
    """Return nothing for every value."""
    return [None] * len(values)


def from_columns(values: Mapping[str, Any]) -> LogRow:
    """Return the row that column values were made from."""
    fields = {name: values[name] for name in LogRow.__struct_fields__}
    fields["degraded"] = tuple(fields["degraded"])
    fields["tags"] = tuple(fields["tags"] or ())
    fields["attempt_records"] = _attempts(fields["attempt_records"])
    return LogRow(**fields)


def _attempts(stored: Any) -> tuple[AttemptRecord, ...]:
    """Return the attempts of a call, or none if they were too many for a row."""
    try:
        return msgspec.convert(stored or (), tuple[AttemptRecord, ...])
    except msgspec.ValidationError:
        return ()


def mended_text(text: str, longest: int) -> str:
    """Return `text` as both engines can hold it, with a mark where something is missing."""
    if len(text) > longest:
        length = longest - 40  # Leaves room for the mark.
        text = f"{text[:length]}… [{len(text) - length} more characters]"
    text = _without_surrogates(text)
    # PostgreSQL takes no NUL in a text.
    return text.replace("\0", "\N{SYMBOL FOR NULL}") if "\0" in text else text


def to_json(value: Any) -> str:
    """Write a JSON column. A value that JSON cannot express is written as text; one that is too long keeps its beginning."""
    try:
        text = _ENCODER.encode(value).decode()
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
        text = ""
    # How deep a reader can go depends on its interpreter, so what might be deep is made shallow.
    if not text or (len(text) > 2 * DEEPEST_JSON and text.count("[") + text.count("{") > DEEPEST_JSON):
        text = _ENCODER.encode(_sound(value, DEEPEST_JSON)).decode()
    return text if len(text) <= LONGEST_JSON else _shortened(value, text)


def from_json(text: str | bytes) -> Any:
    """Read a JSON column."""
    return msgspec.json.decode(text)


def _without_surrogates(text: str) -> str:
    return text if text.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def _shortened(value: Any, text: str) -> str:
    """Keep the column's shape, an object or an array of objects, so that readers need no special case."""
    note = {"shortened": f"{len(text)} characters", "beginning": text[: LONGEST_JSON // 4]}
    return _ENCODER.encode([note] if isinstance(value, list | tuple) else note).decode()


def _sound(value: Any, depth: int) -> Any:
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, str):
        return _without_surrogates(value)
    if not isinstance(value, dict | list | tuple):
        return value
    if depth == 0:
        return "… [nested too deeply]"
    if isinstance(value, dict):
        return {_without_surrogates(str(key)): _sound(item, depth - 1) for key, item in value.items()}
    return [_sound(item, depth - 1) for item in value]
