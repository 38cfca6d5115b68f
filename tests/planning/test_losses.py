"""What changes the meaning of a request when it is left out is refused before anything is sent, unless the caller allows the loss."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.exchange import first_attempt
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.values.errors import Unsupported
from bardo.values.request import Request
from bardo.values.wire import Arrival

CHAT, RESPONSES, CLAUDE, GEMINI = "openai_chat", "openai_responses", "anthropic_messages", "gemini"
TARGETS = {
    CHAT: ("openai-chat", "gpt-4o"),
    RESPONSES: ("openai", "gpt-4o"),
    CLAUDE: ("anthropic", "claude-sonnet-4-5"),
    GEMINI: ("gemini", "gemini-2.5-flash"),
    "ollama": ("ollama", "qwen3:4b"),
    "cohere": ("cohere", "command-a-03-2025"),
    "bedrock_converse": ("bedrock", "anthropic.claude-sonnet-4-5"),
}


# Sound travels between these, so it is no loss there.
SOUND_TRAVELS = {CHAT, GEMINI}


def others(name: str, spoken: str) -> dict[str, tuple[str, str]]:
    """Return the targets of other dialects where the case is a loss."""
    kept = SOUND_TRAVELS if "audio" in name else {spoken}
    return {other: place for other, place in TARGETS.items() if other not in kept}


def said(*parts: Any) -> dict[str, dict[str, Any]]:
    """Return the bodies of a user's turn with these parts, by dialect."""
    return {
        CHAT: {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hello."}, *parts]}]},
        RESPONSES: {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Hello."}, *parts]}]},
        CLAUDE: {"max_tokens": 99, "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, *parts]}]},
        GEMINI: {"contents": [{"role": "user", "parts": [{"text": "Hello."}, *parts]}]},
    }


SEARCH = {"type": "file_search", "vector_store_ids": ["vs_1"]}
CLAUDE_SEARCH = {"type": "web_fetch_20250910", "name": "web_fetch"}
FUNCTION = {"type": "function", "name": "look", "parameters": {"type": "object"}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
UPLOADED = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
WAV = {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}

CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "an earlier response": (RESPONSES, {"previous_response_id": "resp_1"}, "previous_response_id"),
    "a conversation": (RESPONSES, {"conversation": {"id": "conv_1"}}, "conversation"),
    "a template": (RESPONSES, {"prompt": {"id": "pmpt_1"}}, "prompt"),
    "a call in the background": (RESPONSES, {"background": True}, "background"),
    "a reference to a stored item": (RESPONSES, {"input": [{"type": "item_reference", "id": "msg_1"}]}, "item_reference"),
    "a file": (RESPONSES, said({"type": "input_file", "file_id": "file_1"})[RESPONSES], "input_file"),
    "a search that is named": (RESPONSES, {"tools": [SEARCH, FUNCTION], "tool_choice": SEARCH}, "tool_choice"),
    "a search that must be made": (RESPONSES, {"tools": [SEARCH], "tool_choice": "required"}, "tool_choice"),
    "a call that must be made, a search among them": (
        RESPONSES,
        {"tools": [SEARCH, FUNCTION], "tool_choice": "required"},
        "tool_choice",
    ),
    "audio": (CHAT, said(AUDIO)[CHAT], "input_audio"),
    "a thread": (CLAUDE, {"thread": {"type": "continue", "previous_message_id": "msg_1"}}, "thread"),
    "a thread that begins": (CLAUDE, {"thread": {"type": "create"}}, "thread"),
    "a container": (CLAUDE, {"container": "container_1"}, "container"),
    "a document": (CLAUDE, said(UPLOADED)[CLAUDE], "document"),
    "Claude's search, named": (
        CLAUDE,
        {"tools": [CLAUDE_SEARCH], "tool_choice": {"type": "tool", "name": "web_fetch"}},
        "tool_choice",
    ),
    "Claude's search alone": (CLAUDE, {"tools": [CLAUDE_SEARCH]}, "tools"),
    "Claude's search, any": (CLAUDE, {"tools": [CLAUDE_SEARCH], "tool_choice": {"type": "any"}}, "tool_choice"),
    "cached content": (GEMINI, {"cachedContent": "cachedContents/1"}, "cachedContent"),
    "audio for Gemini": (GEMINI, said(WAV)[GEMINI], "inlineData"),
}  # fmt: skip


def asked(spoken: str, *, allow: tuple[str, ...] = (), **fields: Any) -> Request:
    body = {"model": "m", **said()[spoken], **fields, **({"bardo": {"allow_loss": allow}} if allow else {})}
    return dialect(spoken).decode_request(msgspec.json.encode(body), Arrival(model="m"))


def target(preset: str, model: str) -> Target:
    row = builtin().provider(preset)
    assert row is not None
    return Target(provider=Provider(id=preset, row=row, base_url="http://host/v1"), model=model)


def planned(place: tuple[str, str], request: Request) -> Attempt:
    return plan(request, target(*place))


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_by_every_provider_of_another_dialect(name: str) -> None:
    spoken, fields, lost = CASES[name]
    for place in others(name, spoken).values():
        with pytest.raises(Unsupported) as refusal:
            planned(place, asked(spoken, **fields))
        assert (refusal.value.param, refusal.value.details["unsupported"]) == (lost, [lost])
        assert f'"allow_loss": ["{lost}"]' in refusal.value.hint


@pytest.mark.parametrize("name", CASES)
def test_it_goes_on_as_it_came_to_the_provider_that_has_it(name: str) -> None:
    spoken, fields, _ = CASES[name]
    written = msgspec.json.decode(planned(TARGETS[spoken], asked(spoken, **fields)).wire.body)
    assert {field: written[field] for field in fields} == fields


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("every", [True, False], ids=["all losses", "this loss"])
def test_a_loss_that_is_allowed_is_reported(name: str, every: bool) -> None:
    spoken, fields, lost = CASES[name]
    for place in others(name, spoken).values():
        assert planned(place, asked(spoken, allow=("*" if every else lost,), **fields)).degraded


def test_a_reference_may_be_an_id_alone() -> None:
    with pytest.raises(Unsupported, match="item_reference"):
        planned(TARGETS[CHAT], asked(RESPONSES, input=[{"id": "msg_1"}]))


def test_another_loss_that_is_allowed_allows_no_more() -> None:
    with pytest.raises(Unsupported):
        planned(TARGETS[CHAT], asked(RESPONSES, allow=("conversation",), previous_response_id="r"))


@pytest.mark.parametrize(
    ("name", "spoken", "fields"),
    [
        ("audio", CHAT, said(AUDIO)[CHAT]),
        ("audio", GEMINI, said(WAV)[GEMINI]),
        ("file_search", RESPONSES, {"tools": [SEARCH], "tool_choice": "required"}),
        ("tools", RESPONSES, {"tools": [SEARCH], "tool_choice": "required"}),
    ],
)
def test_a_loss_may_be_allowed_by_its_plain_name(name: str, spoken: str, fields: dict[str, Any]) -> None:
    assert planned(TARGETS["cohere"], asked(spoken, allow=(name,), **fields)).degraded


HARMLESS: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing in the background": (RESPONSES, {"background": False}),
    "no earlier response": (RESPONSES, {"previous_response_id": None}),
    "a search that may be made": (RESPONSES, {"tools": [SEARCH, FUNCTION], "tool_choice": "auto"}),
    "a function that must be called beside a search": (
        RESPONSES,
        {"tools": [SEARCH, FUNCTION], "tool_choice": {"type": "function", "name": "look"}},
    ),
    "a wish to keep the reply": (RESPONSES, {"store": True}),
    "a key of a cache": (RESPONSES, {"prompt_cache_key": "k"}),
    "Claude's search beside a function": (
        CLAUDE,
        {"tools": [{"name": "f", "input_schema": {"type": "object"}}, CLAUDE_SEARCH]},
    ),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_leaves_the_meaning_alone_is_reported_at_most(name: str) -> None:
    spoken, fields = HARMLESS[name]
    for place in TARGETS.values():
        planned(place, asked(spoken, **fields))


@pytest.mark.parametrize(
    ("place", "spoken", "fields"),
    [
        (("deepseek", "deepseek-v4-flash"), CLAUDE, {"thread": {"type": "create"}}),
        (("llama-server", "m"), CLAUDE, {"container": "c"}),
        (("openrouter", "openai/gpt-5"), RESPONSES, {"previous_response_id": "r"}),
        (("mistral", "mistral-small-latest"), RESPONSES, {"background": True}),
    ],
)
def test_a_provider_of_the_dialect_that_has_no_such_state_is_not_asked(
    place: tuple[str, str], spoken: str, fields: dict[str, Any]
) -> None:
    made = target(*place)
    row = msgspec.structs.replace(made.provider.row, dialect=spoken)
    made = msgspec.structs.replace(made, provider=msgspec.structs.replace(made.provider, row=row))
    with pytest.raises(Unsupported):
        plan(asked(spoken, **fields), made)


def test_a_picture_that_a_provider_cannot_fetch_is_not_left_out() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    with pytest.raises(Unsupported, match="image"):
        planned(TARGETS["ollama"], asked(CHAT, **said(picture)[CHAT]))
    assert planned(TARGETS["ollama"], asked(CHAT, allow=("image",), **said(picture)[CHAT])).degraded


def test_all_that_would_be_lost_is_named_at_once() -> None:
    with pytest.raises(Unsupported) as refusal:
        planned(TARGETS[GEMINI], asked(RESPONSES, previous_response_id="r", background=True))
    assert refusal.value.details == {"unsupported": ["previous_response_id", "background"]}
    assert '["previous_response_id", "background"]' in refusal.value.hint


def test_it_is_refused_among_more_differences_than_are_listed() -> None:
    unknown: dict[str, Any] = {f"field_{number}": number for number in range(500)}
    with pytest.raises(Unsupported, match="previous_response_id"):
        planned(TARGETS[CHAT], asked(RESPONSES, **unknown, previous_response_id="r"))


def test_the_next_provider_that_has_the_state_is_asked() -> None:
    targets = [target(*TARGETS[CHAT]), target(*TARGETS[RESPONSES])]
    attempt = first_attempt(asked(RESPONSES, previous_response_id="r"), targets)
    assert attempt.target is targets[1]
    assert msgspec.json.decode(attempt.wire.body)["previous_response_id"] == "r"


def test_a_hosted_tool_that_must_not_be_called_is_no_reason_to_refuse() -> None:
    tools = [{"type": "web_search"}]
    with pytest.raises(Unsupported):
        planned(TARGETS[CHAT], asked(RESPONSES, tools=tools))
    lost = planned(TARGETS[CHAT], asked(RESPONSES, tools=tools, tool_choice="none")).degraded
    assert "tool web_search" in [one.what for one in lost]


RESULTS_WITH_ANOTHER_NAME: dict[str, dict[str, Any]] = {
    CHAT: {
        "model": "m",
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "name": "other", "content": "b"},
        ],
    },
    GEMINI: {
        "contents": [
            {"role": "user", "parts": [{"text": "a"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "look", "args": {}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "c", "name": "other", "response": {"output": "b"}}}],
            },
        ]
    },
}


@pytest.mark.parametrize("name", ["other", "look"])
@pytest.mark.parametrize("source", RESULTS_WITH_ANOTHER_NAME)
def test_the_name_of_a_result_is_sent_or_reported_where_it_is_not_that_of_its_call(source: str, name: str) -> None:
    body = msgspec.json.encode(RESULTS_WITH_ANOTHER_NAME[source]).replace(b"other", name.encode())
    request = dialect(source).decode_request(body, Arrival(model="m", stream=False))
    for one in (request, msgspec.structs.replace(request, body=None, body_bytes=b"")):
        for preset, model in (*TARGETS.values(), ("gemini-interactions", "gemini-2.5-flash")):
            row = builtin().provider(preset)
            assert row is not None
            attempt = plan(one, Target(provider=Provider(id=preset, row=row, base_url="http://h/v1"), model=model))
            reported = [(loss.asked, loss.sent) for loss in attempt.degraded if loss.what == "tool_result.name"]
            if name == "other" and b'"other"' not in attempt.wire.body:
                assert reported == [("other", "look")], preset
            else:
                assert reported == [], preset
            if row.dialect == source:
                assert f'"{name}"'.encode() in attempt.wire.body
