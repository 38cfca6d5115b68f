"""The tables of `bardo.toml` that have no module of their own: timeouts, HTTP, log, replay, responses, reasoning, inference."""

from __future__ import annotations

from typing import Literal

import msgspec

from bardo.edge.http_calls import Client
from bardo.edge.settings_embeddings import EmbeddingSettings
from bardo.edge.settings_gateway import Count, Seconds, Silence
from bardo.edge.settings_memory import Days
from bardo.edge.settings_pipeline import PipelineSettings
from bardo.edge.settings_profiles import CachingSettings
from bardo.reasoning.control import PORTABLE, PortableBudgets
from bardo.structured import StructuredSettings


class TimeoutSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds: to connect, to the reply's head, between two pieces of it, and for all of it; 0 is no bound."""

    connect: Seconds = 10.0
    first_byte: Seconds = 600.0
    idle: Seconds = 120.0
    total: Silence = 0.0


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What calls providers: bardo's own client, or aiohttp, which comes with the extra `bardo[aiohttp]`."""

    client: Client = "direct"


class LogSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The inference log, in the file `path` or the database `url`. `content` keeps prompts and replies too, which is off by default.

    `url` is an address like postgresql://user@host/database; `url_env` names the variable that holds one with a password. Calls that are
    older than `retention_days` are removed; 0 keeps all.
    """

    enabled: bool = True
    path: str = ""
    url: str = ""
    url_env: str = ""
    content: bool = False
    retention_days: Days = 0.0


class ReplaySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the reasoning of earlier replies is kept for clients that drop it, how much of it, and for how long.

    `store` is `memory`, the path of an SQLite file, the address of PostgreSQL, Redis or Valkey, or empty for nowhere; `store_env` names the
    variable that holds it, for an address with a password. `bardo serve` with several workers turns `memory` into a file that they share
    and that is gone when it ends. A store that takes longer than `timeout_seconds` is passed over. `prefix_changed`: what is done with
    thinking that is bound to a prompt which has changed since.
    """

    store: str = "memory"
    store_env: str = ""
    timeout_seconds: Seconds = 1.0
    ttl_seconds: Seconds = 6 * 3600.0
    max_entries: Count = 20_000
    max_bytes: Count = 256 * 1024 * 1024
    max_entries_per_tenant: Count = 10_000
    max_bytes_per_tenant: Count = 128 * 1024 * 1024
    prefix_changed: Literal["restore", "drop", "drop_block"] = "restore"


class ResponseSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the responses and conversations of Responses clients are kept, how many of them, and for how long.

    `store` is empty for nowhere, `memory`, the path of an SQLite file, or the address of PostgreSQL, Redis or Valkey; `store_env` names the
    variable that holds it, for an address with a password. `bardo serve` with several workers turns `memory` into a file that they share
    and that is gone when it ends. Of a store that takes longer than `timeout_seconds` a caller is told that it cannot be reached.
    """

    store: str = ""
    store_env: str = ""
    timeout_seconds: Seconds = 5.0
    ttl_seconds: Seconds = 30 * 24 * 3600.0
    max_entries: Count = 100_000
    max_bytes: Count = 1024 * 1024 * 1024
    max_entries_per_tenant: Count = 50_000
    max_bytes_per_tenant: Count = 256 * 1024 * 1024


class ProviderIdSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose the ids are by which providers keep responses, files and other things, where clients have keys.

    `unknown` is what becomes of an id that never passed here, and `shared` are globs of ids that every key may use. `store` is `memory`,
    the path of an SQLite file, the address of PostgreSQL, Redis or Valkey, or empty: the file `provider_ids.db` beside the state database,
    or that database where it is PostgreSQL; `store_env` names the variable that holds it. An id is known for `ttl_seconds`.
    """

    unknown: Literal["refuse", "allow"] = "refuse"
    shared: tuple[str, ...] = ()
    store: str = ""
    store_env: str = ""
    timeout_seconds: Seconds = 5.0
    ttl_seconds: Seconds = 90 * 24 * 3600.0
    max_entries: Count = 1_000_000
    max_entries_per_tenant: Count = 200_000


class ReasoningSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How models are told to think. `introspect`: servers are asked what they know of their models, once, beside the calls.

    `prompt_words`: a model that has no control of its thinking is told in the system prompt what is asked. `budgets` are the tokens of
    each level, the one table between the two. `keep_budgets`: the gateway ends thinking at its budget where the server cannot, and
    `budget_words` are what it lets the model think last then.
    """

    introspect: bool = True
    prompt_words: bool = False
    keep_budgets: bool = False
    budget_words: str = ""
    budgets: PortableBudgets = PORTABLE


class InferenceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How models are asked. `structured_outputs`: for answers in a schema; `caching`: so that prompts are cached;
    `embeddings`: who makes vectors of texts; `pipeline`: what is done with a request before it is sent. `repair_history`: a history
    that the provider would refuse (a call without its result, a text of nothing) is mended and
    reported; if false, it is refused with 400, naming what is broken.
    """

    structured_outputs: StructuredSettings = StructuredSettings()
    caching: CachingSettings = CachingSettings()
    embeddings: EmbeddingSettings = EmbeddingSettings()
    pipeline: PipelineSettings = PipelineSettings()
    repair_history: bool = True
