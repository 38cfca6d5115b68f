"""What of a reply a client's dialect cannot express is reported, once; what it can passes without a word."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.dialects import dialect
from bardo.replies.translation_stages import ForeignContent
from bardo.values.errors import BrokenStream
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.usage import Usage

CHAT, RESPONSES, MESSAGES, GEMINI = "openai_chat", "openai_responses", "anthropic_messages", "gemini"
CONVERSE, COHERE, OLLAMA, INTERACTIONS = "bedrock_converse", "cohere", "ollama", "gemini_interactions"
CLIENTS = (CHAT, RESPONSES, MESSAGES, GEMINI, CONVERSE, COHERE, OLLAMA, INTERACTIONS)


def reported(client: str, *events: Event) -> dict[str, Any]:
    """Return what is reported of a reply, by name, with what the client gets instead."""
    stage = ForeignContent(client)
    given = [found for event in events for found in stage.feed(event)] + list(stage.finish())
    assert [event for event in given if type(event) is not Degraded] == list(events)
    return {one.degradation.what: one.degradation.sent for one in given if type(one) is Degraded}


FINISHES = [
    (CHAT, Finish("stop", "end_turn"), None),
    (CHAT, Finish("pause", "pause_turn"), "stop"),
    (CHAT, Finish("unknown", ""), "stop"),
    (RESPONSES, Finish("pause", "pause_turn"), "stop"),
    (RESPONSES, Finish("unknown", "queued"), None),
    (MESSAGES, Finish("pause", "pause_turn"), None),
    (MESSAGES, Finish("unknown", "queued"), "stop"),
    (GEMINI, Finish("pause", "pause_turn"), "unknown"),
    (GEMINI, Finish("unknown", ""), None),
    (GEMINI, Finish("error", "MALFORMED_FUNCTION_CALL"), None),
    (COHERE, Finish("refusal", "content_filter"), "stop"),
    (INTERACTIONS, Finish("pause", "pause_turn"), "length"),
]


@pytest.mark.parametrize(("client", "finish", "sent"), FINISHES, ids=str)
def test_a_finish_without_a_word_is_reported(client: str, finish: Finish, sent: str | None) -> None:
    found = reported(client, UsageUpdate(Usage(input_tokens=3, output_tokens=4, reasoning_tokens=0)), finish)
    assert found == ({"finish_reason": sent} if sent else {})


@pytest.mark.parametrize("client", [CHAT, MESSAGES, OLLAMA])
def test_a_reply_that_its_provider_calls_broken_fails_where_it_would_have_to_be_called_complete(client: str) -> None:
    stage = ForeignContent(client)
    given = [*stage.feed(ContentChunk(0, "Hm")), *stage.feed(Finish("error", "MALFORMED_FUNCTION_CALL"))]
    (failed,) = stage.finish()
    assert given == [ContentChunk(0, "Hm")]
    assert isinstance(failed, Failed)
    assert "MALFORMED_FUNCTION_CALL" in failed.error.message


def test_the_providers_own_error_goes_before_its_word_for_a_broken_reply() -> None:
    stage, own = ForeignContent(CHAT), Failed(BrokenStream("invalid tool generation"))
    given = [*stage.feed(Finish("error", "ERROR")), *stage.feed(own), *stage.finish()]
    assert given == [own]


COUNTS = [
    (CHAT, Usage(), True, []),
    (CHAT, Usage(input_tokens=3), False, ["usage.output_tokens"]),
    (CHAT, Usage(input_tokens=3, output_tokens=4), True, []),
    (RESPONSES, Usage(), True, []),
    (RESPONSES, Usage(input_tokens=3, output_tokens=4), True, ["usage.reasoning_tokens"]),
    (RESPONSES, Usage(input_tokens=3, output_tokens=4), False, []),
    (MESSAGES, Usage(), True, ["usage.input_tokens", "usage.output_tokens"]),
    (MESSAGES, Usage(input_tokens=3, output_tokens=4), True, []),
    (GEMINI, Usage(), True, []),
    (GEMINI, Usage(input_tokens=3, output_tokens=4), True, []),
]


@pytest.mark.parametrize(("client", "usage", "thought", "names"), COUNTS)
def test_a_count_that_nobody_reported_and_the_client_reads_as_0_is_reported(
    client: str, usage: Usage, thought: bool, names: list[str]
) -> None:
    events: list[Event] = [ThinkStart(0), ThinkChunk(0, "Hm")] if thought else []
    # Where a stream begins with the prompt's tokens, the client is told an estimate of them, and of thinking where it must have a number.
    estimated = ("usage.reasoning_tokens", *(("usage.input_tokens",) if client == MESSAGES else ()))
    given = {name: "an estimate" for name in names if name in estimated}
    assert reported(client, *events, UsageUpdate(usage), Finish("stop")) == dict.fromkeys(names, 0) | given


@pytest.mark.parametrize("client", [GEMINI, INTERACTIONS])
@pytest.mark.parametrize("thought", [0, 2])
def test_a_count_that_the_client_reads_from_another_is_reported(client: str, thought: int) -> None:
    usage = Usage(input_tokens=3, reasoning_tokens=thought)
    assert reported(client, UsageUpdate(usage), Finish("stop")) == {"usage.output_tokens": thought}
    assert reported(client, UsageUpdate(Usage(input_tokens=3)), Finish("stop")) == {}
    assert reported(client, UsageUpdate(Usage(reasoning_tokens=thought)), Finish("stop")) == {}


def test_a_count_without_a_place_is_reported() -> None:
    usage = Usage(input_tokens=9, output_tokens=4, reasoning_tokens=2, cached_input_tokens=1, cache_write_tokens=0)
    found = reported(OLLAMA, UsageUpdate(usage), Finish("stop"))
    assert found == {"usage.reasoning_tokens": None, "usage.cached_input_tokens": None}
    assert reported(CHAT, UsageUpdate(usage), Finish("stop")) == {}


# One reply field after another, as its provider's dialect gives it.
FIELDS: dict[str, tuple[str, Event]] = {
    "message.images": (CHAT, ReplyFields(CHAT, {"message.images": [{"type": "image_url"}]}, 0)),
    "message.audio": (CHAT, ReplyFields(CHAT, {"message.audio": [{"data": "AAAA"}]}, 0)),
    "message.annotations": (CHAT, ReplyFields(CHAT, {"message.annotations": [{"type": "url_citation"}]}, 0)),
    "logprobs.content": (CHAT, ReplyFields(CHAT, {"logprobs.content": [{"token": "Hi"}]}, 0)),
    "system_fingerprint": (CHAT, ReplyFields(CHAT, {"system_fingerprint": "fp_1"})),
    "search_results": (CHAT, ReplyFields(CHAT, {"search_results": [{"url": "https://a.example"}]})),
    "citations": (MESSAGES, BlockFields(0, MESSAGES, {"citations": [{"type": "char_location"}]})),
    "stop_details": (MESSAGES, ReplyFields(MESSAGES, {"stop_details": {"category": "cyber"}})),
    "annotations": (RESPONSES, BlockFields(0, RESPONSES, {"annotations": [{"type": "file_citation"}]})),
    "logprobs": (RESPONSES, BlockFields(0, RESPONSES, {"logprobs": ["?"]})),
    "content.image_generation_call": (
        RESPONSES,
        UnknownContent(0, RESPONSES, {"type": "image_generation_call", "result": None, "status": "failed"}),
    ),
    "groundingMetadata": (GEMINI, ReplyFields(GEMINI, {"groundingMetadata": {"webSearchQueries": ["x"]}}, 0)),
    "safetyRatings": (GEMINI, ReplyFields(GEMINI, {"safetyRatings": [{"category": "HARM"}]}, 0)),
    "content.inlineData": (GEMINI, UnknownContent(0, GEMINI, {"inlineData": {"mimeType": "audio/wav", "data": "AA"}})),
    "content.toolCall": (GEMINI, UnknownContent(0, GEMINI, {"thoughtSignature": "AA", "toolCall": {"id": "1"}})),
    "x_groq.seed": (CHAT, ReplyFields(CHAT, {"x_groq": {"id": "req_1", "seed": 7}})),
    "venice_parameters.web_search_citations": (
        CHAT,
        ReplyFields(CHAT, {"venice_parameters": {"web_search_citations": [{"url": "https://a.example"}]}}),
    ),
    "provider": (CHAT, ReplyFields(CHAT, {"provider": "Amazon Bedrock", "seed": 0})),
    "stop_reason": (CHAT, ReplyFields(CHAT, {"stop_reason": "END", "matched_stop": 154829}, 0)),
    "item.phase": (RESPONSES, BlockFields(0, RESPONSES, {"item": {"id": "msg_1", "phase": "commentary"}})),
    "context_management": (MESSAGES, ReplyFields(MESSAGES, {"context_management": {"applied_edits": [{"type": "x"}]}})),
    "trace": (CONVERSE, ReplyFields(CONVERSE, {"trace": {"guardrail": {"modelOutput": ["No."]}}})),
}  # fmt: skip


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", FIELDS)
def test_content_of_another_dialect_is_reported_by_its_name(client: str, name: str) -> None:
    own, event = FIELDS[name]
    assert reported(client, ContentChunk(0, "Hi."), event, event) == ({} if client == own else {name: None})


@pytest.mark.parametrize("client", CLIENTS)
def test_a_second_answer_is_reported_where_there_is_place_for_one(client: str) -> None:
    usage = UsageUpdate(Usage(input_tokens=3, output_tokens=4))
    found = reported(
        client, ContentChunk(0, "Hi."), usage, Finish("stop"), ContentChunk(0, "Ho.", 1), Finish("stop", choice=1)
    )
    assert found == ({} if client in (CHAT, GEMINI) else {"choices": None})


@pytest.mark.parametrize("client", CLIENTS)
def test_the_words_of_a_refusal_are_reported_where_they_are_text(client: str) -> None:
    assert reported(client, RefusalChunk(0, "No.")) == ({} if client in (CHAT, RESPONSES) else {"refusal": "text"})


def test_what_repeats_the_request_or_says_nothing_is_no_loss() -> None:
    echo = ReplyFields(RESPONSES, {"temperature": 1.0, "tools": [], "metadata": {}, "service_tier": "default"})
    empty = ReplyFields(CHAT, {"message.annotations": [], "system_fingerprint": ""}, 0)
    nothing = ReplyFields(CHAT, {"message.audio": [{"data": "", "expires_at": 0}], "base_resp": {"status_code": 0}}, 0)
    final = BlockFields(0, RESPONSES, {"item": {"id": "msg_1", "phase": "final_answer"}, "caller": {"type": "direct"}})
    assert reported(MESSAGES, echo, empty, nothing, final) == {}


def test_the_tier_that_served_is_carried_between_dialects_with_the_same_words_and_else_reported() -> None:
    tier = ReplyFields(CHAT, {"service_tier": "priority", "system_fingerprint": "fp_1"})
    stage = ForeignContent(RESPONSES)
    lost, passed, carried = stage.feed(tier)
    assert type(lost) is Degraded
    assert lost.degradation.what == "system_fingerprint"
    assert (passed, carried) == (tier, ReplyFields(RESPONSES, {"service_tier": "priority"}))
    later = stage.feed(ReplyFields(CHAT, {"usage_breakdown": {"models": {"a": 1}}}))
    response = fold([ReplyStart(id="r", model="m"), passed, carried, *later, Finish("stop")])
    request = Request(model="m", messages=(), dialect=RESPONSES)
    assert b'"service_tier":"priority"' in dialect(RESPONSES).encode_response(response, request)
    assert reported(MESSAGES, tier) == {"service_tier": None, "system_fingerprint": None}


def test_a_caller_without_a_dialect_gets_everything() -> None:
    assert reported("", FIELDS["trace"][1], Finish("unknown")) == {}


def test_what_stands_beside_a_picture_is_reported() -> None:
    call = {
        "type": "image_generation_call",
        "status": "completed",
        "result": "QUJD",
        "revised_prompt": "A cat, asleep.",
    }
    events = ForeignContent("gemini").feed(UnknownContent(0, "openai_responses", call))
    assert [one.degradation.what for one in events if type(one) is Degraded] == [
        "content.image_generation_call.revised_prompt"
    ]
    assert [one.value for one in events if type(one) is UnknownContent and one.dialect == "gemini"] == [
        {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
    ]
