"""What a provider is known to refuse is changed before it is sent, and reported."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.planner import plan
from bardo.planning.refusals import ProviderWords, RefusedField, refused_field, without_fields
from bardo.planning.route import Provider, Target, target_at
from bardo.values.errors import UpstreamRefused
from bardo.values.wire import Arrival, WireRequest

Body = dict[str, Any]
ASK: Body = {"role": "user", "content": "Hello."}
TOOLS: Body = {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}
LONG = "call_" + "x" * 90


def provider(preset: str) -> Provider:
    row = builtin().provider(preset)
    assert row is not None
    return Provider(id=preset, row=row, base_url="http://host/v1")


def put(preset: str, model: str, spoken: str = "openai_chat", **fields: Any) -> Attempt:
    body = {"model": "m", **({"messages": [ASK]} if spoken == "openai_chat" else {}), **fields}
    request = dialect(spoken).decode_request(msgspec.json.encode(body), Arrival(model=model))
    return plan(request, Target(provider=provider(preset), model=model))


def body_of(attempt: Attempt) -> Any:
    return msgspec.json.decode(attempt.wire.body)


def lost(attempt: Attempt) -> dict[str, tuple[Any, Any]]:
    return {one.what: (one.asked, one.sent) for one in attempt.degraded}


def looped(call_id: str, result: str = "sunny") -> list[Body]:
    call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return [
        ASK,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


DEVELOPER: list[Body] = [{"role": "developer", "content": "Be brief."}, ASK]


@pytest.mark.parametrize("preset", ["deepseek", "groq", "mistral", "vllm", "openai-compatible", "qwen"])
def test_the_role_developer_goes_only_where_it_is_known(preset: str) -> None:
    sent = put(preset, "m", messages=DEVELOPER)
    assert [message["role"] for message in body_of(sent)["messages"]] == ["system", "user"]
    assert lost(sent)["messages.role.developer"] == ("developer", "system")


def test_openai_gets_the_role_developer_as_it_came() -> None:
    sent = put("openai-chat", "gpt-5.2", messages=DEVELOPER)
    assert body_of(sent)["messages"][0]["role"] == "developer"
    assert not sent.degraded


LIMITS = [
    ("openai-chat", "max_tokens", "max_completion_tokens"),
    ("moonshot", "max_tokens", "max_completion_tokens"),
    ("venice", "max_tokens", "max_completion_tokens"),
    ("deepseek", "max_completion_tokens", "max_tokens"),
    ("qwen", "max_completion_tokens", "max_tokens"),
    ("ollama-openai", "max_completion_tokens", "max_tokens"),
    ("groq", "max_tokens", "max_completion_tokens"),
]


@pytest.mark.parametrize(("preset", "asked", "sent"), LIMITS)
def test_the_output_limit_has_the_name_that_the_providers_row_gives(preset: str, asked: str, sent: str) -> None:
    fields: Body = {asked: 77}
    body = body_of(put(preset, "m", **fields))
    assert (body.get(sent), asked in body) == (77, False)


IDS = [("mistral", 9, 9), ("openai-chat", 1, 40), ("openai", 1, 64), ("bedrock", 1, 64)]


@pytest.mark.parametrize(("preset", "least", "most"), IDS)
def test_ids_of_calls_fit_the_provider_and_stay_the_same_on_every_turn(preset: str, least: int, most: int) -> None:
    def written(more: list[Body]) -> list[str]:
        body = body_of(put(preset, "m", messages=[*looped(LONG), *more], **TOOLS))
        return [found for found in _ids(body) if found]

    first, later = written([]), written([{"role": "assistant", "content": "It is."}, ASK])
    assert len(set(first)) == 1
    assert len(first) == 2, "the call and its result"
    assert least <= len(first[0]) <= most
    assert later == first


def test_mistral_gets_its_own_ids_back_as_they_are() -> None:
    sent = put("mistral", "mistral-large-latest", messages=looped("D681PevKs"), **TOOLS)
    assert set(_ids(body_of(sent))) == {"D681PevKs"}
    assert not sent.degraded


def test_two_ids_stay_two_ids() -> None:
    body = body_of(put("mistral", "m", messages=[*looped("call_1"), *looped("call_2")], **TOOLS))
    assert len(set(_ids(body))) == 2
    assert len(_ids(body)) == 4


def _ids(value: Any) -> list[str]:
    if isinstance(value, dict):
        names = ("tool_call_id", "call_id", "toolUseId")
        own = [value[name] for name in names if name in value]
        own += [value["id"]] if "function" in value and "id" in value else []
        return own + [found for inner in value.values() for found in _ids(inner)]
    return [found for inner in value for found in _ids(inner)] if isinstance(value, list) else []


THOUGHT: list[Body] = [ASK, {"role": "assistant", "content": "Hi.", "reasoning_content": "A greeting."}, ASK]


def test_a_mistral_model_that_does_not_think_gets_no_thinking() -> None:
    sent = put("mistral", "codestral-latest", messages=THOUGHT)
    assert body_of(sent)["messages"][1] == {"role": "assistant", "content": "Hi."}
    assert "reasoning" in lost(sent)


def test_a_mistral_model_that_thinks_gets_the_thinking_back() -> None:
    content = body_of(put("mistral", "magistral-medium-latest", messages=THOUGHT))["messages"][1]["content"]
    assert [part["type"] for part in content] == ["thinking", "text"]


def test_top_k_that_geminis_clients_send_unasked_goes_to_no_server_that_may_refuse_it() -> None:
    contents = {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}], "generationConfig": {"topK": 64}}
    sent = put("openai-compatible", "m", "gemini", **contents)
    assert "top_k" not in body_of(sent)
    assert lost(sent)["top_k"] == (64, {"top_p": 0.95})
    assert body_of(put("vllm", "m", "gemini", **contents))["top_k"] == 64


def test_top_k_of_a_caller_who_speaks_the_servers_language_goes_along() -> None:
    assert body_of(put("openai-compatible", "m", top_k=5))["top_k"] == 5


def test_a_forced_tool_turns_the_thinking_of_an_unknown_claude_off() -> None:
    sent = put("anthropic", "claude-zeta-9", tool_choice="required", reasoning_effort="high", **TOOLS)
    body = body_of(sent)
    assert (body["tool_choice"], body["thinking"]) == ({"type": "any"}, {"type": "disabled"})
    assert lost(sent)["reasoning"] == ("high", "off")


SCHEMA = '{"properties": {"a": {"$ref": "#/$defs/A"}}}'


def test_a_result_with_references_goes_to_gemini_as_text() -> None:
    sent = put("gemini", "gemini-3-pro-preview", messages=looped("c1", SCHEMA), **TOOLS)
    assert body_of(sent)["contents"][-1]["parts"][0]["functionResponse"]["response"] == {"output": SCHEMA}
    assert lost(sent)["tool_result"] == ("c1", "text")
    other = body_of(put("gemini", "gemini-3-pro-preview", messages=looped("c1", '{"a": 1}'), **TOOLS))
    assert other["contents"][-1]["parts"][0]["functionResponse"]["response"] == {"a": 1}


BEGUN: list[Body] = [ASK, {"role": "assistant", "content": "The answer"}]
NO_PREFILL = [
    ("anthropic", "claude-opus-4-6"),
    ("anthropic", "claude-sonnet-5"),
    ("anthropic", "claude-zeta-9"),
    ("bedrock", "anthropic.claude-opus-4-8"),
    ("openrouter", "anthropic/claude-opus-4.8"),
    ("gemini", "gemini-3.6-flash"),
]


@pytest.mark.parametrize(("preset", "model"), NO_PREFILL)
def test_an_answer_that_the_caller_began_ends_with_a_users_turn(preset: str, model: str) -> None:
    sent = put(preset, model, messages=BEGUN)
    body = body_of(sent)
    assert (body.get("messages") or body["contents"])[-1]["role"] == "user"
    assert lost(sent)["prefill"][0] == "The answer"


@pytest.mark.parametrize(("preset", "model"), [("anthropic", "claude-sonnet-4-5"), ("gemini", "gemini-2.5-flash")])
def test_a_model_that_takes_it_goes_on_from_there(preset: str, model: str) -> None:
    sent = put(preset, model, messages=BEGUN)
    body = body_of(sent)
    assert (body.get("messages") or body["contents"])[-1]["role"] in ("assistant", "model")
    assert "prefill" not in lost(sent)


def test_groq_leaves_no_thinking_in_the_text_of_a_call_with_tools() -> None:
    sent = put("groq", "qwen/qwen3-32b", reasoning_format="raw", **TOOLS)
    assert body_of(sent)["reasoning_format"] == "parsed"
    assert lost(sent)["reasoning_format"] == ("raw", "parsed")
    assert body_of(put("groq", "qwen/qwen3-32b", reasoning_format="raw"))["reasoning_format"] == "raw"


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("qwen3-8b", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ("minimax-m2", {"reasoning_effort": "low"}),
        ("minimax-m2p5", {"reasoning_effort": "low"}),
        ("gpt-oss-120b", {"reasoning_effort": "low"}),
        ("glm-4p6", {"thinking": {"type": "enabled"}}),
        ("deepseek-v3p1", {"thinking": {"type": "enabled"}}),
        ("deepseek-v3p2", {"thinking": {"type": "enabled"}}),
    ],
)
def test_fireworks_gets_a_budget_only_for_models_that_it_keeps_one_of(model: str, sent: dict[str, Any]) -> None:
    attempt = put("fireworks", f"accounts/fireworks/models/{model}", reasoning={"max_tokens": 2000})
    body = body_of(attempt)
    assert {field: body[field] for field in ("thinking", "reasoning_effort") if field in body} == sent
    assert bool(lost(attempt)) == ("budget_tokens" not in str(sent))


@pytest.mark.parametrize("preset", ["ollama", "ollama-openai"])
def test_ollama_turns_deepseek_r1_off(preset: str) -> None:
    body = body_of(put(preset, "deepseek-r1:8b", reasoning_effort="none"))
    assert (body.get("think"), body.get("reasoning_effort")) in ((False, None), (None, "none"))


def test_anthropics_object_for_the_effort_is_understood_in_chat() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    asked = {"effort": "low", "format": {"type": "json_schema", "schema": schema}}
    sent = put("anthropic", "claude-opus-4-8", output_config=asked)
    assert body_of(sent)["output_config"] == asked
    assert "thinking" not in body_of(sent), "an effort turns nothing on"
    assert not sent.degraded
    chat = body_of(put("openai-chat", "gpt-5.2", output_config={"effort": "low"}))
    assert (chat["reasoning_effort"], "output_config" in chat) == ("low", False)


NAMED = [
    ("anthropic", "anthropic/claude-opus-5", "claude-opus-5"),
    ("gemini", "google/gemini-2.5-pro", "gemini-2.5-pro"),
    ("openrouter", "anthropic/claude-opus-5", "anthropic/claude-opus-5"),
    ("openrouter", "openrouter/auto", "openrouter/auto"),
    ("openrouter", "openrouter/openai/gpt-5", "openai/gpt-5"),
    ("vllm", "Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
]


@pytest.mark.parametrize(("preset", "named", "model"), NAMED)
def test_a_providers_name_before_the_models_is_no_part_of_it(preset: str, named: str, model: str) -> None:
    assert target_at(provider(preset), named).model == model


SIGNED = [
    ("bedrock-v1", "anthropic", False),
    ("anthropic-claude-v1", "bedrock", False),
    ("anthropic-claude-v1", "anthropic", True),
]


@pytest.mark.parametrize(("form", "preset", "kept"), SIGNED)
def test_signatures_of_bedrock_and_of_the_claude_api_do_not_mix(form: str, preset: str, kept: bool) -> None:
    details = [{"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "format": form, "index": 0}]
    model = "anthropic.claude-sonnet-4-5" if preset == "bedrock" else "claude-sonnet-4-5"
    messages = [ASK, {"role": "assistant", "content": "Hi.", "reasoning_details": details}, ASK]
    sent = put(preset, model, messages=messages)
    assert (b"c2ln" in sent.wire.body) is kept
    assert ("reasoning" in lost(sent)) is not kept


LEAST = [
    ("openai", "gpt-4.1", 16),
    ("azure", "gpt-5.2", 16),
    ("xai", "grok-4.5", 1),
    ("groq", "openai/gpt-oss-120b", 1),
    ("gemini", "gemini-3-flash-preview", 1),
    ("bedrock", "amazon.nova-2-lite-v1:0", 1),
    ("cohere", "command-a-reasoning-08-2025", 1),
]


@pytest.mark.parametrize(("preset", "model", "least"), LEAST)
def test_an_output_limit_of_nothing_is_raised_where_it_is_refused(preset: str, model: str, least: int) -> None:
    sent = put(preset, model, "anthropic_messages", messages=[ASK], max_tokens=0)
    assert lost(sent)["max_output_tokens"] == (0, least)
    assert sent.wire.body.count(b":%d" % least) >= 1


def test_anthropic_takes_an_output_limit_of_nothing() -> None:
    sent = put("anthropic", "claude-opus-5", "anthropic_messages", messages=[ASK], max_tokens=0)
    assert body_of(sent)["max_tokens"] == 0
    assert not sent.degraded


def test_responses_gets_no_output_limit_below_its_least() -> None:
    sent = put("openai", "gpt-4.1", max_tokens=5)
    assert (body_of(sent)["max_output_tokens"], lost(sent)["max_output_tokens"]) == (16, (5, 16))
    assert not lost(put("openai-chat", "gpt-4.1", max_tokens=5))


def as_it_came(messages: list[Body]) -> WireRequest:
    """Return a request whose body is the client's own."""
    return msgspec.structs.replace(
        put("openai-compatible", "m").wire, body=msgspec.json.encode({"model": "m", "messages": messages})
    )


