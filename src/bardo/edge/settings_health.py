"""`[health]` of `bardo.toml`: when a provider or a model is taken for down, and when it is tried again."""

from __future__ import annotations

from typing import Annotated

import msgspec

from bardo.edge.settings_gateway import Seconds
from bardo.edge.settings_problems import Place
from bardo.routing.circuit import HealthPolicy
from bardo.values.errors import ConfigError

_Rate = Annotated[float, msgspec.Meta(gt=0, lt=1)]
_LeastCalls = Annotated[int, msgspec.Meta(ge=2, le=100_000)]


class HealthSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a target is down: of `least_calls` within `window_seconds` certainly more than `error_rate` fail.

    It is tried again after `rest_seconds`, then after twice that, up to `most_rest_seconds`. `ping`: providers whose list of models is free
    are asked for it every `ping_seconds`, to see whether they are there; no call that costs anything is made to find out.
    """

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


def check_health(health: HealthSettings, place: Place) -> None:
    """Raise ConfigError where the longest rest is shorter than the first."""
    if health.most_rest_seconds < health.rest_seconds:
        message = f"{place.of('most_rest_seconds')}: the longest rest, {health.most_rest_seconds:g} s, is shorter than the first"
        raise ConfigError(message, hint=f"make it {health.rest_seconds:g} or more, or rest_seconds smaller")
