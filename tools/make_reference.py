"""Write the generated parts of the pages: what stands between `<!-- generated: name -->` and `<!-- end -->`.

Run it after a change of the catalog, the settings, the errors or the simulators; a test fails while a page is stale.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import get_args

import code_reference
import endpoint_reference
import golem_reference
import msgspec
import openapi_reference
import routing_reference
from chat_meanings import CHAT_MEANINGS, CHAT_TABLES
from model_row_meanings import MODEL_MEANINGS
from pipeline_meanings import PIPELINE_MEANINGS, PIPELINE_TABLES
from price_meanings import PRICE_MEANINGS
from privacy_meanings import personal_data
from routing_meanings import ROUTING_MEANINGS

from bardo.adapters.config.accounts import BudgetSettings, KeyEntry, PaymentSettings
from bardo.adapters.config.gateway import BatchSettings
from bardo.adapters.config.pipeline import EmbeddingSettings
from bardo.adapters.config.routing import (
    CachingSettings,
    FailoverSettings,
    HealthSettings,
    LearnedSettings,
    RoutingSettings,
    SearchSettings,
)
from bardo.adapters.config.settings import (
    GatewaySettings,
    GolemSettings,
    InferenceSettings,
    LogSettings,
    MemorySettings,
    ProviderEntry,
    ProviderIdSettings,
    ReasoningSettings,
    RefreshSettings,
    ReplaySettings,
    ResponseSettings,
    StateSettings,
    TelemetrySettings,
    TimeoutSettings,
)
from bardo.catalog.load import builtin
from bardo.catalog.meaningful import MeaningfulField, builtin_meaningful
from bardo.catalog.models import ModelRow, builtin_models
from bardo.catalog.parameters import ParameterRule, builtin_parameters
from bardo.catalog.prices import PriceRow
from bardo.catalog.rows import DialectName, Payment, ProviderRow, ProviderTraits, Quirks
from bardo.catalog.search_apis import search_apis
from bardo.dialects.openai_responses import compaction
from bardo.planning.model_names import Alias
from bardo.reasoning import ReasoningFormat, formats
from bardo.reasoning.control import PORTABLE, ControlPlan, ControlTarget, PortableBudgets, plan_reasoning
from bardo.reasoning.formats import example_of
from bardo.routing.workloads import WorkloadRow
from bardo.simulators import PRESETS, presets
from bardo.structured import StructuredSettings
from bardo.values.errors import (
    RETRYABLE_STATUSES,
    BardoError,
    CallerError,
    OperatorError,
    ProviderError,
    UpstreamRefused,
)
from bardo.values.payments import PaymentRefused
from bardo.values.request import EFFORTS, ReasoningPolicy

ROOT = Path(__file__).resolve().parents[1]
_SECTION = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def code(words: Iterable[str]) -> str:
    """Return words as code, with commas."""
    return ", ".join(f"`{word}`" for word in words)


def providers() -> str:
    """Every preset: how it is spoken with and whose key it takes."""
    columns = ("preset", "who", "dialect", "key variable", "address", "bare model names")
    return table(columns, map(_provider, builtin().providers))


def _provider(row: ProviderRow) -> tuple[str, ...]:
    address = f"`{row.base_url}`" if row.base_url else "yours, as `base_url`"
    keys = " or ".join(f"`{name}`" for name in row.key_variables) or "yours, as `api_key_env`"
    return f"`{row.id}`", row.name, f"`{row.dialect}`", keys, address, code(row.models)


def provider_traits() -> str:
    """The traits of the providers that have others than `api_key` alone."""
    columns = ("preset", "private", "self-funding", "context engineering", "payment")
    plain = ProviderTraits(payment=("api_key",))
    rows = (row for row in builtin().providers if row.payment and row.traits != plain)
    return table(columns, map(_traits, rows))


def _traits(row: ProviderRow) -> tuple[str, ...]:
    flags = (row.private, row.self_funding, row.context_engineering)
    return f"`{row.id}`", *("yes" if flag else "no" for flag in flags), code(row.payment)


def provider_names() -> str:
    """Other names of the rows."""
    rows = ((f"`{row.id}`", code(row.aliases)) for row in builtin().providers if row.aliases)
    return table(("preset", "also called"), rows)


def quirks() -> str:
    """What is known of each provider beyond its dialect."""
    rows = ((f"`{row.id}`", ", ".join(_quirks(row))) for row in builtin().providers)
    return table(("preset", "differs in"), ((name, differs) for name, differs in rows if differs))


def _quirks(row: ProviderRow) -> Iterator[str]:
    plain = msgspec.structs.asdict(Quirks())
    for name, value in msgspec.structs.asdict(row.quirks).items():
        if value != plain[name]:
            yield f"`{name} = {_shown(value)}`"


def _shown(value: object) -> str:
    """Return a value as TOML writes it."""
    return msgspec.json.encode(value).decode()


MEANINGS = {
    "gateway.host": "the address to listen on",
    "gateway.port": "the port; 0 finds a free one",
    "gateway.workers": "processes that share the port",
    "gateway.reload_on_change": "whether a changed configuration is applied to new requests at once, and not only at SIGHUP",
    "gateway.allow_unauthenticated": "whether it may listen on addresses that other machines reach without requiring keys; with keys "
    "configured, whether requests without a key are accepted too",
    "gateway.allowed_hosts": "accepted names in `Host`, without a port, in addition to `localhost`, `host` and its addresses; "
    '`"*"` accepts any',
    "gateway.allowed_origins": 'origins of web pages that may call it, such as `"https://app.example.org"`; `"*"` accepts any',
    "gateway.max_body_bytes": "the largest request body; a larger one gets a 413. Bodies from 512 KiB on, or of thousands of parts, "
    "are read in a thread, a slice at a time; tens of megabytes still hold up others for tens of milliseconds: lower it for clients you do "
    "not trust",
    "gateway.max_total_body_bytes": "the most bytes of the bodies of all unfinished requests together, per worker; further requests get "
    "a 503",
    "gateway.max_total_values": "the most values of JSON (messages, their fields, numbers, texts) in the bodies of all unfinished "
    "requests together, per worker; further requests get a 503, and one with more is answered while it is alone",
    "gateway.body_seconds": "seconds for a request's body to arrive; a slower request gets a 408",
    "gateway.max_headers": "the most headers of a request; more get a 431",
    "gateway.max_header_bytes": "the most bytes of a request's URL and headers, and of the extensions and trailers of a body in chunks; "
    "more get a 431",
    "gateway.head_seconds": "seconds for a request's headers to arrive, also on a new connection; a slower request gets a 408",
    "gateway.max_connections": "the most client connections per worker, and never more than half of its limit of open files; beyond, the "
    "connection that has been idle for longest makes room, and where none is idle, the new one gets a 503",
    "gateway.connection_idle_seconds": "seconds that a connection stays open between a reply and the next request: choose more than the "
    "idle timeout of a load balancer before bardo, which would else send a request on a connection that is just being closed; a connection "
    "whose client takes nothing of its last reply for as long is let go of",
    "gateway.max_pipelined_requests": "the most pipelined requests that wait on one connection; more get a 503",
    "gateway.max_reply_bytes": "the largest whole reply that is read from a provider",
    "gateway.max_stream_bytes": "the largest streamed reply that is read from a provider; more ends the stream with an error",
    "gateway.max_reuse_bytes": "the most bytes per worker that are kept of earlier requests to save work (plans, schemas, tools); what was "
    "not asked for longest is forgotten and made anew. What is sent is the same with any value; `0` keeps nothing",
    "gateway.client_pipelines": "the profiles of layers that any call may name, in addition to its own and `off`; "
    '`"*"` allows all',
    "gateway.unasked_thinking": "whether clients of Anthropic's dialect also get thinking of other providers that they did not ask for",
    "gateway.drain_cancelled": "whether the reply of a client that has left is read to its end, so that its "
    "[cost](../how-to/read-costs.md) is exact instead of estimated; the model goes on at your expense",
    "gateway.drain_seconds": "after how many seconds such a reply is let go of",
    "gateway.drain_tokens": "how many more tokens such a reply may bring before it is let go of",
    "gateway.panel": "whether the gateway serves its web pages at `/panel`",
    "gateway.websockets": "whether [Responses by WebSocket](use-websockets.md) is served; where it is not, clients get "
    "a 426 and go on by HTTP",
    "gateway.max_websockets_per_key": "the most open WebSockets of one key, per worker; further ones get a 503",
    "gateway.websocket_seconds": "how long a WebSocket may be open; its client is told with the code `websocket_connection_limit_reached`",
    "gateway.websocket_idle_seconds": "after how long without a message a WebSocket is closed on which no request is open",
    "gateway.keep_alive_seconds": "after this many seconds without data, a stream sends a keep-alive that clients ignore; `0` sends none",
    "timeouts.connect": "seconds to connect to a provider",
    "timeouts.first_byte": "seconds until the reply's headers, including connecting",
    "timeouts.idle": "seconds between two chunks of its reply",
    "timeouts.total": "seconds from sending the request until the reply is complete; `0` is no limit",
    "log.enabled": "whether calls are logged at all",
    "log.path": "the log's file; empty: `bardo/log.db` in `XDG_DATA_HOME`, else in `~/.local/share`",
    "log.retention_days": "after how many days a call is [removed](../how-to/export-the-log.md), with content, feedback and episode; the "
    "sums of costs stay. `0`: never",
    "log.content": "whether prompts and replies are logged too",
    "budgets.store": "the address of Redis or Valkey where several gateways count limits and budgets; empty: the database of `[state]`",
    "budgets.store_env": "the variable that holds that address, for one with a password",
    "replay.store": "where the reasoning of replies is kept for clients that drop it: `memory` (several workers share a temporary "
    "SQLite file, gone when `bardo serve` ends), an SQLite file of yours, the address of PostgreSQL, Redis or Valkey "
    "([for several machines](../how-to/run-on-several-machines.md)), or empty for nowhere",
    "replay.store_env": "the variable that holds that address, for one with a password",
    "replay.timeout_seconds": "how long a call waits for the store; after that it continues without earlier reasoning, and reports so",
    "replay.ttl_seconds": "how long it is kept",
    "replay.max_entries": "the most replies that are stored; the oldest is removed first",
    "replay.max_bytes": "how many bytes they take",
    "replay.max_entries_per_tenant": "the most entries of one tenant (all requests with the same key)",
    "replay.max_bytes_per_tenant": "how many bytes of them",
    "replay.prefix_changed": "what is done with thinking that a model binds to a prompt which has changed since: `restore` puts the tools "
    "back in their order, and drops it where that is not enough; `drop` drops it; `drop_block` has the provider drop it",
    "provider_ids.unknown": "what becomes of an id that never passed here, where clients have keys: `refuse`, or `allow`, "
    "unless another key has it ([whose ids are](../how-to/give-out-keys.md#what-a-provider-keeps))",
    "provider_ids.shared": "globs of ids and addresses that every key may use, such as those of files that you uploaded yourself: "
    '`["vs_abc123", "gs://our-bucket/*"]`',
    "provider_ids.store": "where it is kept whose an id is: empty for the file `provider_ids.db` beside the state database, or for that "
    "database where it is PostgreSQL; `memory`, an SQLite file of yours, or the address of PostgreSQL, Redis or Valkey",
    "provider_ids.store_env": "the variable that holds that address, for one with a password",
    "provider_ids.timeout_seconds": "how long a call waits for the store",
    "provider_ids.ttl_seconds": "how long an id is known after it passed; later it is unknown",
    "provider_ids.max_entries": "how many entries are kept, two for each id or more; the oldest is removed first",
    "provider_ids.max_entries_per_tenant": "the same for the ids of one tenant",
    "responses.store": "where the responses and conversations of Responses clients are kept: `memory` (several workers share a temporary "
    "SQLite file, gone when `bardo serve` ends), an SQLite file of yours, the address of PostgreSQL, Redis or Valkey, or empty for nowhere "
    "([for several machines](../how-to/run-on-several-machines.md))",
    "responses.store_env": "the variable that holds that address, for one with a password",
    "responses.seal_key_env": "the variable that holds the key, 16 bytes or more, that seals "
    "[compacted conversations](../reference/compaction.md): for several machines, and where bardo cannot write. Without it bardo makes one "
    "and keeps it as `sealing.key` beside the state database",
    "responses.timeout_seconds": "how long a call waits for the store",
    "responses.ttl_seconds": "how long they are kept",
    "responses.max_entries": "the most entries; the oldest is removed first",
    "responses.max_bytes": "how many bytes they take",
    "responses.max_entries_per_tenant": "the most entries of one tenant (all requests with the same key)",
    "responses.max_bytes_per_tenant": "the most bytes of one tenant; a larger response or conversation is not stored, which is reported",
    "health.error_rate": "a provider or model whose error rate is certainly above this share is down, and is tried last",
    "health.window_seconds": "the time window in which calls are counted",
    "health.least_calls": "the least calls in a window before it is judged",
    "health.rest_seconds": "how long after going down a target is tried again, by one call; doubled after each failure",
    "health.most_rest_seconds": "the longest such wait",
    "health.store": "where gateways share what they see of providers: the address of Redis or Valkey, or a file for one machine",
    "health.store_env": "the variable that holds it, for an address with a password",
    "health.ping": "whether providers with a free list of models are pinged by requesting it",
    "health.ping_seconds": "how often",
    "telemetry.metrics": "whether `GET /metrics` counts calls, tokens and costs for Prometheus (needs `bardo[telemetry]`)",
    "telemetry.otlp": "the address of an OpenTelemetry collector (`http://127.0.0.1:4318`), to which spans and metrics of calls go; "
    "empty: none",
    "telemetry.service": "the service name in spans and metrics",
    "telemetry.logs": "the form of the lines that bardo writes to its standard error: `text` or `json`",
    "log.url": "the log's database, instead of a file: an address like `postgresql://user@host/database`, with `bardo[postgres]`",
    "log.url_env": "the variable that holds the log's address, for one with a password",
    "state.url_env": "the variable that holds that address, for one with a password",
    "state.url": "the database of keys, payments and batches: a file, or an address like `postgresql://user@host/database`; empty: "
    "the file `state.db` beside the log, or the log's own PostgreSQL database",
    "budgets.unknown_cost": "whether keys with a budget may ask models without a price: `refuse`; `estimate`, where such a call "
    "counts by the two assumed prices below; or `allow` (formerly `nothing`), where it counts as nothing",
    "budgets.assumed_usd_per_million_input": "the price of a million input tokens where `unknown_cost` is `estimate`",
    "budgets.assumed_usd_per_million_output": "the price of a million output tokens where `unknown_cost` is `estimate`",
    "budgets.assumed_output_tokens": "how many tokens an answer is taken to have in the estimate of a call that names no bound, and "
    "at most in one of whose answer nothing came",
    "budgets.overrun": "what becomes of answers that are being given when the budget of their key is spent: `finish`, or `cut`, "
    "where they end with what came of them",
    "budgets.spread_percent": "what keys are charged above the provider's cost, in percent of it; budgets and what a key is told it spent "
    "hold it, and the log has the cost alone",
    "budgets.search_usd_per_day": "what the searches that [providers run](../how-to/search-the-web.md#limit-searches-in-money) may cost "
    "in a day (UTC) with each key, and with all calls without one; then they are turned off, which is reported; none: any amount",
    "payments.wallet_key_env": "the environment variable with the private key of the wallet that pays for calls; empty: nothing is paid",
    "payments.order": "the ways to pay a provider that asks for a payment of each call, in the order they are tried: `diem`, its daily "
    "allocation; `wallet`, a payment of the call; `prepaid`, the balance behind its API key",
    "payments.usd_per_call": "the most that one call is paid, in US dollars",
    "payments.usd_per_day": "the most that all calls of a day (UTC) are paid together",
    "payments.tenants": "the most that calls of a tenant are paid in a day: `{ name = 1.5 }`; others have only the cap of all",
    "payments.subsystems": "the same for the subsystems of an agent, and for workloads",
    "payments.recipients": "the addresses that may be paid; no other one is",
    "payments.networks": "the networks that may be paid on, by their CAIP-2 names",
    "payments.assets": "the tokens that may be paid in",
    "payments.most_of_estimate": "a call whose price is more than so many times what it was expected to cost is not paid; `0`: no bound",
    "payments.wait_seconds": "how long a call waits while another call pays for the very same request",
    "payments.servers": "JSON-RPC servers of the networks, which are asked what became of a payment: "
    '`{ "eip155:8453" = "https://…" }`',
    "memory.enabled": "whether the thinking of calls is kept, to be [searched](../how-to/search-past-reasoning.md); it needs "
    "`[log] content = true`",
    "memory.retention_days": "after how many days an episode is removed; `0`: never",
    "memory.retention_days_of": "the same for single tenants: `{ acme = 7 }`",
    "memory.max_episodes": "how many episodes are kept; beyond it the oldest of the tenants with the most are removed",
    "memory.embedding": "by what questions are compared: `pipeline`, as `[inference.pipeline] embedding` says; `none`, so that only words "
    "are searched; or a folder with `model.onnx` and `tokenizer.json` (`bardo[onnx]`)",
    "batches.enabled": "whether clients may make batches and upload files for them",
    "batches.run_without_api": "whether items whose model nobody takes in batches are sent one by one, at the usual price, behind "
    "the calls of clients who wait; `false`: such batches are refused",
    "batches.concurrency": "how many of them are sent at once",
    "batches.poll_seconds": "seconds before a job is first polled; each further pause is half as long again",
    "batches.max_poll_seconds": "the longest of these pauses",
    "batches.settling_seconds": "how long after its submission a job that its provider did not confirm is looked for in its list, "
    "before it is submitted again",
    "batches.max_file_bytes": "how large a file for a batch may be",
    "batches.max_bytes_per_tenant": "how many bytes the files of one tenant may have together: of everyone who comes with the same key",
    "batches.max_items": "how many requests a batch may hold",
    "batches.max_open_per_tenant": "how many batches of one tenant may be open at once",
    "batches.max_job_bytes": "how many bytes of requests go into one job at a provider; a larger batch becomes several jobs",
    "batches.retention_seconds": "how long files, and batches that have ended, are kept",
    "aliases.model": 'of `name = { model = … }`, or alone as `name = "…"`: the model that the name stands for, as clients ask for it. The '
    "name may be a glob with one `*`, and a `*` in the model is what that matched. A list of models is asked in order",
    "aliases.fallbacks": 'models that are asked in order where `model` does not answer; `name = ["…", "…"]` says both',
    "aliases.extra_body": "fields that bodies for `model` get below what the client said: see [default fields](#default-fields-of-a-body)",
    "aliases.pipeline": "the [pipeline profile](../how-to/use-pipeline-profiles.md) whose layers work on calls by this name",
    "aliases.effort": "how much the model thinks where the client does not say: `off` or an effort",
    "aliases.forced_effort": "how much it thinks whatever the client says",
    "aliases.max_effort": "the most it thinks where the client says how much",
    **ROUTING_MEANINGS,
    "aliases.reasoning": "how thinking is shown where the client does not say: `include` as its dialect does, `omit` not at all, `tags` in "
    "the text between `<think>` tags",
    "keys.id": "any name",
    "keys.key_env": "the name of the environment variable that holds the key by which clients come, never the key",
    "keys.pipeline": "the [pipeline profile](../how-to/use-pipeline-profiles.md) whose layers work on the calls of this key",
    "keys.effort": "how much models think for this key, where neither the client nor an alias says",
    "keys.forced_effort": "how much they think whatever the client and an alias say",
    "keys.max_effort": "the most they think where the client or an alias says how much",
    "keys.reasoning": "how thinking is shown to this key where the client does not say: `include`, `omit` or `tags`",
    "keys.tenant": "whose replies its calls may go on from; keys of one tenant share them; empty: the `id`",
    "keys.models": "globs of the models, aliases and workloads that it may ask for; empty: all",
    "keys.pipelines": 'the profiles of layers that its calls may name, in addition to `client_pipelines`; `"*"` allows all',
    "keys.unknown_cost": "what `[budgets]` `unknown_cost` says, for this key; empty: as there",
    "keys.operator": "whether it shows the calls of all keys in the [panel](../how-to/use-the-panel.md)",
    "keys.tags": "words that stand with its calls in the log",
    "keys.expires": "the day, as `2027-01-31` (UTC), or the time from which it is refused",
    "keys.requests_per_minute": "how many calls it may make in any 60 seconds",
    "keys.tokens_per_minute": "how many tokens its calls may have in any 60 seconds, given and answered",
    "keys.concurrency": "how many of its calls may run at a time",
    "keys.usd_per_day": "how many US dollars its calls may cost in a day (UTC)",
    "keys.usd_per_month": "how many US dollars they may cost in a month (UTC)",
    "keys.usd_per_session": "how many US dollars the calls of each [session](give-out-keys.md#sessions-agents-and-repositories) may cost; "
    "those that name none count together, day by day (UTC)",
    "providers.extra_body": "fields that each body for it gets below what the client said: see [default fields](#default-fields-of-a-body)",
    "providers.required_body": "dotted paths of the default fields without which it is not asked: where it refuses one, the call "
    "goes to another provider, or fails; left out: those that say what is kept of a prompt and who reads it; `[]`: none",
    "providers.model_extra_body": "such fields for some of its models, by globs of their names",
    "providers.id": "any name, without a slash; clients may write `id/model`",
    "providers.preset": "a row of the [catalog](../reference/providers.md); empty: the row called like `id`",
    "providers.dialect": "instead of a preset, or to override the preset's: " + code(get_args(DialectName)),
    "providers.base_url": "the address up to and with the version; empty: the preset's",
    "providers.base_urls": "the addresses of several servers of the same models, in the place of `base_url`: see "
    "[several servers](serve-several-pods.md)",
    "providers.api_key_env": "the name of the environment variable that holds the key, never the key, or a list of "
    "names whose keys take turns; empty: the preset's, but none where "
    "`base_url` is your own",
    "providers.models": "the model ids it serves; left out: the provider is asked for its list",
    "providers.headers": 'further headers of every call; `{ env = "VARIABLE" }` in the place of a value that is a secret',
    "providers.scope": 'the account\'s project, where every call must name it: `{ project_id = "…" }` for watsonx',
    "providers.private": "whether it keeps no prompts and no answers; `false` goes before all else; left out: what the preset says",
    "providers.self_funding": "whether the agent's own revenue pays for its calls; left out: what the preset says",
    "providers.context_engineering": "whether prompts to it may be made smaller; left out: what the preset says",
    "providers.payment": "how it is paid, the preferred way first: "
    + code(get_args(Payment))
    + "; left out: what the preset says",
    "providers.auth": '`"client"`: it is asked with [each client\'s own login](use-your-own-login.md), and has no key here',
    "providers.drain_cancelled": "as `[gateway]` `drain_cancelled`, for this provider, once its reply has begun; left out: as there",
    "providers.searches_per_day": "in how many calls of a day (UTC, counted by each process) it may be asked to search the web "
    "itself; then the search is turned off, which is reported; left out: any number",
    "providers.account": "a name of your own for the account it is asked with, the same in all entries of one account: only there are "
    "signatures and ciphertexts of earlier thinking sent back; left out: the account is known by the key, of several that take turns "
    "by the first that is set",
    "refresh.hours": "the greatest age, in hours, of a provider's stored list of models while the gateway runs; 0: it is only refreshed by "
    "[`bardo catalog refresh`](../how-to/refresh-the-catalog.md)",
    "refresh.folder": "where the lists are kept; empty: `catalog` beside the log",
    "reasoning.introspect": "whether servers are asked once for facts about their models, in the background",
    "reasoning.prompt_words": "whether a model without a reasoning setting is told in the system prompt to think step by step "
    "(from `high` on) or to answer directly (off); reported each time",
    "reasoning.keep_budgets": "whether the gateway enforces thinking budgets for servers that accept none: it closes the thinking and "
    "lets the model continue with the answer ([reasoning control](../reference/reasoning-control.md#budgets-that-the-gateway-keeps))",
    "reasoning.budget_words": "the text that ends such thinking, for instance `Time is up, so I answer now.`; empty for none",
    "reasoning.budgets": "the tokens of each level: the keys below",
    **{f"reasoning.budgets.{effort}": f"the tokens of `{effort}`" for effort in EFFORTS},
    "search.service": "the service that searches the web: " + code(search_apis()),
    "search.model": "a model that searches instead of a service: one whose provider runs a search tool",
    "search.base_url": "the address of a server of one's own: SearXNG, or a proxy of the service",
    "search.api_key_env": "the variable that holds the key; left out: the service's usual one",
    "search.pages": "how many pages of a search the model gets",
    "search.most_searches": "how many searches are made for one reply; a client may allow fewer",
    "search.seconds": "how long a search may take",
    "search.always": "whether bardo searches also where the provider would",
    "inference.caching": "how prompts are cached: the keys below",
    "inference.caching.calls": "whose prompts providers are told to cache, by markers and keys: `workloads`, those whose profile says so, "
    "or `all`. See [prompt caching](../how-to/cache-prompts.md)",
    "inference.caching.auto_cache_control": "whether the calls of workloads whose profile says so get cache markers",
    "inference.caching.prompt_cache_key_prefix": "what the prompt cache keys of the agent's subsystems begin with",
    "inference.embeddings": "who makes the vectors by which layers compare texts: the keys below",
    "inference.embeddings.provider": "`local`, or the id of a provider that makes vectors, such as `venice`: then texts that layers "
    "compare are sent there, by calls of bardo's own that are in the log with their cost; where it fails or takes too long, vectors are "
    "made on this machine",
    "inference.embeddings.model": "the provider's model; empty: for Venice `venice_model`",
    "inference.embeddings.venice_model": "the model of Venice",
    "inference.embeddings.seconds": "how long a layer waits for its vectors",
    "failover.retries": "retries at the same provider after a temporary error, before the next provider is tried",
    "failover.backoff_seconds": "the pause before the first retry, at random from half of it on; it doubles with each",
    "failover.longest_pause_seconds": "a provider that asks for a longer wait is skipped, and the next one is tried",
    "failover.first_token_seconds": "how long a streamed reply may take to its first token, of thinking or of the answer; `0`: as long as "
    "`timeouts.first_byte` says",
    "failover.first_token_seconds_at": "the same for single providers, by their ids: `{ local = 900 }`",
    "failover.deadline_seconds": "within how many seconds a streamed reply has to begin, and a whole one to end, all attempts together; "
    "`0` is no bound. A client asks for less with `X-Bardo-Deadline-Seconds`",
    "failover.hedge": "whether a second provider is asked too where the first is slower than in 95 of 100 of its calls",
    "failover.hedge_share": "for which part of all calls, at most, a second provider is asked so",
    "failover.stale_entries": "the most whole replies kept for callers that accept a stale one when no provider answers; `0`: none",
    "failover.stale_bytes": "the most bytes of them together",
    "golem.enabled": "whether the subsystems of [the agent](../reference/golem.md) are workloads here",
    "golem.id": "the agent's id, from which its prompt cache keys are made; empty: none are sent",
    "golem.routes": "who is asked: `needs`, whoever fits what a subsystem needs, or the models of a table: `blockrun_only`, `full_stack`",
    "golem.web_search": "whether dreams may search the web",
    "golem.pipelines": "whether each subsystem has the [pipeline profile](../how-to/use-pipeline-profiles.md) that the documents name",
    "golem.verify": "whether another model judges the answers of `risk`, where Bankr is configured",
    "golem.daily_budget_usd": "what [an agent](../how-to/use-profiles.md#for-an-agent) may spend in a day (UTC); none: any amount",
    "golem.tools": "the names of the tools, as globs, that a [kind of tick](../reference/golem.md#tools-of-a-tick) is done with: "
    '`{ risk_check = ["get_health", "var_*"] }`; for the kinds that are left out, words in the names of tools decide',
    "golem.web_search_budget_per_cycle_usdc": "what the searches of one dream cycle of a session may cost; then the search is turned off, "
    "which is reported; none: any amount",
    "golem.sealed": "whether testaments, and the integration of dreams, are made in a trusted execution environment",
    "inference.repair_history": "whether a history that the provider would refuse (a call without its result, a text of nothing) "
    "is mended, which is reported; if false, it is refused with 400, naming what is broken",
    "inference.structured_outputs": "how structured answers are requested and validated: the keys below",
    **{f"models.{name}": meaning for name, meaning in MODEL_MEANINGS.items()},
    **{f"prices.{name}": meaning for name, meaning in PRICE_MEANINGS.items()},
    **PIPELINE_MEANINGS,
    **CHAT_MEANINGS,
}
_TABLES: dict[str, type[msgspec.Struct]] = {
    "gateway": GatewaySettings,
    "timeouts": TimeoutSettings,
    "log": LogSettings,
    "replay": ReplaySettings,
    "responses": ResponseSettings,
    "provider_ids": ProviderIdSettings,
    "reasoning": ReasoningSettings,
    "reasoning.budgets": PortableBudgets,
    "inference": InferenceSettings,
    "inference.structured_outputs": StructuredSettings,
    "inference.caching": CachingSettings,
    "inference.embeddings": EmbeddingSettings,
    **PIPELINE_TABLES,
    "golem": GolemSettings,
    "state": StateSettings,
    "telemetry": TelemetrySettings,
    "memory": MemorySettings,
    "budgets": BudgetSettings,
    "payments": PaymentSettings,
    "failover": FailoverSettings,
    "health": HealthSettings,
    "batches": BatchSettings,
    "refresh": RefreshSettings,
    **CHAT_TABLES,
    "aliases": Alias,
    "keys": KeyEntry,
    "routing": RoutingSettings,
    "routing.learned": LearnedSettings,
    "search": SearchSettings,
    "workloads": WorkloadRow,
    "providers": ProviderEntry,
    "models": ModelRow,
    "prices": PriceRow,
    "reasoning_formats": ReasoningFormat,
}
_SEVERAL = (KeyEntry, ProviderEntry, ModelRow, PriceRow, ReasoningFormat)


def settings() -> str:
    """Every key of bardo.toml."""
    return table(("key", "default", "meaning"), _settings())


def _settings() -> Iterator[tuple[str, str, str]]:
    meanings = setting_meanings()
    for name, struct in _TABLES.items():
        heading = f"[[{name}]]" if struct in _SEVERAL else f"[{name}]"
        for field in msgspec.structs.fields(struct):
            key = field.encode_name
            default = "" if f"{name}.{key}" in _TABLES else _default(field)
            yield f"`{heading}` `{key}`", default, meanings.get(f"{name}.{key}", "")


def setting_meanings() -> dict[str, str]:
    """Return what every key means: as it is written here, or below the field in its class."""
    own: dict[str, type[msgspec.Struct]] = {
        "inference.structured_outputs": StructuredSettings,
        "reasoning_formats": ReasoningFormat,
    }
    told = {
        f"{name}.{field}": text for name, struct in own.items() for field, text in _field_docstrings(struct).items()
    }
    formats_of = {f"reasoning_formats.{name}": text for name, text in FORMAT_MEANINGS.items()}
    return told | formats_of | MEANINGS


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return "" if value is None else f"`{_shown(value)}`"


# What the fields of a format mean that need no docstring beside the class's own.
FORMAT_MEANINGS = {
    "name": "any name; case, `-` and `_` make no difference when it is looked up",
    "families": "the models, for people",
    "notes": "whatever else is worth knowing",
}


def format_keys() -> str:
    """Every key of a reasoning format."""
    meanings = FORMAT_MEANINGS | _field_docstrings(ReasoningFormat)
    fields = msgspec.structs.fields(ReasoningFormat)
    rows = ((f"`{field.name}`", _default(field), meanings[field.name]) for field in fields)
    return table(("key", "default", "meaning"), rows)


def _field_docstrings(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the text below each field of a class."""
    parsed = ast.parse(inspect.getsource(struct)).body[0]
    assert isinstance(parsed, ast.ClassDef)
    pairs = zip(parsed.body, parsed.body[1:], strict=False)
    return {
        field.target.id: " ".join(inspect.cleandoc(below.value.value).split())
        for field, below in pairs
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def reasoning_formats() -> str:
    """Every built-in format with an example."""
    return table(("format", "also called", "example", "models"), map(_reasoning_format, formats().values()))


def _reasoning_format(row: ReasoningFormat) -> tuple[str, ...]:
    example = example_of(row).replace("\n", "\\n")
    return f"`{row.name}`", code(row.aliases), f"`{example}`" if example else "", ", ".join(row.families)


def errors() -> str:
    """Every error of a call."""
    columns = ("class", "`code`", "status", "whose turn", "another try", "what happened")
    return table(columns, map(_error, _below(BardoError)))


def _below(parent: type[BardoError]) -> Iterator[type[BardoError]]:
    for child in parent.__subclasses__():
        if child.__module__ in (BardoError.__module__, PaymentRefused.__module__):
            yield child
            yield from _below(child)


def _error(error: type[BardoError]) -> tuple[str, ...]:
    own = issubclass(error, UpstreamRefused)
    retryable = "by its status" if own else "yes" if error.retryable else "no"
    said = (error.__doc__ or "").partition("\n")[0]
    status = "the provider's" if own else str(error.status)
    return f"`{error.__name__}`", f"`{error.__new__(error).code}`", status, _turn(error), retryable, said


def _turn(error: type[BardoError]) -> str:
    turns = ((CallerError, "the caller's"), (OperatorError, "the operator's"), (ProviderError, "the provider's"))
    return next((whose for parent, whose in turns if issubclass(error, parent)), "bardo's")


def retryable_statuses() -> str:
    """The statuses of a provider after which another provider is tried."""
    return code(map(str, sorted(RETRYABLE_STATUSES))) + "\n"


def simulators() -> str:
    """Every simulated provider."""
    return table(("simulator", "preset in `bardo.toml`", "models it lists"), map(_simulator, presets()))


def _simulator(name: str) -> tuple[str, ...]:
    provider = PRESETS[name]
    return f"`{name}`", f"`{provider.catalog_name}`", code(provider.models)


def portable_budgets() -> str:
    """What each level is worth in tokens."""
    return table(("level", "tokens"), ((f"`{effort}`", f"{PORTABLE.tokens(effort):,}") for effort in EFFORTS))


POLICIES: dict[str, ReasoningPolicy | None] = {
    "off": ReasoningPolicy(mode="off"),
    **{effort: ReasoningPolicy(mode="effort", effort=effort) for effort in EFFORTS},
    **{f"budget {tokens}": ReasoningPolicy(mode="budget", budget=tokens) for tokens in (1000, 5000, 50_000)},
    "auto": ReasoningPolicy(mode="auto"),
    "none": None,
}
# Each way a provider is spoken with, and models that stand for the rest of its rows.
CONTROLLED: dict[tuple[str, str], str] = {
    ("anthropic", "anthropic_messages"): "claude-3-7-sonnet-20250219 claude-sonnet-4-5 claude-opus-4-5 claude-opus-4-6 "
    "claude-opus-4-8 claude-sonnet-5 claude-opus-5 claude-fable-5-1 claude-opus-5-5 claude-sonnet-5-5 claude-haiku-5-5 claude-next-9",
    (
        "openai",
        "openai_responses",
    ): "o3 gpt-5 gpt-5-pro gpt-5.1 gpt-5.4 gpt-5.5-pro gpt-5.6-sol gpt-6-astra gpt-4o gpt-9",
    ("openai-chat", "openai_chat"): "o4-mini gpt-5-mini gpt-5.1 gpt-6-luna gpt-5.1-chat-latest",
    (
        "gemini",
        "gemini",
    ): "gemini-2.5-pro gemini-2.5-flash gemini-2.5-flash-lite gemini-3-pro-preview gemini-3-flash-preview "
    "gemini-3.8-flash gemini-4-argon gemma-3-27b-it",
    ("gemini-interactions", "gemini_interactions"): "gemini-2.5-flash gemini-3-flash-preview",
    ("gemini-openai-compat", "openai_chat"): "gemini-2.5-pro gemini-3.5-flash",
    ("deepseek", "openai_chat"): "deepseek-v4-flash deepseek-reasoner",
    ("deepseek", "anthropic_messages"): "deepseek-v4-flash",
    ("deepseek-responses", "openai_responses"): "deepseek-v4-flash",
    ("qwen", "openai_chat"): "qwen-plus qwen3-32b qwen3.6-plus qwen3.8-max qwq-32b",
    (
        "openrouter",
        "openai_chat",
    ): "anthropic/claude-haiku-4.5 anthropic/claude-opus-4.8 openai/gpt-5.1 openai/gpt-oss-120b "
    "google/gemini-3-pro-preview qwen/qwen3.6-27b z-ai/glm-4.6 x-ai/grok-4.5 inception/mercury-2",
    ("openrouter-responses", "openai_responses"): "openai/gpt-5.6-sol anthropic/claude-sonnet-4.5",
    ("vercel", "openai_chat"): "anthropic/claude-sonnet-4 openai/gpt-5",
    ("venice", "openai_chat"): "claude-opus-4-6 openai-gpt-52 qwen3-6-27b zai-org-glm-4.7 grok-4-3",
    ("bankr", "openai_chat"): "claude-opus-4.8 gpt-5.4 kimi-k2.5",
    ("blockrun", "openai_chat"): "anthropic/claude-haiku-4.5 anthropic/claude-opus-4.8 openai/gpt-5.4",
    ("xai", "openai_chat"): "grok-3-mini grok-4 grok-4.3 grok-4.5 grok-4.6 grok-4.20-multi-agent",
    ("xai-responses", "openai_responses"): "grok-4.3",
    ("groq", "openai_chat"): "openai/gpt-oss-120b qwen/qwen3-32b llama-3.3-70b-versatile",
    ("mistral", "openai_chat"): "mistral-small-2603 magistral-medium-latest mistral-large-latest",
    ("cohere", "cohere"): "command-a-reasoning-08-2025 north-mini-code command-r-plus",
    (
        "bedrock",
        "bedrock_converse",
    ): "us.anthropic.claude-sonnet-4-5-20250929-v1:0 us.anthropic.claude-opus-4-8 openai.gpt-oss-120b-1:0 "
    "us.amazon.nova-2-lite-v1:0 qwen.qwen3-32b-v1:0 zai.glm-4.7-flash moonshotai.kimi-k2.5",
    ("bedrock-invoke", "bedrock_invoke"): "us.anthropic.claude-haiku-4-5-20251001-v1:0",
    ("together", "openai_chat"): "openai/gpt-oss-20b deepseek-ai/DeepSeek-V4 Qwen/Qwen3.5-9B",
    ("fireworks", "openai_chat"): "accounts/fireworks/models/gpt-oss-20b accounts/fireworks/models/qwen3p6-plus "
    "accounts/fireworks/models/glm-5",
    ("cerebras", "openai_chat"): "gpt-oss-120b zai-glm-4.7",
    ("moonshot", "openai_chat"): "kimi-k2.5 kimi-k2.7-code kimi-k3",
    ("kimi-code", "openai_chat"): "kimi-for-coding",
    ("zai", "openai_chat"): "glm-4.6 glm-5.2 glm-5.3",
    ("minimax", "openai_chat"): "MiniMax-M3 MiniMax-M2.5",
    ("ark", "openai_chat"): "doubao-seed-1-8",
    ("perplexity", "openai_chat"): "sonar-reasoning-pro sonar",
    ("nvidia-nim", "openai_chat"): "nvidia/nemotron-3-nano nvidia/llama-3.3-nemotron-super-49b-v1",
    ("huggingface", "openai_chat"): "openai/gpt-oss-120b:groq Qwen/Qwen3.5-9B",
    ("vllm", "openai_chat"): "Qwen/Qwen3-32B openai/gpt-oss-20b deepseek-ai/DeepSeek-V3.1 my-finetune",
    ("sglang", "openai_chat"): "Qwen/Qwen3-32B openai/gpt-oss-20b",
    ("llama-server", "openai_chat"): "Qwen3-1.7B-Q4_K_M gpt-oss-20b my-model",
    ("ollama", "ollama"): "qwen3:4b gpt-oss:20b llama3.1",
    ("ollama-openai", "openai_chat"): "qwen3:4b gpt-oss:20b",
    ("lmstudio", "openai_chat"): "openai/gpt-oss-20b",
    ("lmstudio-responses", "openai_responses"): "openai/gpt-oss-20b",
    ("lmstudio", "lmstudio_chat"): "openai/gpt-oss-20b",
    ("ds4", "openai_chat"): "deepseek-v4-flash",
    ("ds4", "anthropic_messages"): "deepseek-v4-flash",
    ("openai-compatible", "openai_chat"): "any-model",
    ("watsonx", "watsonx_text"): "ibm/granite-3-8b",
}


def reasoning_control() -> str:
    """What is sent, for each way a provider is spoken with."""
    return "\n".join(map(_controlled, CONTROLLED))


def _controlled(place: tuple[str, str]) -> str:
    provider, dialect = place
    rows = [line for model in CONTROLLED[place].split() for line in _forms(ControlTarget(provider, dialect, model))]
    return f"### {provider}, in `{dialect}`\n\n" + table(("model", "policy", "sent"), rows)


def _forms(target: ControlTarget) -> Iterator[tuple[str, ...]]:
    sent: dict[str, list[str]] = {}
    for name, policy in POLICIES.items():
        plan = plan_reasoning(policy, target, max_output_tokens=100_000)
        sent.setdefault(_shown(plan.fields) + _system(plan), []).append(name + _marks(plan))
    for place, (fields, names) in enumerate(sent.items()):
        yield f"`{target.model}`" if place == 0 else "", ", ".join(names), f"`{fields}`"


def _system(plan: ControlPlan) -> str:
    return f" and the system text {_shown(plan.system_text)}" if plan.system_text else ""


def _marks(plan: ControlPlan) -> str:
    """Return what to know of a plan: ↯ off became the least there is, ≈ another amount than asked, ∅ cannot be said, ? unclassified."""
    unsaid = plan.emitted == "nothing" and bool(plan.degraded)
    marks = ("↯", plan.floored), ("≈", plan.clamped), ("∅", unsaid), ("?", plan.unclassified)
    return "".join(f" {mark}" for mark, holds in marks if holds)


def model_facts() -> str:
    """What each row of the catalog says of a model's thinking."""
    columns = ("at", "models", "control", "levels", "budget", "silence", "off")
    return table(columns, (_facts(row) for row in builtin_models().rows))


def _facts(row: ModelRow) -> tuple[str, ...]:
    span = row.budget
    budget = "" if span is None else f"{span.min}–{span.max or 'the limit'}"
    can = {None: "", True: "yes", False: f"no: {row.nearest_off}" if row.nearest_off else "no"}[row.off]
    beside = f", up to effort {row.off_up_to}" if row.off_up_to else ""
    guess = " (by name only)" if row.assumed else ""
    return (
        row.provider,
        code(row.match) + guess,
        code(row.control or ()),
        code(row.efforts or ()),
        budget,
        row.omit or "",
        can + beside,
    )


def parameter_rules() -> str:
    """Which parameters are taken out, limited or renamed."""
    columns = ("rule", "at", "when", "taken out", "otherwise", "why")
    return table(columns, map(_parameter_rule, builtin_parameters().rule))


def _parameter_rule(rule: ParameterRule) -> tuple[str, ...]:
    place = ", ".join((*rule.owners, *rule.dialects, *rule.models)) or "rows that name it"
    ranges = [f"`{name}` beyond {low:g}–{high:g} is taken out" for name, (low, high) in rule.within.items()]
    ranges += [f"`{name}` within {low:g}–{high:g}" for name, (low, high) in rule.limits.items()]
    ranges += [f"`{old}` as `{new}`" for old, new in rule.rename.items()]
    ranges += [f"one of {code(names)}" for names in rule.one_of]
    ranges += [f"at most {rule.choices} answer"] if rule.choices else []
    ranges += [f"at most {rule.stops} stop sequence"] if rule.stops else []
    ranges += ["no forced tool"] if rule.no_forced_tool else []
    when = f"at {rule.level}" if rule.level else rule.when
    return rule.name, place, when, code(rule.drop), "; ".join(ranges), rule.why


def meaningful_fields() -> str:
    """Fields and parts of a request whose loss is refused."""
    rows = builtin_meaningful()
    columns = ("client dialect", "name", "where it matters", "why", "what to do instead")
    fields = [
        (f"`{row.dialect}`", f"`{row.name}`", _where(row), row.why, row.instead)
        for listed in rows.fields.values()
        for row in listed
    ]
    parts = [
        (
            f"`{part.dialect}`",
            code(part.kinds),
            f"a part of a turn of the {' or '.join(part.roles)}",
            "it is content",
            "leave it out",
        )
        for part in rows.parts
    ]
    return table(columns, [*fields, *parts])


def _where(row: MeaningfulField) -> str:
    place = f"its `{row.at}` is " if row.at else ""
    if row.only:
        return place + code(map(_shown, row.only))
    return f"{place}not {code(map(_shown, row.unless))}" if row.unless else "given"


def decisions() -> str:
    """Every decision record, by its title."""
    records = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    titles = (record.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for record in records)
    rows = ((title.partition(" "), record.name) for title, record in zip(titles, records, strict=True))
    return table(("", ""), ((f"[{number}]({name})", title) for (number, _, title), name in rows))


def page_list(folder: str) -> str:
    """Every page of a folder of `docs`, by its title."""
    found = sorted((ROOT / "docs" / folder).glob("*.md"))
    titles = (page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for page in found)
    listed = zip(titles, found, strict=True)
    return "\n".join(f"- [{title}]({folder}/{page.name})" for title, page in sorted(listed))


SECTIONS: dict[str, Callable[[], str]] = {
    "decisions": decisions,
    **{f"pages-{folder}": partial(page_list, folder) for folder in ("tutorials", "how-to", "explanation", "reference")},
    "packages": code_reference.diagram,
    "commands": code_reference.commands,
    "library": code_reference.library,
    "http-endpoints": openapi_reference.endpoints,
    "providers": providers,
    "provider-names": provider_names,
    "provider-traits": provider_traits,
    "quirks": quirks,
    "endpoints": lambda: table(("provider", "its first endpoint", "further ones"), endpoint_reference.endpoints()),
    "loss-ranks": lambda: table(("rank", "differences"), endpoint_reference.ranks()),
    "openai-fields": lambda: table(
        ("Chat Completions", "Responses", "between them"), endpoint_reference.openai_fields()
    ),
    "settings": settings,
    "format-keys": format_keys,
    "reasoning-formats": reasoning_formats,
    "errors": errors,
    "retryable-statuses": retryable_statuses,
    "simulators": simulators,
    "portable-budgets": portable_budgets,
    "reasoning-control": reasoning_control,
    "model-facts": model_facts,
    "parameter-rules": parameter_rules,
    "personal-data": lambda: table(*personal_data()),
    "meaningful-fields": meaningful_fields,
    "compaction-prompt": lambda: f"> {compaction.PROMPT}",
    **{
        name: lambda rows=rows: table(*rows())  # type: ignore[misc]
        for name, rows in (golem_reference.TABLES | routing_reference.TABLES).items()
    },
}


def pages() -> list[Path]:
    """Return the pages that have generated parts."""
    return [page for page in sorted((ROOT / "docs").rglob("*.md")) if _SECTION.search(page.read_text(encoding="utf-8"))]


def renewed(text: str) -> str:
    """Return a page with its generated parts as they should be."""
    return _SECTION.sub(lambda found: f"{found[1]}\n{SECTIONS[found[2]]()}\n{found[3]}", text)


def names(text: str) -> list[str]:
    """Return which generated parts a page has."""
    return [found[2] for found in _SECTION.finditer(text)]


def main() -> None:
    """Renew every page."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if renewed(text) != text:
            page.write_text(renewed(text), encoding="utf-8")
            print(f"renewed {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
