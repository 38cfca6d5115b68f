"""A simulator refuses what its real counterpart refuses, in its words."""

from __future__ import annotations

import json

import pytest

from bardo.simulators import PRESETS, presets
from bardo.simulators.delivery import Head, Send
from bardo.simulators.exchange import read_incoming
from bardo.simulators.fields import at
from simulators.support import LIKE, Body, body_for, headers_for, path_for
from support.any_model import AnySimulator, Simulator

KEYED = [name for name in presets() if PRESETS[name].needs_key]
MISSING_KEY = {"gemini": 403, "gemini_interactions": 403, "bedrock": 403}
WRONG_KEY = {"gemini": 400, "gemini_interactions": 400, "xai": 400, "bedrock": 403}
# These list their models at another address, or not at all.
LISTED = sorted(set(presets()) - {"bedrock", "vertex", "vertex_anthropic"})
LISTS = {"cohere": "/v1/models", "ollama_native": "/api/tags", "watsonx": "/ml/v1/foundation_model_specs"}
FORMS_OF_LISTS = {
    **dict.fromkeys(("gemini", "gemini_interactions", "cohere", "ollama_native"), ("models", "name")),
    "watsonx": ("resources", "model_id"),
}
STRICT = {
    "anthropic": "unheard_of: Extra inputs are not permitted",
    "gemini_interactions": "Unknown parameter 'unheard_of'.",
    "openai_responses": "Unknown parameter: 'unheard_of'.",
}


def ask(
    simulator: AnySimulator,
    body: Body | bytes,
    *,
    key: str = "k",
    method: str = "POST",
    path: str = "",
    headers: dict[str, str] | None = None,
) -> tuple[int, Body]:
    preset = simulator.provider.name
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    target = path or path_for(preset, "any-model", streamed=False)
    asked = read_incoming(method, target, headers_for(preset, key) if headers is None else headers, raw)
    actions = list(simulator.actions(asked))
    head = actions[0]
    assert isinstance(head, Head)
    return head.status, json.loads(b"".join(action.data for action in actions if isinstance(action, Send)))


@pytest.mark.parametrize("preset", KEYED)
def test_a_missing_key_is_refused(preset: str) -> None:
    status, body = ask(Simulator(preset), body_for(preset), headers={"anthropic-version": "2023-06-01"})
    assert status == MISSING_KEY.get(preset, 401)
    assert body


@pytest.mark.parametrize("preset", presets())
def test_a_wrong_key_is_refused_where_the_server_has_one(preset: str) -> None:
    simulator = Simulator(preset, key="right-key-0001")
    assert ask(simulator, body_for(preset), key="wrong")[0] == WRONG_KEY.get(preset, 401)
    assert ask(simulator, body_for(preset), key="right-key-0001")[0] == 200


@pytest.mark.parametrize("preset", sorted(set(presets()) - set(KEYED)))
def test_a_local_server_needs_no_key(preset: str) -> None:
    assert ask(Simulator(preset), body_for(preset), headers={})[0] == 200


def test_a_wrong_key_is_not_given_back_whole() -> None:
    for preset in presets():
        _, body = ask(Simulator(preset, key="right"), body_for(preset), key="sk-very-secret-key")
        assert "very-secret" not in json.dumps(body)


def test_anthropic_wants_its_version_header() -> None:
    status, body = ask(Simulator("anthropic"), body_for("anthropic"), headers={"x-api-key": "k"})
    assert status == 400
    assert at(body, "error.message") == "anthropic-version: header is required"


@pytest.mark.parametrize("preset", presets())
def test_malformed_json_is_refused(preset: str) -> None:
    for raw in (b"{", b"", b"[1]", b"\xff"):
        assert ask(Simulator(preset), raw)[0] == 400


@pytest.mark.parametrize("preset", presets())
def test_an_unknown_path_and_a_wrong_method_are_refused(preset: str) -> None:
    assert ask(Simulator(preset), {}, path="/v1/unheard-of")[0] == 404
    assert ask(Simulator(preset), b"", method="GET")[0] == 405


