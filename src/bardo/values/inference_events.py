"""The events that tell how one call was answered: which profile was applied, what was lost of it, and what came of the answer.

Source of their names and payloads: 003, "Profile events". `subsystem` is that of the call's intent, empty where it has none.
"""

from __future__ import annotations

import msgspec


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """One event; `event` is its name in JSON."""

    subsystem: str


class ProfileApplied(_Event, frozen=True, kw_only=True, tag="inference:profile_applied"):
    """The parameters of a profile are in the request. `temperature` and `reasoning_effort` are what is sent.

    `structured`: an answer in a schema is asked for. `cached`: the profile asks for a cached prompt.
    """

    temperature: float | None
    reasoning_effort: str | None
    structured: bool
    cached: bool


class ProfileDegraded(_Event, frozen=True, kw_only=True, tag="inference:profile_degraded"):
    """What was changed or left out of a request with a profile, as `min_p -> top_p`."""

    degraded: tuple[str, ...]


class SchemaValidated(_Event, frozen=True, kw_only=True, tag="inference:schema_validated"):
    """An answer was judged by its schema."""

    schema_name: str
    valid: bool


class SchemaFallback(_Event, frozen=True, kw_only=True, tag="inference:schema_fallback"):
    """The schema stands in the prompt, because the provider cannot be held to it."""

    schema_name: str


class ReasoningCaptured(_Event, frozen=True, kw_only=True, tag="inference:reasoning_captured"):
    """The reply held thinking that can be read. Tokens are the provider's count, or an estimate where it gave none."""

    reasoning_tokens: int
    content_tokens: int


class WebSearchUsed(_Event, frozen=True, kw_only=True, tag="inference:web_search_used"):
    """The provider searched the web. `query` is empty where it does not say; `results_count` is how many pages the answer cites."""

    query: str
    results_count: int


class CacheStats(_Event, frozen=True, kw_only=True, tag="inference:cache_stats"):
    """How much of a prompt came from the provider's cache. `savings_usd` is None if the price of cached tokens is not known."""

    cached_tokens: int
    total_tokens: int
    savings_usd: float | None


class CallStarted(_Event, frozen=True, kw_only=True, tag="call:started"):
    """An attempt is about to be sent. `cause` says why it is made: `first`, `retry`, `failover` and others."""

    provider: str
    model: str
    model_asked: str
    client_dialect: str
    streamed: bool
    cause: str


class CallProgress(_Event, frozen=True, kw_only=True, tag="call:progress"):
    """How far a reply has come: `phase` is `thinking`, `answering` or `tools`; tokens are estimates of what arrived in readable form.

    Published when the phase changes, and at most twice a second within one.
    """

    phase: str
    reasoning_tokens: int
    answer_tokens: int


class ReasoningText(_Event, frozen=True, kw_only=True, tag="call:reasoning"):
    """A piece of thinking, as it arrives. Only where the operator keeps content."""

    text: str


class CallFinished(_Event, frozen=True, kw_only=True, tag="call:finished"):
    """A call has ended, as its row in the log says. A number that is None is unknown. `degraded` names what was changed or lost.

    `visibility` says whether its thinking can be read: `visible`, `summarized`, `opaque`, or None if there was none. `model_asked` and
    `client_dialect` are what the client said: all that is known of a call that no provider was asked for.
    """

    provider: str
    model: str
    outcome: str
    error: str | None
    seconds: float
    attempts: int
    input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    verdict: str | None
    degraded: tuple[str, ...]
    visibility: str | None = None
    model_asked: str = ""
    client_dialect: str = ""


class HealthChanged(_Event, frozen=True, kw_only=True, tag="health:changed"):
    """A target went down or came back, or one of its keys rests. `reason` is empty where it is healthy again."""

    provider: str
    model: str
    state: str
    reason: str


InferenceEvent = (
    ProfileApplied
    | ProfileDegraded
    | SchemaValidated
    | SchemaFallback
    | ReasoningCaptured
    | WebSearchUsed
    | CacheStats
    | CallStarted
    | CallProgress
    | ReasoningText
    | CallFinished
    | HealthChanged
)
"""What is told of calls and of the health of those who answer them."""


class PublishedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event, and the call that it is about, by the id that the log has: empty where it is about none.

    `key_id` is the key that the call came with, or None if keys are not asked for. `at` is Unix time, 0 where nobody said.
    """

    request_id: str
    event: InferenceEvent
    key_id: str | None = None
    at: float = 0.0
