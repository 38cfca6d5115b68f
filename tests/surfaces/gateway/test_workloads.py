"""Clients say what they need: by a model's name, in a header, in the body; and bardo finds who answers, or says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from bardo.adapters.config.settings import ProviderEntry
from support.any_model import Simulator
from support.gateway import House, house
from support.sdk import anthropic_client, gemini_client, openai_client
from support.talk import CLIENTS, ask

TABLE = """
[workloads.review]
about = "reads what others wrote"
model = ["nobody/serves-this", "anthropic/claude-sonnet-4-5"]
prefer = ["citations", "vision"]
profile = { temperature = 0.25 }

[workloads.strict]
model = "review"
locked = true

[workloads.any]
quality = "high"

[aliases]
"claude-haiku-*" = "bardo/review"
"""
CHAT = {"messages": [{"role": "user", "content": "What is 27 * 43?"}]}


@pytest.fixture(scope="module")
def running() -> Iterator[House]:
    providers = [Simulator("deepseek", models=["deepseek-chat"]), Simulator("anthropic", models=["claude-sonnet-4-5"])]
    far = ProviderEntry(id="far", preset="deepseek", base_url="http://provider.invalid/v1", models=("m",))
    with house(providers, before=[far], toml=TABLE) as it:
        yield it


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["bardo/review", "review", "claude-haiku-4-5"])
def test_a_models_name_may_be_a_workload(running: House, client: str, stream: bool, name: str) -> None:
    answer = ask(running.address, client, name, stream=stream)
    assert answer.status == 200
    assert answer.headers["x-bardo-provider"] == "anthropic"
    assert answer.headers["x-bardo-model"] == "claude-sonnet-4-5"
    assert answer.headers["x-bardo-route"].startswith("review; strategy=order")
    assert running.last("anthropic")["temperature"] == 0.25
    assert "model" in answer.headers["x-bardo-degraded"].split(", ")


def test_openais_library_names_a_workload(running: House) -> None:
    with closing(openai_client(running.address)) as client:
        raw = client.chat.completions.with_raw_response.create(model="bardo/review", **CHAT)  # type: ignore[call-overload]
        reply = raw.parse()
        assert raw.headers["x-bardo-provider"] == "anthropic"
        assert reply.model == "bardo/review"
        assert "1161" in reply.choices[0].message.content
        with client.chat.completions.stream(model="bardo/review", **CHAT) as events:  # type: ignore[arg-type]
            assert events.get_final_completion().model == "bardo/review"
        answered = client.responses.create(model="review", input="What is 27 * 43?", store=False)
        assert answered.model == "review"


def test_openais_library_sends_an_intent_in_the_body(running: House) -> None:
    with closing(openai_client(running.address)) as client:
        asked = {"intent": {"require": ["citations"], "quality": "high"}, "include": ["route"]}
        reply = client.chat.completions.create(model="bardo/auto", extra_body={"bardo": asked}, **CHAT)  # type: ignore[call-overload]
        route = reply.model_extra["bardo"]["route"]
        assert (route["provider"], route["workload"], route["relaxed"]) == ("anthropic", "auto", False)
        assert route["intent"]["require"] == ["citations"]
        other = next(one for one in route["candidates"] if one["model"] == "deepseek-chat")
        assert (other["relaxed"], other["reasons"]) == (True, ["lacks:citations"])


def test_anthropics_library_sends_an_intent_in_headers(running: House) -> None:
    with closing(anthropic_client(running.address)) as client:
        for headers in (
            {"X-Bardo-Intent": "require=citations; quality=high"},
            {"X-Bardo-Intent": '{"require": ["citations"]}'},
            {"X-Bardo-Subsystem": "review"},
        ):
            raw = client.messages.with_raw_response.create(
                model="bardo/auto",
                max_tokens=2000,
                messages=[{"role": "user", "content": "What is 27 * 43?"}],
                extra_headers=headers,
            )
            assert raw.headers["x-bardo-provider"] == "anthropic"
            assert raw.parse().model == "bardo/auto"
        lists = [model.id for model in client.models.list()]
        assert {"bardo/review", "bardo/any", "bardo/cheap"} <= {*lists}


def test_googles_library_names_a_workload(running: House) -> None:
    with closing(gemini_client(running.address)) as client:
        reply = client.models.generate_content(model="bardo/review", contents="What is 27 * 43?")
        assert "1161" in str(reply.text)
        assert reply.model_version == "bardo/review"
        chunks = list(client.models.generate_content_stream(model="bardo/review", contents="What is 27 * 43?"))
        assert "1161" in "".join(chunk.text or "" for chunk in chunks)


def test_a_model_and_an_intent_go_together(running: House) -> None:
    wanted = {"intent": {"prefer": ["citations"]}, "include": ["route"]}
    answer = ask(running.address, "openai_chat", "deepseek/deepseek-chat", bardo=wanted)
    assert answer.headers["x-bardo-provider"] == "deepseek"
    assert answer.headers["x-bardo-route"] == "intent; strategy=order; lacks citations"
    assert answer.json["bardo"]["route"]["degraded"] == ["citations"]
    assert "citations" in answer.headers["x-bardo-degraded"].split(", ")


def test_the_callers_fields_go_before_the_workloads(running: House) -> None:
    wanted: dict[str, Any] = {"intent": {"prefer": []}, "include": ["route"], "profile": {"temperature": 0.5}}
    answer = ask(running.address, "openai_chat", "bardo/review", bardo=wanted)
    assert answer.json["bardo"]["route"]["intent"]["prefer"] == []
    assert running.last("anthropic")["temperature"] == 0.5
    answer = ask(running.address, "openai_chat", "bardo/strict", bardo=wanted)
    assert running.last("anthropic")["temperature"] == 0.25
    assert "profile.strict.temperature" in answer.headers["x-bardo-degraded"].split(", ")


def test_the_route_is_in_the_log(running: House) -> None:
    answer = ask(running.address, "openai_chat", "bardo/review")
    row = running.log.row(answer.headers["x-bardo-request-id"])
    assert row.route is not None
    assert (row.route["workload"], row.route["model"]) == ("review", row.model)
    plain = ask(running.address, "openai_chat", "deepseek/deepseek-chat")
    assert running.log.row(plain.headers["x-bardo-request-id"]).route is None
    assert "x-bardo-route" not in plain.headers


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("model", "headers", "status", "said"),
    [
        ("bardo/revue", {}, 404, "did you mean bardo/review"),
        ("bardo/auto", {"x-bardo-subsystem": "drem"}, 400, "no subsystem or workload is called 'drem'"),
        ("bardo/review", {"x-bardo-subsystem": "cheap"}, 400, "names the workload 'review'"),
        ("bardo/auto", {"x-bardo-intent": "require=citation"}, 400, "did you mean citations"),
        ("bardo/auto", {"x-bardo-intent": "cost_sensitivity=nan"}, 400, "at least 0"),
        ("bardo/auto", {"x-bardo-intent": "cost_sensitivity=-1"}, 400, "at least 0"),
        ("bardo/auto", {"x-bardo-intent": "hurry=yes"}, 400, "hurry"),
        ("far/m", {"x-bardo-intent": "require=privacy"}, 400, "list the provider under [routing]: private_providers"),
    ],
)
def test_what_is_wrong_is_said_in_the_clients_own_dialect(
    running: House, client: str, model: str, headers: dict[str, str], status: int, said: str
) -> None:
    answer = ask(running.address, client, model, headers=headers)
    assert answer.status == status
    assert said in answer.text
    assert answer.json["error"] if client != "cohere" else answer.json["message"]


def test_libraries_raise_their_own_errors(running: House) -> None:
    import anthropic
    import openai
    from google.genai import errors

    with closing(openai_client(running.address)) as client, pytest.raises(openai.NotFoundError) as of_openai:
        client.chat.completions.create(model="bardo/revue", **CHAT)  # type: ignore[call-overload]
    assert "bardo/review" in str(of_openai.value)
    wrong = {"bardo": {"intent": {"require": ["citation"]}}}
    with closing(openai_client(running.address)) as client, pytest.raises(openai.BadRequestError) as of_body:
        client.chat.completions.create(model="bardo/auto", extra_body=wrong, **CHAT)  # type: ignore[call-overload]
    assert of_body.value.param == "bardo.intent.require[0]"
    with closing(anthropic_client(running.address)) as client, pytest.raises(anthropic.BadRequestError):
        client.messages.create(
            model="bardo/auto",
            max_tokens=100,
            messages=[{"role": "user", "content": "x"}],
            extra_headers={"X-Bardo-Intent": "quality=best"},
        )
    with closing(gemini_client(running.address)) as google, pytest.raises(errors.ClientError) as of_google:
        google.models.generate_content(model="bardo/revue", contents="x")
    assert of_google.value.code == 404


def test_vectors_need_a_model(running: House) -> None:
    with closing(openai_client(running.address)) as client:
        import openai

        with pytest.raises(openai.BadRequestError, match="name the model that makes the vectors"):
            client.embeddings.create(model="bardo/cheap", input="x")


def test_tokens_of_a_workload_are_counted_for_its_model(running: House) -> None:
    with closing(anthropic_client(running.address)) as client:
        counted = client.messages.count_tokens(model="bardo/review", messages=[{"role": "user", "content": "Hello"}])
        assert counted.input_tokens > 0


def test_the_agents_subsystems_are_workloads_with_the_preset_alone(running: House) -> None:
    assert ask(running.address, "openai_chat", "bardo/risk").status == 404
    with house([Simulator("anthropic", models=["claude-opus-4-8"])], toml="[golem]\nenabled = true") as agent:
        answer = ask(agent.address, "openai_chat", "bardo/risk")
        assert (answer.status, answer.headers["x-bardo-route"].partition(";")[0]) == (200, "risk")
        by_header = ask(agent.address, "gemini", "bardo/auto", headers={"x-bardo-subsystem": "dream"})
        assert by_header.headers["x-bardo-route"].startswith("dream; strategy=order")


@pytest.mark.parametrize("base_url", ["http://provider.invalid/v1", "http://127.0.0.1:9/v1"])
def test_a_private_call_is_never_sent_to_a_provider_that_keeps_it(base_url: str) -> None:
    far = ProviderEntry(id="far", preset="deepseek", base_url=base_url, models=("m",), private=False)
    with house(before=[far]) as alone:
        for model, wanted in (("bardo/private", {}), ("far/m", {"private": True})):
            answer = ask(alone.address, "openai_chat", model, bardo=wanted)
            assert answer.status == 400
            assert "private" in answer.text
            assert answer.headers["x-bardo-error"] == "unsupported"
