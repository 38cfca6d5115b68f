"""What was meant by names that other programs use for settings of bardo: rows of table, name and what to write."""

from __future__ import annotations

_LAYERS = "[inference.pipeline]"
_MODELS_OF_A_FALLBACK = 'an alias may list several models: [aliases] NAME = ["first/model", "second/model"]'

TABLES = {
    "server": "[gateway]",
    "http_server": "[gateway]",
    "general": "[gateway]",
    "proxy": "[gateway]",
    "provider": "[[providers]]",
    "upstream": "[[providers]]",
    "upstreams": "[[providers]]",
    "model": "[[models]]",
    "price": "[[prices]]",
    "pricing": "[[prices]]",
    "model_list": "[[providers]] with models",
    "alias": "[aliases]",
    "workload": "[workloads.NAME]",
    "router": "[routing]",
    "router_settings": "[routing]",
    "logging": "[log]",
    "timeout": "[timeouts]",
    "thinking": "[reasoning]",
    "structured_outputs": "[inference.structured_outputs]",
    "repair_history": "[inference] repair_history",
    "reasoning_format": "[[reasoning_formats]]",
    "formats": "[[reasoning_formats]]",
    "cache": f"[inference.pipeline.cache], and a profile with the layer below {_LAYERS}",
    "caching": "[inference.caching]",
    "embeddings": "[inference.embeddings]",
    "embedding": "[inference.embeddings]",
    "pipeline": _LAYERS,
    "privacy": f"[inference.pipeline.privacy], and a profile with the layer below {_LAYERS}",
    "injection": f"[inference.pipeline.injection], and a profile with the layer below {_LAYERS}",
    "fallback": "[aliases] with a list of models, which are tried in order",
    "fallbacks": "[aliases] with a list of models, which are tried in order",
    "budget": "usd_per_day or usd_per_month in [[keys]], and what holds for all budgets below [budgets]",
    "key": "[[keys]]",
    "api_keys": "[[keys]]",
    "panel": "panel = true or false below [gateway]",
    "dashboard": "panel = true or false below [gateway]",
    "bot": "[telegram] or [discord]",
    "database": "url_env below [log]",
    "rate_limit": "requests_per_minute in [[keys]]",
    "rate_limits": "requests_per_minute in [[keys]]",
    "batch": "[batches]",
    "x402": "[payments]",
    "otel": "[telemetry]",
    "cors": "allowed_origins below [gateway]",
}
"""What is written in the place of a name at the top of the file."""

_NOTHING = "nothing: "
_KEYS: dict[str, dict[str, str]] = {
    "gateway": {
        "bind": "host",
        "address": "host and port",
        "listen": "host and port",
        "cors": "allowed_origins",
        "origins": "allowed_origins",
        "hosts": "allowed_hosts",
        "budget": "usd_per_day or usd_per_month in [[keys]]",
        "rate_limit": "requests_per_minute in [[keys]]",
        "api_key": "[[keys]], or `bardo keys create NAME`",
        "auth": "[[keys]], or `bardo keys create NAME`",
        "timeout": "[timeouts]",
        "max_body_size": "max_body_bytes",
        "dashboard": "panel",
        "log_level": "nothing: the log level is not configured",
    },
    "log": {
        "file": "path",
        "filename": "path",
        "database": "url_env, the variable that holds the address",
        "level": "nothing: [log] is the log of calls",
        "retention": "retention_days",
    },
    "timeouts": {"read": "first_byte and idle", "request": "total", "timeout": "total", "stream": "idle"},
    "failover": {"fallbacks": "[aliases] with a list of models, which are tried in order"},
    "reasoning": {"effort": "reasoning in [aliases] or [[keys]]", "efort": "reasoning in [aliases] or [[keys]]"},
    "providers": {
        "url": "base_url",
        "api_base": "base_url",
        "endpoint": "base_url",
        "host": "base_url",
        "name": "id",
        "type": "preset, or dialect",
        "kind": "preset, or dialect",
        "provider": "preset",
        "model": 'models = ["…"]',
        "fallbacks": f"nothing: providers are tried in their order; {_MODELS_OF_A_FALLBACK}",
        "budget": "usd_per_day or usd_per_month in [[keys]]",
        "timeout": "[timeouts]",
        "key_env": "api_key_env",
        "rate_limit": "nothing: a provider's own limits are kept by its replies",
    },
    "keys": {
        "name": "id",
        "key": "key_env, the variable that holds the key",
        "env": "key_env",
        "budget": "usd_per_day or usd_per_month",
        "rpm": "requests_per_minute",
        "tpm": "tokens_per_minute",
        "rate_limit": "requests_per_minute",
    },
    "models": {
        "name": 'match = ["…"]',
        "id": 'match = ["…"]',
        "context_window": "context",
        "max_tokens": "output_limit",
    },
}
"""What is written in the place of a key of a table."""


def meant_key(table: str, key: str) -> str:
    """Return what to write for a key that a table does not have, empty where nothing is known of it."""
    if table.startswith("inference.pipeline.") and key in ("enabled", "enable", "on"):
        layer = table.removeprefix("inference.pipeline.")
        return f"leave it out: the profile below {_LAYERS} names which layers run, and [{table}] says how {layer} does"
    found = _KEYS.get(table, {}).get(key, "")
    if found.startswith(_NOTHING):
        return f"leave it out: {found.removeprefix(_NOTHING)}"
    return f"write {found}" if found else ""
