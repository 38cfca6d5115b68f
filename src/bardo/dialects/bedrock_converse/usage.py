"""Token counts of replies, and of requests at `POST /model/{modelId}/count-tokens`, which takes what Converse takes.

Bedrock's `inputTokens` leave the cache out, which its totals show. Reasoning is never counted apart.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.shared.dialect import CountForm, count_of
from bardo.dialects.shared.json_values import JsonObject, encode_json
from bardo.dialects.shared.usage import bedrock_details, doubted, token_count
from bardo.values.degradation import Degradation
from bardo.values.usage import Usage
from bardo.values.wire import WireRequest

_READ = ("cacheReadInputTokens", "cacheReadInputTokenCount")
_CACHE_WRITE_FIELDS = ("cacheWriteInputTokens", "cacheWriteInputTokenCount")


def decode_usage(raw: JsonObject) -> tuple[Usage, tuple[Degradation, ...]]:
    """Return the counts in our algebra, and what could not be believed."""
    names = ("inputTokens", "outputTokens", _either_name(raw, _READ), _either_name(raw, _CACHE_WRITE_FIELDS))
    fresh, output, cached, written = (token_count(raw.get(name)) for name in names)
    cache = (cached or 0) + (written or 0)
    if fresh is not None and not _is_inside(cache, fresh, output, token_count(raw.get("totalTokens"))):
        fresh += cache
    usage = Usage(
        input_tokens=fresh,
        output_tokens=output,
        cached_input_tokens=cached,
        cache_write_tokens=written,
        details=bedrock_details(raw),
        raw=raw,
    )
    return usage, tuple(doubt for name in names for doubt in doubted(f"usage.{name}", raw.get(name)))


def time_fields(begun: float, total: float) -> JsonObject:
    """Return the latency of a reply, in milliseconds."""
    return {"metrics": {"latencyMs": max(1, round(total * 1e3))}}


def encode_usage(usage: Usage) -> JsonObject:
    """Return the usage object for a client. Counts that were not reported are 0 where the dialect must have a number."""
    raw = usage.raw if _is_own(usage.raw) else {}
    if raw and decode_usage(raw)[0] == usage:
        return raw
    cached, written = usage.cached_input_tokens, usage.cache_write_tokens
    fresh, output = max(0, (usage.input_tokens or 0) - (cached or 0) - (written or 0)), usage.output_tokens or 0
    counts = {
        "inputTokens": fresh,
        "outputTokens": output,
        "totalTokens": fresh + output + (cached or 0) + (written or 0),
        _READ[0]: cached,
        _CACHE_WRITE_FIELDS[0]: written,
    }
    counts_known: JsonObject = {name: value for name, value in counts.items() if value is not None}
    hour = None if usage.details is None else usage.details.cache_write_1h_tokens
    if hour is not None and written is not None:
        lifetimes = (("1h", hour), ("5m", max(0, written - hour)))
        counts_known["cacheDetails"] = [{"inputTokens": count, "ttl": ttl} for ttl, count in lifetimes if count]
    return {**raw, **counts_known}


def _either_name(raw: JsonObject, names: tuple[str, str]) -> str:
    """Return which of two names is there: InvokeModel has only the longer one."""
    return names[0] if raw.get(names[0]) is not None else names[1]


def _is_inside(cache: int, fresh: int, output: int | None, total: int | None) -> bool:
    # In all recorded replies the total is the sum of all; should one count the cache as input, its total tells.
    return 0 < cache <= fresh and total == fresh + (output or 0)


def _is_own(raw: Any) -> bool:
    return isinstance(raw, dict) and ("inputTokens" in raw or "outputTokens" in raw)


# What of a Converse request has tokens, by Amazon's reference of 2026-11; the endpoint refuses any other field.
_COUNTED_FIELDS = ("messages", "system", "toolConfig", "additionalModelRequestFields")


def _encode_request(wire: WireRequest, model: str) -> WireRequest:
    body = msgspec.json.decode(wire.body)
    taken = {name: body[name] for name in _COUNTED_FIELDS if name in body}
    path = f"{wire.path.rpartition('/')[0]}/count-tokens"
    return msgspec.structs.replace(wire, path=path, body=encode_json({"input": {"converse": taken}}))


TOKEN_COUNT = CountForm(encode_request=_encode_request, decode_reply=lambda body: count_of(body, "inputTokens"))
