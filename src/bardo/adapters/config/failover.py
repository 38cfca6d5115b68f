"""`[failover]` and `[health]`: what happens when a provider fails, is silent or slow, and when it is tried again."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Annotated

import msgspec

from bardo.adapters.config.gateway import Seconds, Silence
from bardo.adapters.config.problems import Place
from bardo.adapters.config.storage import REDIS
from bardo.routing.circuit import HealthPolicy
from bardo.routing.health import HealthStore, MemoryHealth
from bardo.routing.shared_health import SharedHealth
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


_Rate = Annotated[float, msgspec.Meta(gt=0, lt=1)]
_LeastCalls = Annotated[int, msgspec.Meta(ge=2, le=100_000)]


class HealthSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a target is down: of `least_calls` within `window_seconds` certainly more than `error_rate` fail.

    It is tried again after `rest_seconds`, then after twice that, up to `most_rest_seconds`. `ping`: providers whose list of models is free
    are asked for it every `ping_seconds`, to see whether they are there; no call that costs anything is made to find out.
    `store` is the address of Redis or Valkey over which gateways tell each other what they see, the path of a file for the workers of one
    machine, or empty; `store_env` names the variable that holds it, for an address with a password. `bardo serve` with several workers
    takes a file that they share and that is gone when the gateway ends, where nothing is named.
    """

    store: str = ""
    store_env: str = ""

    error_rate: _Rate = 0.05
    window_seconds: Seconds = 300.0
    least_calls: _LeastCalls = 5
    rest_seconds: Seconds = 15.0
    most_rest_seconds: Seconds = 300.0
    ping: bool = False
    ping_seconds: Seconds = 30.0


def policy_of(health: HealthSettings) -> HealthPolicy:
    """Return the settings as circuits go by them."""
    return HealthPolicy(
        error_rate=health.error_rate,
        window_seconds=health.window_seconds,
        least_calls=health.least_calls,
        rest_seconds=health.rest_seconds,
        most_rest_seconds=health.most_rest_seconds,
    )


def health_store(health: HealthSettings) -> HealthStore:
    """Return where the health of targets is kept: in this process, in step with other gateways where these share a server."""
    own = MemoryHealth(policy_of(health))
    return SharedHealth(own) if is_shared(health) else own


def is_shared(health: HealthSettings) -> bool:
    """Whether a place is named over which health is shared."""
    return bool(health.store_env) or health.store not in ("", "memory")


def check_health(health: HealthSettings, place: Place) -> None:
    """Raise ConfigError where the longest rest is shorter than the first, or the store is none that gateways share health over."""
    check_place(health.store, place)
    if health.most_rest_seconds < health.rest_seconds:
        message = f"{place.of('most_rest_seconds')}: the longest rest, {health.most_rest_seconds:g} s, is shorter than the first"
        raise ConfigError(message, hint=f"make it {health.rest_seconds:g} or more, or rest_seconds smaller")


def check_place(store: str, place: Place) -> None:
    """Raise ConfigError for an address of a server that health is not shared over."""
    if "://" in store and not store.startswith(REDIS):
        message = f"{place.of('store')}: health is shared over Redis or Valkey, or a file, and not over {store.partition('://')[0]!r}"
        raise ConfigError(message, hint=f"write an address that begins with {', '.join(REDIS)}, or the path of a file")