@pytest.mark.parametrize("preset", presets())
def test_missing_fields_are_refused(preset: str) -> None:
    full = body_for(preset)
    named = {
        "gemini": ["contents"],
        "vertex": ["contents"],
        "vertex_anthropic": ["messages", "anthropic_version"],
        "azure": ["input", "model"],
        "openai_responses": ["input", "model"],
        "ollama_native": ["model"],
        "bedrock": ["messages"],
        "gemini_interactions": ["input", "model"],
        "watsonx": ["input", "model_id"],
    }
    names = named.get(preset, ["messages", "model"])
    for name in [*names, *(["max_tokens"] if preset in ("anthropic", "vertex_anthropic") else [])]:
        status, body = ask(Simulator(preset), {key: value for key, value in full.items() if key != name})
        assert status == 400, name
        assert body


@pytest.mark.parametrize("preset", sorted(set(presets()) - {"ollama_native", "watsonx"}))
def test_a_wrong_role_is_refused(preset: str) -> None:
    inputs = {"gemini": "contents", "openai_responses": "input", "gemini_interactions": "input"}
    field = inputs.get(LIKE.get(preset, preset), "messages")
    message = {"role": "robot", "content": "x", "parts": [{"text": "x"}]}
    assert ask(Simulator(preset), {**body_for(preset), field: [message]})[0] == 400


@pytest.mark.parametrize("preset", presets())
def test_an_unknown_model_is_refused_where_there_is_a_list(preset: str) -> None:
    simulator = Simulator(preset, models=("only-this",))
    assert ask(simulator, body_for(preset))[0] in (400, 404)
    path = path_for(preset, "only-this", streamed=False)
    assert ask(simulator, body_for(preset, model="only-this"), path=path)[0] == 200


@pytest.mark.parametrize("preset", presets())
def test_by_default_the_models_that_the_preset_lists_are_taken_and_no_other(preset: str) -> None:
    simulator = AnySimulator(preset)
    model = "no-such-model"
    path = path_for(preset, model, streamed=False)
    assert ask(simulator, body_for(preset, model=model), path=path)[0] in (400, 404)
    assert simulator.models


@pytest.mark.parametrize(
    ("model", "status"), [("claude-haiku-4-5", 200), ("claude-haiku-4", 404), ("claude-haiku-4-5-2025", 404)]
)
def test_anthropic_takes_a_model_by_its_name_without_the_date(model: str, status: int) -> None:
    assert ask(AnySimulator("anthropic"), body_for("anthropic", model=model))[0] == status


@pytest.mark.parametrize(("preset", "path"), [("openai_chat", "/v1/embeddings"), ("ollama_native", "/api/embed")])
def test_an_unknown_model_makes_no_vectors_where_there_is_a_list(preset: str, path: str) -> None:
    simulator = Simulator(preset, models=("only-this",))
    assert ask(simulator, {"model": "another", "input": "2 * 3"}, path=path)[0] in (400, 404)
    assert ask(simulator, {"model": "only-this", "input": "2 * 3"}, path=path)[0] == 200


@pytest.mark.parametrize("preset", presets())
def test_only_strict_servers_refuse_unknown_fields(preset: str) -> None:
    status, body = ask(Simulator(preset), {**body_for(preset), "unheard_of": 1})
    preset = LIKE.get(preset, preset)
    assert status == (400 if preset in STRICT else 200)
    if preset in STRICT:
        assert at(body, "error.message") == STRICT[preset]


@pytest.mark.parametrize(
    ("thinking", "words"),
    [
        ({"type": "enabled"}, "Field required"),
        ({"type": "enabled", "budget_tokens": 100}, "greater than or equal to 1024"),
        ({"type": "enabled", "budget_tokens": 4096}, "must be greater than `thinking.budget_tokens`"),
    ],
)
def test_anthropic_checks_the_thinking_budget(thinking: Body, words: str) -> None:
    status, body = ask(Simulator("anthropic"), {**body_for("anthropic"), "thinking": thinking})
    assert status == 400
    assert words in str(at(body, "error.message"))


