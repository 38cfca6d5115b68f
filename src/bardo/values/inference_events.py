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
    """How much of a prompt came from the provider's cache. `savings_usd` is None where the price of cached tokens is not known."""

    cached_tokens: int
    total_tokens: int
    savings_usd: float | None


InferenceEvent = (
    ProfileApplied | ProfileDegraded | SchemaValidated | SchemaFallback | ReasoningCaptured | WebSearchUsed | CacheStats
)


class PublishedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event, and the call that it is about, by the id that the log has."""

    request_id: str
    event: InferenceEvent