def refused(sent: WireRequest, message: str) -> RefusedField | None:
    """Return the field that a refusal of a request names."""
    refusal = UpstreamRefused(message, status=422)
    return refused_field(ProviderWords(refusal, sent.body), refusal)


REFUSED_IN_MESSAGES = {
    "openai": "Unknown parameter: 'messages[1].reasoning_content'.",
    "databricks": "messages.1.reasoning_content: Extra inputs are not permitted",
    "groq": "'messages.1' : for 'role:assistant' the following must be satisfied: property 'reasoning_content' is unsupported",
    "mistral": '{"detail":[{"loc":["body","messages",1,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted"}]}',
}


@pytest.mark.parametrize("message", REFUSED_IN_MESSAGES.values(), ids=REFUSED_IN_MESSAGES)
def test_a_field_of_history_that_a_refusal_names_is_left_out_of_every_message(message: str) -> None:
    said = {"role": "assistant", "content": "Hi.", "reasoning_content": "A greeting."}
    sent = as_it_came([ASK, said, ASK, said])
    field = refused(sent, message)
    assert field is not None
    assert field.path == "messages[].reasoning_content"
    wire, _, degraded = without_fields(sent, [field])
    assert [set(one) for one in msgspec.json.decode(wire.body)["messages"]] == [{"role", "content"}] * 4
    assert [(one.what, one.asked, one.sent) for one in degraded] == [
        ("messages[].reasoning_content", "A greeting.", None)
    ]


