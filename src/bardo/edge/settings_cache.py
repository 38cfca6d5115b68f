"""`[inference.pipeline.cache]`: which replies are kept, where, how many, and for how long."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from bardo.edge.settings_gateway import Count, Seconds, Silence
from bardo.edge.settings_problems import Place
from bardo.edge.settings_stores import check_store
from bardo.values.errors import ConfigError
from bardo.values.request import CacheAllowance

Budget = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Cosine = Annotated[float, msgspec.Meta(ge=0, le=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Temperature = Annotated[float, msgspec.Meta(ge=0, le=2)]


class CacheSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which replies are kept to answer equal calls with, where, how many, and for how long.

    `store` is `memory`, the path of an SQLite file, or the address of PostgreSQL, Redis or Valkey; `store_env` names the variable that
    holds it, for an address with a password. `bardo serve` with several workers turns `memory` into a file that they share and that is
    gone when it ends. A store that takes longer than `timeout_seconds` to find a reply is passed over.

    A reply is kept for `ttl_seconds`. `ttl_seconds_at` has other times for some models, by globs, and workloads, by their names; 0 keeps
    none. A reply of more than `max_reply_bytes` is not kept, and where there are more entries or bytes than allowed the oldest go.
    `allow` are reasons of refusal that do not count. A call with a temperature over `max_temperature` wants another answer each time.
    A question that is similar to an earlier one is looked for by vectors, unless `semantic` is `off`; see `SimilarRules`. Its reply is only
    compared with the provider's in `shadow`; in `serve` it is given where that has shown that at most `max_false_hit` of such replies are
    wrong. `min_cosine` is the least similarity, `recheck_share` how many of such calls are asked anew all the same, and `max_questions`
    how many questions are searched.

    `single_flight`: of equal calls that come at once one is sent, and the others wait for its reply, for at most `wait_seconds`.
    """

    store: str = "memory"
    store_env: str = ""
    timeout_seconds: Seconds = 0.1
    ttl_seconds: Seconds = 300.0
    ttl_seconds_at: dict[str, Silence] = {}
    max_entries: Count = 50_000
    max_bytes: Count = 256 * 1024 * 1024
    max_entries_per_tenant: Count = 10_000
    max_bytes_per_tenant: Count = 64 * 1024 * 1024
    max_reply_bytes: Count = 1024 * 1024
    allow: tuple[CacheAllowance, ...] = ()
    max_temperature: Temperature = 1.0
    single_flight: bool = True
    wait_seconds: Seconds = 60.0
    semantic: Literal["off", "shadow", "serve"] = "shadow"
    max_false_hit: Budget = 0.01
    min_cosine: Cosine | None = None
    recheck_share: Share = 0.05
    max_questions: Count = 100_000


def check_cache(settings: CacheSettings, place: Place) -> None:
    """Raise ConfigError for a store of a kind that bardo does not know."""
    if not settings.store:
        raise ConfigError(
            f"{place.of('store')}: the cache needs a store", hint='write "memory", or leave the layer cache out'
        )
    check_store(settings.store, place)