@pytest.mark.parametrize(
    ("preset", "field", "items"),
    [
        ("openai_chat", "messages", [{"role": "tool", "tool_call_id": "c", "content": "x"}]),
        ("openai_chat", "messages", [{"role": "assistant", "tool_calls": [{"id": "c"}]}]),
        ("openai_responses", "input", [{"type": "function_call_output", "call_id": "c", "output": "x"}]),
        ("openai_responses", "input", [{"type": "function_call", "call_id": "c"}]),
        ("anthropic", "messages", [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}]),
        ("anthropic", "messages", [{"role": "assistant", "content": [{"type": "tool_use", "id": "c"}]}]),
        ("gemini_interactions", "input", [{"type": "function_result", "call_id": "c", "result": "x"}]),
    ],
)
def test_calls_and_results_must_meet(preset: str, field: str, items: list[Body]) -> None:
    assert ask(Simulator(preset), {**body_for(preset), field: items})[0] == 400


@pytest.mark.parametrize(
    ("preset", "field", "refused"),
    [("openai_responses", "previous_response_id", 400), ("gemini_interactions", "previous_interaction_id", 404)],
)
def test_only_what_is_kept_is_continued(preset: str, field: str, refused: int) -> None:
    simulator = Simulator(preset)
    _, kept = ask(simulator, body_for(preset))
    _, dropped = ask(simulator, {**body_for(preset), "store": False})
    for earlier, expected in ((kept["id"], 200), (dropped["id"], refused), ("unknown", refused)):
        assert ask(simulator, {**body_for(preset), field: earlier})[0] == expected


@pytest.mark.parametrize("preset", LISTED)
def test_models_are_listed_in_the_providers_form(preset: str) -> None:
    simulator = Simulator(preset, models=("one", "two"))
    path = LISTS.get(preset, f"{PRESETS[preset].base_path}/models")
    status, body = ask(simulator, b"", method="GET", path=path)
    field, name = FORMS_OF_LISTS.get(preset, ("data", "id"))
    listed = body[field]
    assert status == 200
    assert isinstance(listed, list)
    assert [row[name].removeprefix("models/") for row in listed] == ["one", "two"]


def test_tokens_are_counted_without_asking_the_model() -> None:
    asked = {name: value for name, value in body_for("anthropic").items() if name not in ("max_tokens", "stream")}
    status, body = ask(Simulator("anthropic"), asked, path="/v1/messages/count_tokens")
    assert status == 200
    assert isinstance(body["input_tokens"], int)
    status, body = ask(Simulator("gemini"), body_for("gemini"), path="/v1beta/models/m:countTokens")
    assert status == 200
    assert body["totalTokens"]


@pytest.mark.parametrize(("keep_alive", "word"), [(None, "load"), (0, "unload")])
def test_ollama_loads_a_model_when_nothing_is_said(keep_alive: object, word: str) -> None:
    status, body = ask(Simulator("ollama_native"), {"model": "m", "messages": [], "keep_alive": keep_alive})
    assert (status, body["done"], body["done_reason"]) == (200, True, word)