def test_a_field_of_calls_that_a_refusal_names_is_left_out_of_every_call() -> None:
    messages = looped("call_1")
    messages[1]["tool_calls"][0]["index"] = 0
    sent = as_it_came(messages)
    field = refused(sent, "Unknown parameter: 'messages[1].tool_calls[0].index'.")
    assert field is not None
    wire, _, _ = without_fields(sent, [field])
    assert "index" not in msgspec.json.decode(wire.body)["messages"][1]["tool_calls"][0]


def test_what_a_message_is_made_of_stays_whatever_a_refusal_names() -> None:
    sent = as_it_came(looped("call_1"))
    for name in ("content", "role", "tool_calls", "tool_call_id"):
        assert refused(sent, f"Unknown parameter: 'messages[1].{name}'.") is None


@pytest.mark.parametrize(
    ("preset", "model"),
    [
        ("anthropic", "claude-sonnet-4-5"),
        ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("openrouter", "anthropic/claude-sonnet-4.5"),
    ],
)
@pytest.mark.parametrize("begun", ["So ", "So\n\n", "So\t"])
def test_an_answer_that_the_caller_began_ends_without_white_space_for_claude(
    preset: str, model: str, begun: str
) -> None:
    sent = put(preset, model, messages=[ASK, {"role": "assistant", "content": begun}])
    (last,) = body_of(sent)["messages"][-1:]
    assert last["content"] in ("So", [{"text": "So"}])
    assert lost(sent)["prefill"] == (begun, "So")


def test_an_answer_begun_with_white_space_alone_is_left_out_for_claude() -> None:
    sent = put("anthropic", "claude-sonnet-4-5", messages=[ASK, {"role": "assistant", "content": " \n"}])
    assert [one["role"] for one in body_of(sent)["messages"]] == ["user"]
    assert lost(sent)["prefill"] == (" \n", "")


@pytest.mark.parametrize(("preset", "model"), [("deepseek", "deepseek-chat"), ("anthropic", "claude-sonnet-4-5")])
def test_white_space_stays_where_it_is_taken(preset: str, model: str) -> None:
    begun = {"role": "assistant", "content": "So "}
    messages = [ASK, begun] if preset == "deepseek" else [ASK, begun, ASK]
    sent = put(preset, model, messages=messages)
    assert body_of(sent)["messages"][1]["content"] == "So "
    assert "prefill" not in lost(sent)
