"""Token counts of the Responses dialect: of replies, and of requests at `POST /v1/responses/input_tokens`.

`input_tokens` includes the cached ones and `output_tokens` the reasoning, which is bardo's own algebra.
"""

from __future__ import annotations

import msgspec

from bardo.dialects.openai_responses.request_in import decode_request
from bardo.dialects.shared.dialect import CountForm, count_of, with_bardo
from bardo.dialects.shared.json_values import JsonObject, JsonValue, encode_json
from bardo.dialects.shared.usage import (
    NO_TOOLS,
    ToolCounts,
    cache_within_input,
    doubted,
    openai_details,
    output_with_reasoning,
    token_count,
)
from bardo.values.degradation import Degradation
from bardo.values.operations import TokenCount
from bardo.values.usage import Usage, estimate_tokens
from bardo.values.wire import WireRequest

# One tick of xAI is a ten-thousand-millionth of a dollar (its recorded prices give this to the last digit).
_TICKS = 1e10


def decode_usage(
    raw: JsonObject, excludes_reasoning: bool | None, tier: JsonValue = None, tools: ToolCounts = NO_TOOLS
) -> tuple[Usage, tuple[Degradation, ...]]:
    """Return the counts, and what about them could not be believed; the service `tier` and the `tools` stand beside them."""
    into, out = _object(raw, "input_tokens_details"), _object(raw, "output_tokens_details")
    # Copilot has been seen to count reasoning at the top level.
    told = out if "reasoning_tokens" in out else raw
    counted = token_count(raw.get("input_tokens"))
    output, reasoning, corrected = output_with_reasoning(
        token_count(raw.get("output_tokens")),
        token_count(told.get("reasoning_tokens")),
        prompt=counted,
        total=token_count(raw.get("total_tokens")),
        excludes_reasoning=excludes_reasoning,
    )
    cached, written, capped = cache_within_input(
        counted, token_count(into.get("cached_tokens")), token_count(into.get("cache_write_tokens"))
    )
    usage = Usage(
        input_tokens=counted,
        output_tokens=output,
        reasoning_tokens=reasoning,
        cached_input_tokens=cached,
        cache_write_tokens=written,
        cost_usd=_cost(raw),
        details=openai_details(raw, into, out, tier, tools),
        raw=raw,
    )
    counts = {**into, **told, **{name: raw.get(name) for name in ("input_tokens", "output_tokens")}}
    doubts = [doubt for name in _COUNTS for doubt in doubted(f"usage.{name}", counts.get(name))]
    return usage, (*doubts, *corrected, *capped)


def encode_usage(usage: Usage, thinking: str = "") -> JsonObject | None:
    """Return the usage object for a client, or None if nothing was reported.

    A provider's own object of this shape is given as it came where it says just that, and completed where it does not: counts the
    official types require are 0 where they are not known. Tokens of thinking that were not counted are estimated from the `thinking` that
    the client gets, and `tokens_approx` beside them says so.
    """
    raw = usage.raw if isinstance(usage.raw, dict) and _is_own(usage.raw) else {}
    if not usage.reported:
        return raw or None
    # Whether a client reads the counts from the provider's own object, all that it looks for.
    into, out = _object(raw, "input_tokens_details"), _object(raw, "output_tokens_details")
    told = (raw.get("input_tokens"), raw.get("output_tokens"), into.get("cached_tokens"), out.get("reasoning_tokens"))
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens, usage.reasoning_tokens)
    if None not in told and told == counts and into.get("cache_write_tokens") == usage.cache_write_tokens:
        return raw
    cache = {"cached_tokens": usage.cached_input_tokens or 0, "cache_write_tokens": usage.cache_write_tokens or 0}
    thought: JsonObject = {"reasoning_tokens": usage.reasoning_tokens}
    if usage.reasoning_tokens is None:
        # Thinking is a part of the output, so that no estimate of it is larger.
        estimated = min(estimate_tokens(thinking), usage.output_tokens or 0)
        thought = {"reasoning_tokens": estimated, "tokens_approx": True}
    return {
        **raw,
        "input_tokens": usage.input_tokens or 0,
        "input_tokens_details": {**_object(raw, "input_tokens_details"), **cache},
        "output_tokens": usage.output_tokens or 0,
        "output_tokens_details": {**_object(raw, "output_tokens_details"), **thought},
        "total_tokens": (usage.input_tokens or 0) + (usage.output_tokens or 0),
    }


def _is_own(raw: JsonObject) -> bool:
    # An Anthropic object has input_tokens and output_tokens too: the total, and no cache count beside it, tell them apart.
    named = "total_tokens" in raw or "input_tokens_details" in raw
    return named and "input_tokens" in raw and "cache_read_input_tokens" not in raw


_COUNTS = ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "cache_write_tokens")


def _cost(raw: JsonObject) -> float | None:
    for name, unit in (("cost", 1.0), ("cost_in_usd_ticks", _TICKS)):
        value = raw.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return value / unit
    return None


def _object(raw: JsonObject, name: str) -> JsonObject:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}


# What the endpoint takes, by OpenAI's reference of 2026-11; it refuses any other field.
_COUNTED_FIELDS = (
    "conversation", "input", "instructions", "model", "parallel_tool_calls", "personality", "previous_response_id",
    "reasoning", "text", "tool_choice", "tools", "truncation",
)  # fmt: skip


def _encode_request(wire: WireRequest, model: str) -> WireRequest:
    body = msgspec.json.decode(wire.body)
    taken = {name: body[name] for name in _COUNTED_FIELDS if name in body}
    return msgspec.structs.replace(wire, path="responses/input_tokens", body=encode_json(taken))


def _encode_reply(count: TokenCount) -> bytes:
    fields: JsonObject = {"object": "response.input_tokens", "input_tokens": count.input_tokens}
    return encode_json(with_bardo(fields, {"tokens_approx": True} if count.approx else {}))


TOKEN_COUNT = CountForm(
    encode_request=_encode_request,
    decode_reply=lambda body: count_of(body, "input_tokens"),
    decode_request=lambda body, arrival: decode_request(body, arrival),
    encode_reply=_encode_reply,
)
