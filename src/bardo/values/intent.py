"""What a caller needs of a model, without naming one, and what was found for it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Quality = Literal["minimum", "low", "medium", "high", "maximum"]
QUALITIES: tuple[Quality, ...] = ("minimum", "low", "medium", "high", "maximum")

_Features = Annotated[
    tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=64)], ...], msgspec.Meta(max_length=32)
]


class Intent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one call needs. It holds no logic: `bardo.routing` finds who can do it.

    `model` None leaves the choice of a model to `quality` and `cost_sensitivity` (0: the price does not matter, 1: it matters most).
    `require` and `prefer` are names of features, rows of `features.toml`. Who lacks a required one is not asked as long as another has
    it; a preferred one that is lacking is reported. `max_latency_ms` bounds the time in which nine of ten calls are answered.
    `diem_available`: calls to a provider that is paid by staked DIEM cost nothing. `subsystem` is the part of an agent, or the workload,
    that asks.
    """

    model: str | None = None
    require: _Features = ()
    prefer: _Features = ()
    quality: Quality = "medium"
    max_latency_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    cost_sensitivity: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    diem_available: bool = False
    subsystem: str = ""


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """Who was found for an intent: a model at a provider, by its id in the configuration.

    `estimated_cost_usd` is None where no price is known. `features` are all that it has, sorted; `degraded` are the wanted features that
    it does not have, the preferred ones first.
    """

    model: str
    provider: str
    estimated_cost_usd: float | None
    features: tuple[str, ...]
    degraded: tuple[str, ...]
