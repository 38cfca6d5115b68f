"""Personal data is masked wherever it is sent: for vectors, for counts of tokens, and in batches, whose replies come hours later."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest

from bardo.simulators import Script
from support.any_model import Simulator
from support.batches import batch_house, chat_line
from support.gateway import house
from support.sdk import anthropic_client, openai_client
from support.talk import request
from surfaces.gateway.test_batches import MODELS, results_of, run_batch
from surfaces.gateway.test_privacy import MAIL, MASKED, SAID, TOML, echo, settings, values_in

EMBEDDING = (
    "openai_chat/text-embedding-3-large",
    "gemini/gemini-embedding-001",
    "ollama_native/nomic-embed-text:latest",
    "cohere/embed-v4.0",
    "bedrock/amazon.titan-embed-text-v2:0",
)
COUNTING = ("anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash", "openai_responses/gpt-5")


def sent_to(town: Any, model: str) -> list[str]:
    """Return what the provider of a model was sent, as texts."""
    return [json.dumps(one.body, ensure_ascii=False) for one in town.arrived(model.split("/")[0])]


@pytest.mark.parametrize("model", EMBEDDING)
def test_texts_are_masked_each_by_itself_before_vectors_are_made(model: str) -> None:
    with (
        house([Simulator(model.split("/")[0])], toml=TOML, keep_content=True) as town,
        closing(openai_client(town.address)) as sdk,
    ):
        made = sdk.embeddings.with_raw_response.create(
            model=model, input=[SAID, f"Ask bob@example.org or {MAIL}.", "hi"]
        )
        sent = "\n".join(sent_to(town, model))
        assert values_in(sent) == []
        assert "bob@" not in sent
        assert MASKED in sent
        assert "Ask <EMAIL_1> or <EMAIL_2>." in sent
        assert len(made.parse().data) == 3
        row = town.log.row(made.headers["x-bardo-request-id"])
        assert row.pipeline is not None
        assert row.request_content is not None
        [receipt] = row.pipeline["layers"]
        assert (receipt["layer"], receipt["did"]) == ("privacy", "masked 4 values")
        assert values_in(row.request_content) == []
        assert "<EMAIL_1>" in row.request_content


def test_the_receipt_of_vectors_has_those_of_the_layers() -> None:
    with house([Simulator("openai_chat")], toml=TOML) as town:
        body = {"model": EMBEDDING[0], "input": MAIL, "bardo": {"include": ["receipt"]}}
        answer = request(town.address, "POST", "/v1/embeddings", body)
        [receipt] = answer.json["bardo"]["receipt"]["pipeline"]["layers"]
        assert receipt["saw"] == {"texts": 1, "EMAIL_ADDRESS": 1}


@pytest.mark.parametrize("mode", ["mask", "block"])
def test_tokens_are_refused_since_nobody_can_search_them(mode: str) -> None:
    with (
        house([Simulator("openai_chat")], toml=settings(mode=mode)) as town,
        closing(openai_client(town.address)) as sdk,
    ):
        with pytest.raises(openai.BadRequestError, match="tokens cannot be searched"):
            sdk.embeddings.create(model=EMBEDDING[0], input=[[1, 2, 3]])
        assert town.arrived("openai_chat") == []


def test_tokens_go_where_values_are_only_counted() -> None:
    with house([Simulator("openai_chat")], toml=settings(mode="report")) as town:
        answer = request(town.address, "POST", "/v1/embeddings", {"model": EMBEDDING[0], "input": [[1, 2, 3]]})
        assert answer.status == 200
        assert "pipeline.inputs" in answer.headers["x-bardo-degraded"]


def test_vectors_are_refused_where_personal_data_is() -> None:
    with house([Simulator("openai_chat")], toml=settings(mode="block")) as town:
        answer = request(town.address, "POST", "/v1/embeddings", {"model": EMBEDDING[0], "input": ["hi", MAIL]})
        assert (answer.status, values_in(answer.text)) == (400, [])
        assert town.arrived("openai_chat") == []


def test_texts_beside_pictures_are_searched() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    path = "/v1beta/models/gemini/gemini-embedding-001:embedContent"
    with house([Simulator("gemini")], toml=TOML) as town:
        answer = request(town.address, "POST", path, {"content": {"parts": [{"text": SAID}, picture]}})
        assert answer.status == 400
        assert "no text" in answer.json["error"]["message"]
        assert town.arrived("gemini") == []
        answer = request(town.address, "POST", path, {"content": {"parts": [{"text": "hi"}, picture]}})
        assert "pipeline.inputs" in answer.headers["x-bardo-degraded"]
        [sent] = sent_to(town, "gemini/")
        assert "AAAA" in sent


@pytest.mark.parametrize("model", COUNTING)
def test_what_is_counted_is_masked(model: str) -> None:
    with (
        house([Simulator(model.split("/")[0])], toml=TOML) as town,
        closing(anthropic_client(town.address)) as sdk,
    ):
        counted = sdk.messages.with_raw_response.count_tokens(
            model=model, system=f"You serve {MAIL}.", messages=[{"role": "user", "content": SAID}]
        )
        assert counted.parse().input_tokens > 0
        [sent] = sent_to(town, model)
        assert values_in(sent) == []
        assert MASKED in sent
        assert (town.log.row(counted.headers["x-bardo-request-id"]).pipeline or {})["layers"][0][
            "did"
        ] == "masked 3 values"


def batch_simulator(provider: str) -> Simulator:
    return Simulator(provider, script=Script(otherwise=echo))


TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


@pytest.mark.parametrize("provider", MODELS)
def test_replies_of_batches_are_restored(provider: str, tmp_path: Path) -> None:
    with batch_house(tmp_path, [batch_simulator(provider)], more=TOML) as town:
        client = openai.OpenAI(base_url=f"{town.address}/v1", api_key="sk-one", max_retries=0)
        lines = [
            chat_line("one", MODELS[provider], SAID, tools=[TOOL]),
            chat_line("two", MODELS[provider], f"Only {MAIL}"),
            chat_line("none", MODELS[provider], "Hello"),
        ]
        batch = run_batch(client, lines)
        results = results_of(client, batch.output_file_id)
        message = results["one"]["response"]["body"]["choices"][0]["message"]
        assert message["content"] == SAID
        assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"city": SAID}
        assert results["two"]["response"]["body"]["choices"][0]["message"]["content"] == f"Only {MAIL}"
        assert results["none"]["response"]["body"]["choices"][0]["message"]["content"] == "Hello"
        assert results["two"]["bardo"]["receipt"]["pipeline"]["layers"][0]["did"] == "masked 1 value"
        sent = json.dumps([item.body for job in town.batches(provider).jobs.values() for item in job.items])
        assert values_in(sent) == []
        assert MASKED in sent
        rows = {row.request_id: row for row in town.rows()}
        assert (rows[results["one"]["bardo"]["request_id"]].pipeline or {})["layers"][0]["did"] == "masked 3 values"


def test_an_item_that_cannot_be_masked_is_refused_alone(tmp_path: Path) -> None:
    with batch_house(tmp_path, [batch_simulator("openai_chat")], more=settings(mode="block")) as town:
        client = openai.OpenAI(base_url=f"{town.address}/v1", api_key="sk-one", max_retries=0)
        batch = run_batch(
            client, [chat_line("bad", MODELS["openai_chat"], SAID), chat_line("good", MODELS["openai_chat"])]
        )
        [error] = results_of(client, batch.error_file_id).values()
        assert error["response"]["status_code"] == 400
        assert "EMAIL_ADDRESS (1)" in json.dumps(error)
        assert values_in(error) == []
        assert list(results_of(client, batch.output_file_id)) == ["good"]


def test_vectors_of_batches_are_made_of_masked_texts(tmp_path: Path) -> None:
    with batch_house(tmp_path, [Simulator("openai_chat")], more=TOML) as town:
        client = openai.OpenAI(base_url=f"{town.address}/v1", api_key="sk-one", max_retries=0)
        body = {"model": "openai_chat/text-embedding-3-small", "input": SAID}
        line = {"custom_id": "one", "method": "POST", "url": "/v1/embeddings", "body": body}
        batch = run_batch(client, [line], "/v1/embeddings")
        told = results_of(client, batch.output_file_id)["one"]
        assert told["response"]["body"]["data"][0]["embedding"]
        assert told["bardo"]["receipt"]["pipeline"]["layers"][0]["did"] == "masked 3 values"
        sent = json.dumps([item.body for job in town.batches("openai_chat").jobs.values() for item in job.items])
        assert (values_in(sent), MASKED in sent) == ([], True)


@pytest.mark.parametrize("alone", [False, True])
def test_the_profile_of_a_key_holds_for_its_batches(alone: bool, tmp_path: Path) -> None:
    provider = "deepseek" if alone else "openai_chat"
    model = "deepseek/deepseek-chat" if alone else MODELS[provider]
    more = TOML.replace('profile = "own"', "") + '[[keys]]\nid = "masked"\nkey_env = "MASKED_KEY"\npipeline = "own"\n'
    with batch_house(
        tmp_path,
        [batch_simulator(provider)],
        more=more,
        batches="run_without_api = true\n",
        environment={"MASKED_KEY": "sk-masked"},
    ) as town:
        client = openai.OpenAI(base_url=f"{town.address}/v1", api_key="sk-masked", max_retries=0)
        batch = run_batch(client, [chat_line("one", model, SAID, bardo={"pipeline": "off"})])
        told = results_of(client, batch.output_file_id)["one"]
        assert told["response"]["body"]["choices"][0]["message"]["content"] == SAID
        jobs = town.batches(provider).jobs.values() if not alone else ()
        sent = json.dumps(
            [item.body for job in jobs for item in job.items]
            or [one.body for one in town.simulators[provider].requests if one.method == "POST"]
        )
        assert (values_in(sent), MASKED in sent) == ([], True)
