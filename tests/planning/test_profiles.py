"""An inference profile in the request that a provider gets: what goes there, what stands in for it, and what is reported."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.exchange import first_attempt
from bardo.planning.knowledge import Knowledge
from bardo.planning.profiles import apply_profile
from bardo.planning.route import Provider, Target
from bardo.routing.profiles import LOCKED
from bardo.values.profile import InferenceProfile, ResponseSchema
from bardo.values.request import ReasoningPolicy, Request
from bardo.values.wire import Arrival

SCHEMA = ResponseSchema(
    name="verdict",
    schema={
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
        "additionalProperties": False,
    },
)


def asked(profile: InferenceProfile, *, locked: bool = False, spoken: str = "openai_chat", **fields: Any) -> Request:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}]
    body: dict[str, Any] = {"model": "m", "messages": messages, **fields}
    if spoken == "anthropic_messages":
        body = {"model": "m", "max_tokens": 900, "system": "Be brief.", "messages": messages[1:], **fields}
    request = dialect(spoken).decode_request(msgspec.json.encode(body), Arrival())
    options = msgspec.structs.replace(request.options, profile=profile, profile_locked=locked)
    return msgspec.structs.replace(request, options=options)


def attempt(request: Request, preset: str, model: str, knowledge: Knowledge | None = None) -> Attempt:
    row = builtin().provider(preset)
    assert row is not None
    target = Target(provider=Provider(id=preset, row=row, base_url=row.base_url or "http://host/v1"), model=model)
    return first_attempt(request, [target], knowledge=knowledge or Knowledge())


def body(found: Attempt) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(found.wire.body)
    return decoded


def lost(found: Attempt) -> dict[str, Any]:
    return {one.what: one.sent for one in found.degraded}


def test_every_common_field_reaches_a_provider_that_has_it() -> None:
    profile = InferenceProfile(
        temperature=0.4,
        top_p=0.9,
        top_k=20,
        min_p=0.1,
        frequency_penalty=0.2,
        presence_penalty=0.3,
        max_tokens=77,
        stop_sequences=("END",),
        seed=5,
    )
    found = attempt(asked(profile), "vllm", "some-model")
    assert body(found) | {
        "temperature": 0.4,
        "top_p": 0.9,
        "top_k": 20,
        "min_p": 0.1,
        "frequency_penalty": 0.2,
        "presence_penalty": 0.3,
        "stop": ["END"],
        "seed": 5,
    } == body(found)
    assert 77 in (body(found).get("max_tokens"), body(found).get("max_completion_tokens"))
    assert found.degraded == ()


@pytest.mark.parametrize(
    ("preset", "model", "shown"),
    [
        ("openai-chat", "gpt-4o", "top_p"),
        ("anthropic", "claude-haiku-4-5", "top_p"),
        ("gemini", "gemini-2.5-flash", "topP"),
    ],
)
def test_min_p_becomes_a_top_p_where_it_is_unknown_and_that_is_reported(preset: str, model: str, shown: str) -> None:
    found = attempt(asked(InferenceProfile(min_p=0.1)), preset, model)
    written = body(found).get("generationConfig", body(found))
    assert written[shown] == 0.9
    assert lost(found)["min_p"] == {"top_p": 0.9}


@pytest.mark.parametrize(
    ("effort", "sent"), [("low", "low"), ("high", "high"), ("none", "minimal")], ids=["low", "high", "none"]
)
def test_an_effort_is_written_as_the_model_takes_it(effort: Any, sent: str) -> None:
    found = attempt(asked(InferenceProfile(reasoning_effort=effort)), "openai-chat", "gpt-5")
    assert body(found)["reasoning_effort"] == sent


@pytest.mark.parametrize(
    ("effort", "words"),
    [("high", "step by step"), ("max", "step by step"), ("none", "Answer directly"), ("low", None)],
)
def test_a_model_without_a_control_is_told_in_words_what_a_profile_asks(effort: Any, words: str | None) -> None:
    found = attempt(asked(InferenceProfile(reasoning_effort=effort)), "openai-chat", "gpt-4o")
    system = body(found)["messages"][0]["content"]
    assert (words in msgspec.json.encode(system).decode()) if words else "step" not in str(system)
    assert ("reasoning" in lost(found)) or effort == "none"


def test_a_schema_is_asked_for_as_the_target_takes_it() -> None:
    profile = InferenceProfile(response_schema=SCHEMA)
    asked_of_openai = attempt(asked(profile), "openai-chat", "gpt-4o")
    asked_for = {"name": "verdict", "schema": SCHEMA.schema, "strict": True}
    assert body(asked_of_openai)["response_format"]["json_schema"] == asked_for
    told = attempt(asked(profile), "perplexity", "sonar-unknown")
    assert told.answer is not None


@pytest.mark.parametrize("spoken", ["openai_chat", "anthropic_messages"])
def test_the_callers_own_fields_go_before_the_profile(spoken: str) -> None:
    profile = InferenceProfile(temperature=0.1, top_p=0.5, max_tokens=50, stop_sequences=("B",))
    own: dict[str, Any] = {"temperature": 0.8, "max_tokens": 300}
    own |= {"stop": ["A"]} if spoken == "openai_chat" else {"stop_sequences": ["A"]}
    found = attempt(asked(profile, spoken=spoken, **own), "vllm", "some-model")
    assert (body(found)["temperature"], body(found)["top_p"], body(found)["stop"]) == (0.8, 0.5, ["A"])
    assert 300 in (body(found).get("max_tokens"), body(found).get("max_completion_tokens"))
    assert not {"temperature", "max_tokens", "stop"} & lost(found).keys()


def test_a_caller_who_names_one_way_to_cut_tokens_off_gets_no_other() -> None:
    profile = InferenceProfile(min_p=0.1, top_k=40)
    found = attempt(asked(profile, top_p=0.7), "vllm", "some-model")
    assert body(found)["top_p"] == 0.7
    assert not {"min_p", "top_k"} & body(found).keys()


def test_a_callers_reasoning_goes_before_that_of_the_profile() -> None:
    found = attempt(asked(InferenceProfile(reasoning_effort="high"), reasoning_effort="low"), "openai-chat", "gpt-5")
    assert body(found)["reasoning_effort"] == "low"


def test_a_locked_profile_holds_and_reports_what_was_asked() -> None:
    profile = InferenceProfile(temperature=0.1, top_p=0.85, reasoning_effort="low", response_schema=SCHEMA)
    mine: dict[str, Any] = {
        "temperature": 0.9,
        "top_p": 0.85,
        "reasoning_effort": "high",
        "response_format": {"type": "json_object"},
    }
    found = attempt(asked(profile, locked=True, **mine), "vllm", "openai/gpt-oss-20b")
    assert (body(found)["temperature"], body(found)["reasoning_effort"]) == (0.1, "low")
    assert body(found)["response_format"]["json_schema"]["name"] == "verdict"
    held = {one.what: (one.asked, one.sent) for one in found.degraded if one.why == LOCKED}
    assert held == {
        "temperature": (0.9, 0.1),
        "reasoning": ("high", "low"),
        "response_format": ("json_object", "verdict"),
    }


def test_visible_thinking_false_leaves_the_thinking_out_of_the_reply() -> None:
    assert apply_profile(asked(InferenceProfile(visible_thinking=False))).options.omit_reasoning


def test_visible_thinking_is_asked_for_beside_the_effort() -> None:
    request = apply_profile(asked(InferenceProfile(visible_thinking=True, reasoning_effort="high")))
    assert request.options.reasoning == ReasoningPolicy(mode="effort", effort="high", visible=True)


@pytest.mark.parametrize(
    ("preset", "model", "field", "value", "path", "sent"),
    [
        ("openai-chat", "gpt-5", "prompt_cache_key", "k1", "prompt_cache_key", "k1"),
        ("venice", "m", "prompt_cache_key", "k1", "prompt_cache_key", "k1"),
        ("venice", "m", "web_search", True, "venice_parameters", {"enable_web_search": "on"}),
        ("openrouter", "deepseek/deepseek-r1", "web_search", True, "plugins", [{"id": "web"}]),
        (
            "anthropic",
            "claude-haiku-4-5",
            "web_search",
            True,
            "tools",
            [{"type": "web_search_20250305", "name": "web_search"}],
        ),
        ("openai-responses", "gpt-5", "web_search", True, "tools", [{"type": "web_search"}]),
        ("venice", "qwen3-30b-a3b", "tee_mode", True, "model", "tee-qwen3-30b-a3b"),
        (
            "openai-chat",
            "gpt-4.1",
            "predicted_output",
            "old text",
            "prediction",
            {"type": "content", "content": "old text"},
        ),
    ],
)
@pytest.mark.parametrize("spoken", ["openai_chat", "anthropic_messages"])
def test_a_field_of_some_providers_goes_where_a_row_says(
    spoken: str, preset: str, model: str, field: str, value: Any, path: str, sent: Any
) -> None:
    found = attempt(asked(InferenceProfile(**{field: value}), spoken=spoken), preset, model)
    assert body(found)[path] == sent
    assert field not in lost(found)


@pytest.mark.parametrize(
    ("preset", "model", "field", "value"),
    [
        ("anthropic", "claude-haiku-4-5", "prompt_cache_key", "k1"),
        ("deepseek", "deepseek-chat", "web_search", True),
        ("anthropic", "claude-haiku-4-5", "tee_mode", True),
        ("openai-chat", "gpt-5", "predicted_output", "old text"),
        ("perplexity", "sonar-pro", "cache_control", True),
    ],
)
def test_a_field_that_a_provider_does_not_take_is_reported(preset: str, model: str, field: str, value: Any) -> None:
    found = attempt(asked(InferenceProfile(**{field: value})), preset, model)
    assert field in lost(found)
    assert field not in body(found)


@pytest.mark.parametrize("field", ["web_search", "tee_mode", "cache_control"])
def test_a_switch_that_is_off_asks_for_nothing(field: str) -> None:
    found = attempt(asked(msgspec.convert({field: False}, InferenceProfile)), "venice", "m")
    assert body(found) == body(attempt(asked(InferenceProfile()), "venice", "m"))
    assert found.degraded == ()


def test_a_search_that_runs_beside_no_functions_is_reported() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    found = attempt(asked(InferenceProfile(web_search=True), tools=tools), "gemini", "gemini-2.5-flash")
    assert lost(found) == {"web_search": None}
    alone = attempt(asked(InferenceProfile(web_search=True)), "gemini", "gemini-2.5-flash")
    assert {"googleSearch": {}} in body(alone)["tools"]


@pytest.mark.parametrize("spoken", ["openai_chat", "anthropic_messages"])
def test_a_cache_marker_stands_behind_the_system_prompt(spoken: str) -> None:
    found = attempt(asked(InferenceProfile(cache_control=True), spoken=spoken), "anthropic", "claude-haiku-4-5")
    assert body(found)["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert found.degraded == ()
    router = attempt(asked(InferenceProfile(cache_control=True)), "openrouter", "anthropic/claude-haiku-4.5")
    assert router.wire.body.count(b"ephemeral") == 1


def test_a_provider_that_caches_by_itself_needs_no_marker() -> None:
    found = attempt(asked(InferenceProfile(cache_control=True)), "openai-chat", "gpt-5")
    assert b"cache_control" not in found.wire.body
    assert found.degraded == ()


def test_a_callers_own_markers_stay_as_they_are() -> None:
    system = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}]
    request = asked(InferenceProfile(cache_control=True), spoken="anthropic_messages", system=system)
    assert attempt(request, "anthropic", "claude-haiku-4-5").wire.body.count(b"ephemeral") == 1


def test_a_callers_own_cache_key_goes_before_that_of_the_profile() -> None:
    request = asked(InferenceProfile(prompt_cache_key="profile"), prompt_cache_key="mine")
    assert body(attempt(request, "openai-chat", "gpt-5"))["prompt_cache_key"] == "mine"


def test_the_clients_own_body_is_not_sent_on_with_a_profile() -> None:
    found = attempt(asked(InferenceProfile(temperature=0.1)), "openai-chat", "gpt-4o")
    assert not found.forward
    assert body(found)["temperature"] == 0.1
    assert attempt(
        msgspec.structs.replace(asked(InferenceProfile()), options=Request(model="", messages=()).options),
        "openai-chat",
        "gpt-4o",
    ).forward


def test_plans_of_different_profiles_are_kept_apart() -> None:
    knowledge = Knowledge()
    profiles = [
        InferenceProfile(),
        InferenceProfile(temperature=0.1),
        InferenceProfile(web_search=True),
        InferenceProfile(prompt_cache_key="a"),
        InferenceProfile(prompt_cache_key="b"),
        InferenceProfile(reasoning_effort="none"),
        InferenceProfile(cache_control=True),
    ]
    for place, model in ((preset, "m") for preset in ("venice", "openai-chat", "anthropic", "vllm")):
        anew = [attempt(asked(profile), place, model) for profile in profiles]
        kept = [attempt(asked(profile), place, model, knowledge) for profile in profiles * 2]
        assert [one.wire.body for one in kept] == [one.wire.body for one in anew] * 2
        assert [one.degraded for one in kept] == [one.degraded for one in anew] * 2


def test_applying_a_profile_twice_changes_nothing_more() -> None:
    profile = InferenceProfile(temperature=0.1, reasoning_effort="high", visible_thinking=True, web_search=True)
    for locked in (False, True):
        once = apply_profile(asked(profile, locked=locked, temperature=0.5, reasoning_effort="low"))
        assert apply_profile(once) == once
