"""What replies say that only their price depends on, dialect by dialect, and the cost that a provider reports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.accounting.cost import cost_of
from bardo.dialects.anthropic_messages.usage import decode_usage as anthropic_usage
from bardo.dialects.bedrock_converse.usage import decode_usage as bedrock_usage
from bardo.dialects.cohere.usage import decode_usage as cohere_usage
from bardo.dialects.gemini.reply_in import GeminiDecoder
from bardo.dialects.gemini.usage import decode_usage as gemini_usage
from bardo.dialects.gemini_interactions.usage import decode_usage as interactions_usage
from bardo.dialects.openai_chat.usage import decode_usage as chat_usage
from bardo.dialects.openai_responses.reply_in import OutputDecoder
from bardo.dialects.openai_responses.usage import decode_usage as responses_usage
from bardo.replies.typed_validation import added
from bardo.streams.frames import Frame
from bardo.surfaces.library.decoding import provider_row
from bardo.values.events import UsageUpdate
from bardo.values.usage import Usage, UsageDetails

COUNTS = {"prompt_tokens": 100, "completion_tokens": 10}


def chat(raw: dict[str, Any], **beside: Any) -> Usage:
    return chat_usage({**COUNTS, **raw}, excludes_reasoning=None, **beside)[0]


def read(decoder: Any, body: dict[str, Any]) -> Usage:
    """Return the usage that a decoder reads of a whole body."""
    events = [*decoder.feed(Frame(json.dumps(body).encode())), *decoder.finish()]
    return next(event.usage for event in events if isinstance(event, UsageUpdate))


def responses(*items: dict[str, Any], **beside: Any) -> Usage:
    body = {"object": "response", "status": "completed", "output": list(items), **beside}
    return read(OutputDecoder(provider_row("openai")), {**body, "usage": {"input_tokens": 1, "output_tokens": 1}})


def gemini_grounded(grounding: dict[str, Any]) -> Usage:
    candidate = {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP", "groundingMetadata": grounding}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1}
    return read(GeminiDecoder(), {"candidates": [candidate], "usageMetadata": usage})


DETAILS: list[tuple[str, Usage, UsageDetails | None]] = [
    ("plain", chat({}), None),
    ("no tier", chat({}, tier=None), None),
    (
        "sound",
        chat({"prompt_tokens_details": {"audio_tokens": 60}, "completion_tokens_details": {"audio_tokens": 7}}),
        UsageDetails(audio_input_tokens=60, audio_output_tokens=7),
    ),
    ("tier of Chat", chat({}, tier="flex"), UsageDetails(service_tier="flex")),
    ("searches of a gateway", chat({"server_tool_use": {"web_search_requests": 2}}), UsageDetails(searches=2)),
    (
        "tier of Responses",
        responses_usage({"input_tokens": 1, "output_tokens": 1}, None, "priority")[0],
        UsageDetails(service_tier="priority"),
    ),
    (
        "Messages",
        anthropic_usage(
            {
                "input_tokens": 1,
                "output_tokens": 1,
                "cache_creation_input_tokens": 30,
                "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
                "server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 0},
                "service_tier": "standard",
            }
        )[0],
        UsageDetails(cache_write_1h_tokens=20, searches=3, service_tier="standard"),
    ),
    (
        "a fast answer",
        anthropic_usage({"input_tokens": 1, "output_tokens": 1, "speed": "fast", "service_tier": "standard"})[0],
        UsageDetails(service_tier="fast"),
    ),
    (
        "Gemini",
        gemini_usage(
            {
                "promptTokenCount": 100,
                "candidatesTokenCount": 50,
                "totalTokenCount": 150,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 40}, {"modality": "AUDIO", "tokenCount": 60}],
                "cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 25}],
                "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 50}],
                "trafficType": "ON_DEMAND_PRIORITY",
            }
        )[0],
        UsageDetails(audio_input_tokens=60, cached_audio_tokens=25, image_output_tokens=50, service_tier="priority"),
    ),
    (
        "searches of OpenAI, by its items",
        responses(
            {"type": "web_search_call", "action": {"type": "search", "query": "a"}},
            {"type": "web_search_call", "action": {"type": "open_page", "url": "https://a.example"}},
            {"type": "web_search_call"},
        ),
        UsageDetails(searches=2),
    ),
    (
        "searches of OpenAI, by its count",
        responses({"type": "web_search_call"}, tool_usage={"web_search": {"num_requests": 3}}),
        UsageDetails(searches=3),
    ),
    *(
        (f"a {kind} of OpenAI", responses({"type": kind}), UsageDetails(unpriced_tools=1))
        for kind in ("file_search_call", "code_interpreter_call", "image_generation_call", "shell_call")
    ),
    (
        "tools of OpenAI with a price of their own",
        responses({"type": "code_interpreter_call"}, {"type": "file_search_call"}, {"type": "mcp_call"}),
        UsageDetails(unpriced_tools=2),
    ),
    ("no tools of OpenAI", responses(tool_usage={"image_gen": {"total_tokens": 0}, "web_search": {"num_requests": 0}}), None),
    (
        "pictures that OpenAI drew",
        responses(tool_usage={"image_gen": {"total_tokens": 7}}),
        UsageDetails(unpriced_tools=1),
    ),
    ("searches of Gemini", gemini_grounded({"webSearchQueries": ["", "a", "b"]}), UsageDetails(searches=2)),
    ("maps of Gemini", gemini_grounded({"groundingChunks": [{"maps": {"uri": "u"}}]}), UsageDetails(unpriced_tools=1)),
    (
        "searches of an interaction",
        interactions_usage(
            {"total_input_tokens": 1, "total_output_tokens": 1, "grounding_tool_count": [{"type": "google_search", "count": 2}]}
        )[0],
        UsageDetails(searches=2),
    ),
    (
        "traffic that was paid before",
        gemini_usage({"promptTokenCount": 1, "candidatesTokenCount": 1, "trafficType": "PROVISIONED_THROUGHPUT"})[0],
        UsageDetails(service_tier="provisioned_throughput"),
    ),
    (
        "Converse",
        bedrock_usage(
            {
                "inputTokens": 1,
                "outputTokens": 1,
                "cacheWriteInputTokens": 9,
                "cacheDetails": [{"ttl": "5m", "inputTokens": 4}, {"ttl": "1h", "inputTokens": 5}],
            }
        )[0],
        UsageDetails(cache_write_1h_tokens=5),
    ),
    (
        "Cohere",
        cohere_usage({"tokens": {"input_tokens": 500, "output_tokens": 9}, "billed_units": {"input_tokens": 4, "output_tokens": 9}})[0],
        UsageDetails(billed_input_tokens=4, billed_output_tokens=9),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("usage", "details"), [case[1:] for case in DETAILS], ids=[case[0] for case in DETAILS])
def test_what_the_price_depends_on_is_read(usage: Usage, details: UsageDetails | None) -> None:
    assert usage.details == details


HOSTILE: list[Any] = [[], 7, "x", {"modality": 3}, [None], [{"modality": "AUDIO", "tokenCount": "many"}], {"a": {}}]


@pytest.mark.parametrize("value", HOSTILE)
def test_what_is_no_count_is_left_out(value: Any) -> None:
    given = {"prompt_tokens_details": value, "server_tool_use": value}
    assert chat(given, tier=value if not isinstance(value, str) else None).input_tokens == 100
    assert anthropic_usage({"input_tokens": 1, "output_tokens": 1, "cache_creation": value, "server_tool_use": value})[
        0
    ].reported
    details = dict.fromkeys(("promptTokensDetails", "cacheTokensDetails", "candidatesTokensDetails"), value)
    assert gemini_usage({"promptTokenCount": 1, "candidatesTokenCount": 1, **details})[0].reported
    assert bedrock_usage({"inputTokens": 1, "outputTokens": 1, "cacheDetails": value})[0].reported
    assert responses({"type": "web_search_call", "action": value}, tool_usage=value).details == UsageDetails(searches=1)
    assert gemini_usage({"promptTokenCount": 1, "candidatesTokenCount": 1}, grounding=[value])[0].reported
    assert gemini_grounded({"webSearchQueries": value, "groundingChunks": value}).reported
    assert interactions_usage({"total_input_tokens": 1, "grounding_tool_count": value})[0].reported


def test_a_cut_tier_is_no_memory_of_the_client() -> None:
    details = chat({}, tier="x" * 10_000).details
    assert details is not None
    assert len(details.service_tier) < 100


REPORTED: list[tuple[str, Usage, int]] = [
    ("OpenRouter", chat({"cost": 0.00014135}), 141_350),
    (
        "OpenRouter with the caller's key: its fee and the maker's price",
        chat({"cost": 0.00005, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.001}}),
        1_050_000,
    ),
    (
        "OpenRouter without: the maker's price is inside",
        chat({"cost": 0.00005, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.00005}}),
        50_000,
    ),
    ("Perplexity", chat({"cost": {"input_tokens_cost": 0.00001, "request_cost": 0.005, "total_cost": 0.00501}}), 5_010_000),
    ("Venice", chat({}, cost={"usd": 0.00021, "diem": 0}), 210_000),
    ("xAI", chat({"cost_in_usd_ticks": 37_756_000}), 3_775_600),
    ("xAI, Responses", responses_usage({"input_tokens": 1, "output_tokens": 1, "cost_in_usd_ticks": 12_345_000}, None)[0], 1_234_500),
]  # fmt: skip


@pytest.mark.parametrize(("usage", "nanos"), [case[1:] for case in REPORTED], ids=[case[0] for case in REPORTED])
def test_the_cost_that_a_provider_reports_is_read_to_the_last_digit(usage: Usage, nanos: int) -> None:
    cost = cost_of(None, usage)
    assert (cost.nanos, cost.reported_nanos) == (nanos, nanos)


def test_two_replies_of_one_answer_add_up() -> None:
    one = Usage(input_tokens=1, details=UsageDetails(searches=2, service_tier="flex"))
    other = Usage(input_tokens=1, details=UsageDetails(searches=1, audio_input_tokens=4, service_tier="flex"))
    assert added(one, other).details == UsageDetails(searches=3, audio_input_tokens=4, service_tier="flex")
    assert added(one, Usage(input_tokens=1)).details == one.details
