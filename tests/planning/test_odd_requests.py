"""Requests of every client in odd shapes reach every strict provider: none is refused for what can be said in another way.

The providers are simulators, which refuse what the real ones do; each pair of a client and a provider gets a few drawn requests by day and
many at night.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.odd_requests import CLIENTS, PNG, Drawn, Turn, draw, written
from support.said_and_sent import untold
from support.sampling import sample, seed
from support.simulated_gateway import SimulatedGateway
from support.talk import Answer, path_for

TARGETS = {
    "openai_chat": ("gpt-5-mini", "gpt-4.1"),
    "openai_responses": ("gpt-5-mini",),
    "azure": ("gpt-5-mini",),
    "anthropic": ("claude-sonnet-4-5", "claude-opus-4-8", "claude-sonnet-5-5"),
    "vertex_anthropic": ("claude-opus-4-8",),
    "bedrock": ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-2-lite-v1:0"),
    "gemini": ("gemini-2.5-flash", "gemini-3.6-flash"),
    "gemini_interactions": ("gemini-3-flash-preview",),
    "mistral": ("mistral-small-latest", "magistral-medium-latest"),
    "cohere": ("command-a-03-2025",),
    "ollama": ("qwen3.5:4b",),
    "ollama_native": ("qwen3.5:4b",),
    "vllm": ("mistralai/Mistral-Small-3.2", "Qwen/Qwen3.5-9B"),
    "venice": ("mistral-31-24b",),
    "groq": ("openai/gpt-oss-120b",),
    "cerebras": ("gpt-oss-120b",),
    "deepseek": ("deepseek-chat",),
    "moonshot": ("kimi-k3",),
    "openrouter": ("anthropic/claude-sonnet-4.5",),
    "xai": ("grok-4",),
    "zai": ("glm-5",),
    "qwen": ("qwen3.5-plus",),
    "minimax": ("MiniMax-M2",),
}
PAIRS = [(preset, model, client) for preset, models in TARGETS.items() for model in models for client in CLIENTS]
A_PAIR_AT_NIGHT = 500
BY_DAY = 60


def asked(gateway: SimulatedGateway, client: str, drawn: Drawn) -> Answer:
    return gateway.post(path_for(client, gateway.model), written(client, drawn, gateway.model))


def problems(preset: str, model: str, client: str, seeds: Iterator[str]) -> list[str]:
    """Give what is wrong with the answers to the requests of some seeds."""
    gateway = SimulatedGateway(preset, model)
    found = []
    for name in seeds:
        drawn = draw(name)
        answer = asked(gateway, client, drawn)
        if answer.status != 200:
            why = gateway.refusals[-1] if gateway.refusals else answer.text
            found.append(f"{preset}/{model} from {client}, draw({name!r}): {answer.status} {why[:300]}")
        elif silent := untold(drawn, written(client, drawn, gateway.model), gateway.sent, told(answer)):
            found.append(f"{preset}/{model} from {client}, draw({name!r}): {silent} is changed and not told")
    return found


def told(answer: Answer) -> set[str]:
    """Give what an answer says was changed."""
    return {name.strip() for name in answer.headers.get("x-bardo-degraded", "").split(",")}


def test_no_odd_request_is_refused_for_what_can_be_said_in_another_way() -> None:
    drawn = [(preset, model, client, number) for preset, model, client in PAIRS for number in range(8)]
    found = []
    for preset, model, client, number in sample(drawn, BY_DAY, law="odd requests"):
        found += problems(preset, model, client, iter([f"{preset}-{client}-{number}"]))
    assert not found, "\n".join(found)


@pytest.mark.nightly
@pytest.mark.parametrize(("preset", "model", "client"), PAIRS)
def test_many_odd_requests_of_each_pair_are_answered(preset: str, model: str, client: str) -> None:
    found = problems(preset, model, client, (f"{seed()}-{number}" for number in range(A_PAIR_AT_NIGHT)))
    assert not found, "\n".join(found[:5])


CASES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "the last of two results is missing": (
        "bedrock",
        "us.amazon.nova-2-lite-v1:0",
        "openai_chat",
        {
            "messages": [
                {"role": "user", "content": "Look."},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in "ab"
                    ],
                },
                {"role": "tool", "tool_call_id": "a", "content": "sunny"},
            ]
        },
    ),
    "the user says nothing first": (
        "bedrock",
        "us.amazon.nova-2-lite-v1:0",
        "openai_chat",
        {
            "messages": [
                {"role": "user", "content": ""},
                {"role": "assistant", "content": "Well."},
                {"role": "user", "content": "Go on."},
            ]
        },
    ),
    "an empty text behind a result": (
        "mistral",
        "mistral-small-latest",
        "openai_chat",
        {
            "messages": [
                {"role": "user", "content": "Look."},
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "a", "content": "sunny"},
                {"role": "user", "content": ""},
            ]
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_history_that_was_refused_once_is_taken_and_its_repair_told(name: str) -> None:
    preset, model, client, body = CASES[name]
    gateway = SimulatedGateway(preset, model)
    answer = gateway.post(path_for(client, gateway.model), {"model": gateway.model, **body})
    assert answer.status == 200, answer.text
    assert any(one.startswith(("history.", "messages.")) for one in told(answer))


@pytest.mark.parametrize("schema", [None, {"type": "object"}])
@pytest.mark.parametrize(
    ("preset", "model"),
    [
        ("openai_responses", "gpt-5-mini"),
        ("azure", "gpt-5-mini"),
        ("anthropic", "claude-sonnet-4-6"),
        ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ],
)
def test_a_strict_tool_without_arguments_is_taken(preset: str, model: str, schema: dict[str, Any] | None) -> None:
    gateway = SimulatedGateway(preset, model)
    tool = {"type": "function", "name": "f", "parameters": schema, "strict": True}
    body = {"model": gateway.model, "input": "Go.", "tools": [tool]}
    answer = gateway.post(path_for("openai_responses", gateway.model), body)
    assert answer.status == 200, (answer.text, gateway.refusals)


def test_pictures_of_results_come_behind_all_results_of_their_turn() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in "ab"]
    results = [{"role": "tool", "tool_call_id": one, "content": [picture]} for one in "ab"]
    history = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *results,
    ]
    for preset, model, between in (
        ("deepseek", "deepseek-chat", []),
        ("vllm", "mistralai/Devstral-24B", ["assistant"]),
    ):
        gateway = SimulatedGateway(preset, model)
        answer = gateway.post("/v1/chat/completions", {"model": gateway.model, "messages": history})
        assert answer.status == 200, answer.text
        roles = [message["role"] for message in gateway.sent["messages"]]
        assert roles == ["user", "assistant", "tool", "tool", *between, "user", "user"]


@pytest.mark.parametrize("media_type", ["", "application/octet-stream", "image/jpg"])
@pytest.mark.parametrize("client", ["openai_chat", "openai_responses", "anthropic_messages", "gemini"])
def test_a_picture_of_any_declared_type_is_one_by_its_bytes(client: str, media_type: str) -> None:
    gateway = SimulatedGateway("anthropic", "claude-opus-4-8")
    drawn = draw("plain")
    drawn.turns, drawn.tools, drawn.forced, drawn.effort, drawn.stops = drawn.turns[:1], [], "", "", []
    drawn.turns[0].role, drawn.turns[0].parts = "user", ["What is it?", (media_type, PNG)]
    drawn.turns[0].calls, drawn.turns[0].results = [], []
    answer = asked(gateway, client, drawn)
    assert answer.status == 200, answer.text
    [source] = [block["source"] for block in gateway.sent["messages"][0]["content"] if block["type"] == "image"]
    assert source["media_type"] == "image/png"


SOUND = b"RIFF\xff\xfe\xfb\xffWAVEfmt " + bytes(range(200, 256))
FOR_ADDRESSES = base64.urlsafe_b64encode(SOUND).decode()
SOUNDS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai_chat": ("messages", {"type": "input_audio", "input_audio": {"data": FOR_ADDRESSES, "format": "wav"}}),
    "gemini": ("contents", {"inline_data": {"mime_type": "audio/wav", "data": FOR_ADDRESSES}}),
    "gemini_interactions": ("input", {"type": "audio", "mime_type": "audio/wav", "data": FOR_ADDRESSES}),
}


@pytest.mark.parametrize("preset", ["openai_chat", "gemini", "gemini_interactions"])
@pytest.mark.parametrize("client", SOUNDS)
def test_sound_in_base64_for_addresses_is_sent_as_plain_base64(client: str, preset: str) -> None:
    gateway = SimulatedGateway(preset, TARGETS[preset][0])
    field, part = SOUNDS[client]
    inner = "parts" if client == "gemini" else "content"
    body = {"model": gateway.model, field: [part] if field == "input" else [{"role": "user", inner: [part]}]}
    answer = gateway.post(path_for(client, gateway.model), body)
    assert answer.status == 200, answer.text
    assert base64.b64encode(SOUND).decode() in json.dumps(gateway.sent)


@pytest.mark.parametrize("preset", ["anthropic", "bedrock"])
def test_calls_without_ids_get_one_each_and_keep_their_own_results(preset: str) -> None:
    gateway = SimulatedGateway(preset, TARGETS[preset][0])
    calls = [{"type": "tool_use", "id": "", "name": "f", "input": {}} for _ in range(2)]
    results = [{"type": "tool_result", "tool_use_id": "", "content": word} for word in ("rain", "snow")]
    history = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    answer = gateway.post(
        "/v1/messages", {"model": gateway.model, "max_tokens": 9, "messages": history, "tools": tools}
    )
    assert answer.status == 200, answer.text
    assert "history.call_id_missing" in told(answer)
    given = json.dumps(gateway.sent["messages"][2])
    assert given.index("rain") < given.index("snow")


@pytest.mark.parametrize("preset", ["bedrock", "openai_chat", "gemini", "mistral"])
@pytest.mark.parametrize("kind", ["hologram", "tool_reference"])
def test_an_unknown_block_that_stands_alone_is_said_in_words(preset: str, kind: str) -> None:
    gateway = SimulatedGateway(preset, TARGETS[preset][0])
    block = {"type": kind, "tool_name": "search_the_web"}
    body = {"model": gateway.model, "max_tokens": 9, "messages": [{"role": "user", "content": [block]}]}
    answer = gateway.post("/v1/messages", body)
    assert answer.status == 200, answer.text
    assert "search_the_web" in json.dumps(gateway.sent)
    assert f"content.{kind}" in told(answer)


CITED = [{"type": "url_citation", "url_citation": {"url": "https://example.org", "title": "t"}}]


@pytest.mark.parametrize(
    ("preset", "message", "sent", "changes"),
    [
        ("groq", {"content": "Yes.", "annotations": CITED}, {"content": "Yes."}, {"messages.annotations"}),
        ("groq", {"content": "Yes.", "refusal": None, "audio": None, "annotations": []}, {"content": "Yes."}, set()),
        ("mistral", {"content": None, "refusal": "No."}, {"content": "No."}, {"messages.refusal"}),
        ("cerebras", {"content": "", "refusal": "No."}, {"content": "No."}, {"messages.refusal"}),
        ("openai_chat", {"content": "Yes.", "annotations": CITED}, {"content": "Yes.", "annotations": CITED}, set()),
        ("openrouter", {"content": "Yes.", "annotations": CITED}, {"content": "Yes.", "annotations": CITED}, set()),
    ],
)
def test_fields_of_openais_replies_go_back_only_where_they_are_taken(
    preset: str, message: dict[str, Any], sent: dict[str, Any], changes: set[str]
) -> None:
    gateway = SimulatedGateway(preset, TARGETS[preset][0])
    ask = {"role": "user", "content": "Is it?"}
    history = [ask, {"role": "assistant", **message}, ask]
    answer = gateway.post("/v1/chat/completions", {"model": gateway.model, "messages": history})
    assert answer.status == 200, answer.text
    assert not gateway.refusals
    assert gateway.sent["messages"][1] == {"role": "assistant", **sent}
    assert {one for one in told(answer) if one.startswith("messages.")} == changes


@pytest.mark.parametrize("signature", ["", "c2lnbmVk"])
def test_a_gemini_clients_calls_without_signatures_are_taken_by_gemini_3(signature: str) -> None:
    gateway = SimulatedGateway("gemini", "gemini-3.6-flash")
    call: dict[str, Any] = {"functionCall": {"name": "f", "args": {}}}
    contents = [
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "sunny"}}}]},
    ]
    if signature:
        call["thoughtSignature"] = signature
    answer = gateway.post(path_for("gemini", gateway.model), {"contents": contents})
    if signature:
        # Whose signature it is Google alone can tell: it goes as it came.
        first: Any = gateway.simulator.requests[0].body
        assert call in first["contents"][1]["parts"]
        return
    assert answer.status == 200, answer.text
    assert "thoughtSignature" in told(answer)


@pytest.mark.parametrize("client", ["anthropic_messages", "openai_chat"])
@pytest.mark.parametrize("preset", ["anthropic", "vertex_anthropic", "bedrock"])
def test_ids_of_other_models_calls_have_claudes_letters_and_still_match(preset: str, client: str) -> None:
    gateway = SimulatedGateway(preset, TARGETS[preset][0])
    drawn = draw("plain")
    drawn.tools, drawn.forced, drawn.effort, drawn.stops = [("f", {"type": "object"})], "", "", []
    drawn.turns = [
        Turn("user", ["Look."]),
        Turn("assistant", [], [("functions.find:0", "f", {})]),
        Turn("user", results=[("functions.find:0", "f", ["sunny"])]),
    ]
    answer = asked(gateway, client, drawn)
    assert answer.status == 200, answer.text
    assert "functions.find:0" not in json.dumps(gateway.sent["messages"])
    assert "tool_call.id" in told(answer)
