"""`[inference.pipeline.affinity]`: how far calls go where their prompt is cached."""

from __future__ import annotations

from typing import Annotated

import msgspec


class AffinitySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server with `load_bound` times the mean number of calls under way, and at least `free_calls` of them, is passed over.

    A new session counts `balance` of each token that a server was sent lately. `half_life_seconds` is what is assumed of a cache of which
    nothing was seen yet; what is seen goes before it. Where a call may go to several models, what a cached prompt saves is spread over
    `turns_ahead` calls that are expected of a session.
    """

    load_bound: Annotated[float, msgspec.Meta(ge=1, le=100)] = 1.5
    free_calls: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 8
    balance: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.25
    half_life_seconds: Annotated[float, msgspec.Meta(gt=0, le=604_800)] = 300.0
    turns_ahead: Annotated[float, msgspec.Meta(ge=1, le=1000)] = 3.0