@pytest.mark.parametrize(
    ("preset", "field", "value"),
    [
        ("ollama_native", "think", "hard"),
        ("ollama_native", "messages", [{"role": "user", "content": ["x"]}]),
        ("ollama_native", "messages", [{"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}]),
        ("cohere", "tool_choice", "AUTO"),
        ("cohere", "p", 1.0),
        ("cohere", "frequency_penalty", -1.0),
        ("cohere", "thinking", {"type": "enabled", "token_budget": 0}),
        ("cohere", "messages", [{"role": "tool", "tool_call_id": "c", "content": "x"}]),
        ("gemini_interactions", "generation_config", {"thinking_level": "hard"}),
        ("gemini_interactions", "generation_config", {"thinking_summaries": "all"}),
        ("gemini_interactions", "generation_config", {"top_k": 3}),
        ("gemini_interactions", "generation_config", {"tool_choice": "some"}),
        ("gemini_interactions", "input", [{"role": "user", "parts": [{"text": "x"}]}]),
        ("watsonx", "parameters", {"temperature": 2.5}),
        ("watsonx", "parameters", {"top_k": 0}),
        ("watsonx", "parameters", {"max_new_tokens": "many"}),
        ("watsonx", "parameters", {"decoding_method": "guess"}),
    ],
)
def test_what_the_dialects_own_servers_refuse(preset: str, field: str, value: object) -> None:
    status, body = ask(Simulator(preset), {**body_for(preset), field: value})
    assert status == 400
    assert body[{"cohere": "message", "watsonx": "errors"}.get(preset, "error")]


def test_interactions_words_its_errors_in_its_own_form() -> None:
    _, body = ask(Simulator("gemini_interactions"), {**body_for("gemini_interactions"), "generation_config": {"x": 1}})
    assert body == {"error": {"message": "Unknown parameter 'generation_config.x'.", "code": "invalid_request"}}


def test_watsonx_wants_its_version_and_words_its_errors_in_its_own_form() -> None:
    simulator = Simulator("watsonx", models=("known",))
    status, body = ask(simulator, body_for("watsonx"), path="/ml/v1/text/generation")
    assert status == 400
    assert list(body) == ["errors", "trace", "status_code"]
    assert "version" in str(body["errors"])
    status, body = ask(simulator, body_for("watsonx"))
    assert (status, body["status_code"]) == (404, 404)
    assert isinstance(body["errors"], list)
    assert list(body["errors"][0]) == ["code", "message", "more_info"]
    assert body["errors"][0]["code"] == "model_not_supported"


@pytest.mark.parametrize(("model", "refused"), [("Qwen/Qwen3.6-27B", True), ("Qwen/Qwen3-0.6B", False)])
def test_vllm_refuses_a_later_system_message_where_the_template_of_the_model_does(model: str, refused: bool) -> None:
    said = [("system", "a"), ("user", "x"), ("system", "b"), ("user", "y")]
    messages = [{"role": role, "content": content} for role, content in said]
    for body, status in (({"messages": messages}, 400 if refused else 200), ({"messages": messages[:2]}, 200)):
        given, answer = ask(Simulator("vllm"), {"model": model, **body})
        assert given == status
        assert status == 200 or at(answer, "error.message") == "System message must be at the beginning."


@pytest.mark.parametrize(("beside", "status"), [({"description": "d", "default": 1}, 200), ({"title": "t"}, 400)])
def test_gemini_takes_only_a_description_and_a_default_beside_a_reference(beside: Body, status: int) -> None:
    schema = {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/P", **beside}},
        "$defs": {"P": {"type": "string"}},
    }
    tools = [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]}]
    config = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    for fields in ({"tools": tools}, {"generationConfig": config}):
        assert ask(Simulator("gemini"), {**body_for("gemini"), **fields})[0] == status


@pytest.mark.parametrize("preset", ["openai_chat", "openai_responses", "gemini"])
@pytest.mark.parametrize("size", [64, 65])
def test_a_tool_has_a_name_of_at_most_64_characters(preset: str, size: int) -> None:
    body = json.dumps(body_for(preset, tools=True)).replace('"weather"', json.dumps("n" * size))
    status, refused = ask(Simulator(preset), body.encode())
    assert status == (200 if size == 64 else 400)
    assert size == 64 or "64" in json.dumps(refused)


@pytest.mark.parametrize(("results", "status"), [([[1, 1]], 200), ([[1], [1]], 400), ([[1, 1, 1]], 400)])
def test_gemini_counts_the_results_in_the_content_after_the_calls(results: list[list[int]], status: int) -> None:
    call, result = {"name": "f", "args": {}}, {"name": "f", "response": {"output": "x"}}
    answers = [{"role": "user", "parts": [{"functionResponse": result} for _ in parts]} for parts in results]
    called = {"role": "model", "parts": [{"functionCall": call}] * 2}
    contents = [{"role": "user", "parts": [{"text": "x"}]}, called, *answers]
    assert ask(Simulator("gemini"), {**body_for("gemini"), "contents": contents})[0] == status


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([{"role": "assistant", "content": "So "}], "final assistant content cannot end with trailing whitespace"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "text content blocks must be non-empty"),
        ([{"role": "user", "content": " \n"}], "text content blocks must contain non-whitespace text"),
        ([{"role": "user", "content": ""}], "all messages must have non-empty content"),
    ],
)
def test_anthropic_refuses_text_that_says_nothing(messages: list[Body], words: str) -> None:
    body = body_for("anthropic")
    status, refused = ask(
        Simulator("anthropic"), {**body, "messages": [{"role": "user", "content": "Hello."}, *messages]}
    )
    assert status == 400
    assert words in str(at(refused, "error.message"))
