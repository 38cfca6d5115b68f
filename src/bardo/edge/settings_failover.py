"""`[failover]`: what happens when a provider fails, is silent, or is slow."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Annotated

import msgspec

from bardo.edge.settings_gateway import Seconds, Silence
from bardo.edge.settings_problems import Place
from bardo.values.errors import ConfigError

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Retries = Annotated[int, msgspec.Meta(ge=0, le=10)]
Entries = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
Bytes = Annotated[int, msgspec.Meta(ge=1)]


class FailoverSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens when a provider fails, is silent, or is slow.

    `retries` at the same provider, after pauses that double from `backoff_seconds` on; one that asks to be left alone for longer than
    `longest_pause_seconds` is left for the next. `first_token_seconds`: how long a streamed reply may take to its first token, `0` is as
    long as `[timeouts]` say; `first_token_seconds_at` has other figures for some providers, by their ids. `deadline_seconds`: within
    which a call begins to be answered (streamed) or is answered (whole), all attempts together; `0` is no bound, and a client asks for
    less with `X-Bardo-Deadline-Seconds`. `hedge`: a second provider is asked too where the first takes longer than it does in 95 of 100
    calls, for at most `hedge_share` of all calls. `stale_entries` last whole replies, of `stale_bytes` together, are kept for callers
    that would rather have an old reply than none; `0` keeps none.
    """

    retries: Retries = 1
    backoff_seconds: Silence = 0.25
    longest_pause_seconds: Silence = 1.0
    first_token_seconds: Silence = 0.0
    first_token_seconds_at: dict[str, Seconds] = {}
    deadline_seconds: Silence = 0.0
    hedge: bool = False
    hedge_share: Share = 0.05
    stale_entries: Entries = 0
    stale_bytes: Bytes = 64 * 1024 * 1024

    def first_token(self, provider: str) -> float | None:
        """Return how long a streamed reply of a provider may take to its first token; None where only `[timeouts]` bound it."""
        return self.first_token_seconds_at.get(provider, self.first_token_seconds) or None


def check_failover(failover: FailoverSettings, providers: Collection[str], place: Place) -> None:
    """Raise ConfigError for a provider that is not there. `providers` are the ids of all that there are."""
    for name in failover.first_token_seconds_at:
        if name not in providers:
            near = get_close_matches(name, providers, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "name the id of a provider of this file"
            raise ConfigError(f"{place.of('first_token_seconds_at')}: no provider has the id {name!r}", hint=hint)
