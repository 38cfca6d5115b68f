"""What the keys of `[inference.pipeline]` and of each layer mean."""

from __future__ import annotations

import msgspec
from context_meanings import CONTEXT_MEANINGS, CONTEXT_TABLES
from privacy_meanings import PRIVACY_MEANINGS, PRIVACY_TABLES

from bardo.adapters.config.pipeline import (
    AffinitySettings,
    CacheSettings,
    ClassifySettings,
    InjectionSettings,
    PipelineSettings,
    PrefilterSettings,
    ToolsSettings,
)

PIPELINE_TABLES: dict[str, type[msgspec.Struct]] = {
    "inference.pipeline": PipelineSettings,
    "inference.pipeline.cache": CacheSettings,
    "inference.pipeline.prefilter": PrefilterSettings,
    **PRIVACY_TABLES,
    "inference.pipeline.injection": InjectionSettings,
    "inference.pipeline.affinity": AffinitySettings,
    **CONTEXT_TABLES,
    "inference.pipeline.tools": ToolsSettings,
    "inference.pipeline.classify": ClassifySettings,
}
PIPELINE_MEANINGS = {
    "inference.pipeline": "the layers that process calls before they are sent: the keys below",
    "inference.pipeline.profile": "whose layers work on calls that name no profile: `minimal`, `fast`, `standard`, `full`, one of your "
    "own, or empty for none. See [pipeline profiles](../how-to/use-pipeline-profiles.md)",
    "inference.pipeline.profiles": 'profiles of your own: `fewer = { layers = ["prefilter", "affinity"] }`',
    "inference.pipeline.locked": "layers that a call cannot turn off where its profile has them",
    "inference.pipeline.embedding": "a folder with `model.onnx` and `tokenizer.json`, by which layers compare texts (`bardo[onnx]`); "
    "empty: the table of vectors that ships with bardo",
    "inference.pipeline.cache": "`cache`, which answers equal requests with [kept replies](../how-to/cache-replies.md): the "
    "keys below",
    "inference.pipeline.cache.store": "where replies are kept: `memory`, the path of an SQLite file, or the address of PostgreSQL "
    "(`postgresql+psycopg://…`), Redis or Valkey (`redis://…`, with `bardo[redis]`)",
    "inference.pipeline.cache.store_env": "the variable that holds the address, where it has a password",
    "inference.pipeline.cache.timeout_seconds": "how long a store may take to find a reply before the provider is asked",
    "inference.pipeline.cache.ttl_seconds": "how long a reply is kept; `BARDO_INFERENCE_CACHE_TTL` overrides it",
    "inference.pipeline.cache.ttl_seconds_at": "other times for some models and workloads: "
    '`{ "openai/*" = 3600, "heartbeat_t1" = 0 }`; 0 keeps none',
    "inference.pipeline.cache.max_entries": "how many replies are kept at most",
    "inference.pipeline.cache.max_bytes": "how many bytes are kept at most",
    "inference.pipeline.cache.max_entries_per_tenant": "how many replies of one tenant",
    "inference.pipeline.cache.max_bytes_per_tenant": "how many bytes of one tenant",
    "inference.pipeline.cache.max_reply_bytes": "a larger reply is not kept",
    "inference.pipeline.cache.allow": "reasons of refusal that do not count: `multi_turn`, `tools`, `time_words`, `pii`, "
    "`sampling`, `media`",
    "inference.pipeline.cache.max_temperature": "a call with a higher temperature wants another answer each time, and is not answered so",
    "inference.pipeline.cache.single_flight": "whether only one of several equal concurrent calls is sent, and others wait for its reply",
    "inference.pipeline.cache.wait_seconds": "how long a call waits for the reply to an equal one",
    "inference.pipeline.cache.semantic": "what becomes of a question that is "
    "[similar to an earlier one](../how-to/cache-replies.md#similar-questions): `shadow`, the provider answers and its reply is "
    "compared with the kept one; `serve`, the kept one is given where errors stay within `max_false_hit`; `off`",
    "inference.pipeline.cache.max_false_hit": "the greatest share of replies to similar questions that may be wrong: nothing is "
    "served before comparisons have shown that it is less",
    "inference.pipeline.cache.min_cosine": "the least similarity of two questions, from 0 to 1; unset: 0.70 with a model in ONNX, "
    "0.55 with the table that ships",
    "inference.pipeline.cache.recheck_share": "the share of calls that could be served so and are asked all the same, to go on comparing",
    "inference.pipeline.cache.max_questions": "how many questions each process searches; without `bardo[vectors]` 2,000 of those "
    "that differ in nothing else",
    "inference.pipeline.max_work_seconds": "seconds of the processor that the layers of one request of more than 50,000 characters may "
    "take together: a layer for which there is no time is left out, with a degradation, and one that masks refuses the request",
    "inference.pipeline.own": "the settings of layers from other packages, a table for each",
    "inference.pipeline.classify": "`classify`, which labels requests: the keys below. See "
    "[classify requests](../how-to/classify-requests.md)",
    "inference.pipeline.classify.heads": "a file that `bardo classify train` wrote; empty: the heads that ship",
    "inference.pipeline.classify.rules_only": "whether requests are labelled by words and lengths alone, without vectors",
    "inference.pipeline.classify.block": 'labels that are refused, with the probability from which: `{ "safety.unsafe" = 0.95 }`; '
    "by default nothing is refused",
    "inference.pipeline.classify.needs": "what calls need that have certain labels: "
    '`[{ when = { domain = "code" }, quality = "high" }]`; also `probability` (0.6), `cost_sensitivity`, `max_latency_ms` and `prefer`',
    "inference.pipeline.prefilter": "`prefilter`, which passes over targets whose window is too short for a request: the keys below",
    "inference.pipeline.prefilter.caps": "what some calls may not ask, a table for each: `workloads` (globs) and `vitality_below` say "
    "whose calls, `models` (globs), `most_usd_per_million` and `most_prompt_tokens` what they may ask, `why` what the caller is told",
    "inference.pipeline.prefilter.margin": "the share by which an estimated prompt may exceed a context window before the target is "
    "skipped",
    "inference.pipeline.prefilter.tokenizers": "files of exact tokenizers, by globs of model names: "
    '`{ "qwen3*" = "qwen3/tokenizer.json" }`',
    "inference.pipeline.injection": "`injection`, which looks for instructions in results of tools and documents: the keys below",
    "inference.pipeline.injection.action": "`report` what was found; also `mark` it for the model; also `withhold` calls of tools that "
    "follow it; or `block` the request. See [injections](../how-to/detect-injections.md)",
    "inference.pipeline.injection.threshold": "how certain it has to be, from 0 to 1",
    "inference.pipeline.affinity": "`affinity`, which sends calls where their prompt is probably cached: the keys below. See "
    "[several servers](serve-several-pods.md)",
    "inference.pipeline.affinity.load_bound": "a server with more than this multiple of the mean number of calls in progress is skipped",
    "inference.pipeline.affinity.free_calls": "up to this number of calls in progress, a server counts as idle",
    "inference.pipeline.affinity.balance": "how much a new session counts each token that a server was sent lately: 0 gathers sessions "
    "with the same system prompt at one server, more spreads them",
    "inference.pipeline.affinity.turns_ahead": "how many more calls of a session are expected, where routing weighs its cached prompt "
    "against another model: of few it stays where it is, of many it goes where calls cost less",
    "inference.pipeline.affinity.half_life_seconds": "the assumed half-life of cached prompts in seconds, until it can be "
    "measured",
    **CONTEXT_MEANINGS,
    "inference.pipeline.tools": "`tools`, which chooses the tools of a request: the keys below. See "
    "[many tools](../how-to/use-many-tools.md)",
    "inference.pipeline.tools.most": "how many tools a request gets, besides those that stay in any case: those that the user names, that "
    "`tool_choice` names, and that were called before",
    "inference.pipeline.tools.added": "how many more tools a later question of the user may add to those of a session",
    "inference.pipeline.tools.order": "`client` or `name`: in which order the tools of a new session are sent",
    "inference.pipeline.tools.meta_above": "with more tools than this a model gets `search_tools`, `get_tool_schema` and `execute_tool` in "
    "their place; 0 is never",
    "inference.pipeline.tools.tasks": 'the tools of a workload, or of a label that `classify` finds: `{ billing = ["find_invoice"] }`',
    "inference.pipeline.tools.vectors": "whether tools are compared with the question by vectors too; `false`: by words alone",
    "inference.pipeline.tools.uses": "whether bardo remembers, for each tenant and in memory, for which questions a tool was called",
    "inference.pipeline.tools.most_searches": "how many searches for tools a model may make in one call",
    "inference.pipeline.tools.most_failures": "how many calls with wrong arguments a model may correct in one call",
    "inference.pipeline.tools.check_arguments": "whether the arguments of `execute_tool` must fit the tool's JSON Schema before the client "
    "gets the call; `false`: they are streamed to it as they come",
    **PRIVACY_MEANINGS,
}
