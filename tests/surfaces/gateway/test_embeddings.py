"""Vectors of texts: each client library gets them of every provider that makes any, and is told what was lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from bardo.simulators import Incoming
from bardo.simulators.embeddings import vector
from bardo.simulators.exchange import Refusal
from bardo.simulators.faults import Fault
from support.any_model import Simulator
from support.gateway import House, house
from support.patience import PATIENCE
from support.sdk import gemini_client, openai_client
from support.talk import request

TEXTS = ["a red house", "a blue door"]
# A provider, a model of it, and what stands before the text where the simulated model makes other vectors of it for a task.
MODELS = {
    "openai_responses/text-embedding-3-small": "",
    "openai_chat/text-embedding-3-large": "",
    "vllm/BAAI/bge-m3": "",
    "mistral/codestral-embed": "",
    "gemini/gemini-embedding-001": "",
    "ollama_native/nomic-embed-text:latest": "",
    "cohere/embed-v4.0": "search_document",
    "bedrock/amazon.titan-embed-text-v2:0": "",
    "bedrock/cohere.embed-v4:0": "search_document",
}
each_model = pytest.mark.parametrize("model", MODELS)


@pytest.fixture(scope="module")
def openai_sdk(town: House) -> Iterator[Any]:
    with closing(openai_client(town.address)) as client:
        yield client


@pytest.fixture(scope="module")
def google_sdk(town: House) -> Iterator[Any]:
    with closing(gemini_client(town.address)) as client:
        yield client


@pytest.fixture(scope="module")
def ollama_sdk(town: House) -> Iterator[Any]:
    import ollama

    client = ollama.Client(host=town.address)
    with closing(client._client):
        yield client


def expected(model: str, size: int = 8) -> list[list[float]]:
    return [vector(f"{MODELS[model]}{text}", size) for text in TEXTS]


def near(given: Any, wanted: list[list[float]]) -> bool:
    return [pytest.approx(one, abs=1e-6) for one in wanted] == [list(one) for one in given]


def post(town: House, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
    return request(town.address, "POST", path, json.dumps(body).encode(), headers or {})


@each_model
def test_openais_library_gets_vectors_of_every_provider(town: House, openai_sdk: Any, model: str) -> None:
    made = openai_sdk.embeddings.with_raw_response.create(model=model, input=TEXTS)
    reply = made.parse()
    assert near([row.embedding for row in reply.data], expected(model))
    assert [row.index for row in reply.data] == [0, 1]
    assert (reply.object, reply.usage.total_tokens) == ("list", reply.usage.prompt_tokens)
    assert reply.usage.prompt_tokens > 0
    row = town.log.row(made.headers["x-bardo-request-id"])
    assert (row.operation, row.outcome, row.model_asked, row.status) == ("embed", "ok", model, 200)
    assert (row.input_tokens, row.output_tokens) == (reply.usage.prompt_tokens, None)
    assert row.receipt is not None
    assert (row.receipt["vectors"], row.receipt["dimensions"]) == (2, 8)


@each_model
@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_vectors_come_in_the_encoding_that_was_asked_for(town: House, model: str, encoding: str) -> None:
    answer = post(town, "/v1/embeddings", {"model": model, "input": TEXTS[0], "encoding_format": encoding})
    assert answer.status == 200
    [row] = json.loads(answer.body)["data"]
    assert isinstance(row["embedding"], str if encoding == "base64" else list)


@each_model
def test_googles_library_gets_vectors_of_every_provider(google_sdk: Any, model: str) -> None:
    made = google_sdk.models.embed_content(model=model, contents=TEXTS)
    assert near([one.values for one in made.embeddings], expected(model))


@each_model
def test_ollamas_library_gets_vectors_of_every_provider(ollama_sdk: Any, model: str) -> None:
    made = ollama_sdk.embed(model=model, input=TEXTS)
    assert near(made.embeddings, expected(model))
    assert made.prompt_eval_count > 0


@each_model
def test_ollamas_older_endpoint_gives_one_vector(ollama_sdk: Any, model: str) -> None:
    scale = 2 if model.startswith("ollama") else 1
    made = ollama_sdk.embeddings(model=model, prompt=TEXTS[0])
    assert list(made.embedding) == pytest.approx([scale * one for one in expected(model)[0]], abs=1e-6)


@pytest.mark.parametrize("model", [model for model in MODELS if "mistral" not in model])
def test_a_length_of_vectors_is_asked_for(openai_sdk: Any, ollama_sdk: Any, google_sdk: Any, model: str) -> None:
    made = openai_sdk.embeddings.create(model=model, input=TEXTS, dimensions=5)
    assert near([row.embedding for row in made.data], expected(model, 5))
    assert near(ollama_sdk.embed(model=model, input=TEXTS, dimensions=5).embeddings, expected(model, 5))
    made = google_sdk.models.embed_content(model=model, contents=TEXTS, config={"output_dimensionality": 5})
    assert near([one.values for one in made.embeddings], expected(model, 5))


FIXED = ("openai_chat/text-embedding-ada-002", "cohere/embed-english-v3.0", "bedrock/amazon.titan-embed-text-v1")


@pytest.mark.parametrize("model", FIXED)
def test_a_length_that_cannot_be_chosen_is_refused_unless_that_is_allowed(town: House, model: str) -> None:
    asked = {"model": model, "input": "x", "dimensions": 5}
    refused = post(town, "/v1/embeddings", asked)
    assert (refused.status, json.loads(refused.body)["error"]["param"]) == (400, "dimensions")
    allowed = post(town, "/v1/embeddings", {**asked, "bardo": {"allow_loss": ["dimensions"]}})
    assert allowed.status == 200
    assert "dimensions" in allowed.headers["x-bardo-degraded"]


def test_a_task_reaches_those_who_know_it_and_is_reported_where_nobody_does(town: House, google_sdk: Any) -> None:
    google = google_sdk.models
    config = {"task_type": "RETRIEVAL_QUERY"}
    made = google.embed_content(model="cohere/embed-v4.0", contents=TEXTS[0], config=config)
    assert near([one.values for one in made.embeddings], [vector(f"search_query{TEXTS[0]}")])
    made = google.embed_content(model="gemini/gemini-embedding-001", contents=TEXTS[0], config=config)
    assert near([one.values for one in made.embeddings], [vector(f"RETRIEVAL_QUERY{TEXTS[0]}")])
    body = {"content": {"parts": [{"text": "x"}]}, "taskType": "RETRIEVAL_QUERY", "title": "t"}
    answer = post(town, "/v1beta/models/vllm/m:embedContent", body)
    assert {"task", "title"} <= set(answer.headers["x-bardo-degraded"].split(", "))
    answer = post(town, "/v1/embeddings", {"model": "gemini/gemini-embedding-001", "input": "x", "input_type": "query"})
    assert town.last("gemini")["taskType"] == "RETRIEVAL_QUERY"


def test_what_cohere_must_be_told_and_nobody_said_is_reported(town: House) -> None:
    answer = post(town, "/v1/embeddings", {"model": "cohere/embed-v4.0", "input": "x"})
    assert "input_type" in answer.headers["x-bardo-degraded"]


def test_fields_of_the_same_dialect_are_sent_on_and_of_another_reported(town: House) -> None:
    same = post(town, "/v1/embeddings", {"model": "vllm/m", "input": "x", "truncate_prompt_tokens": 3})
    assert town.last("vllm") == {"model": "m", "input": "x", "truncate_prompt_tokens": 3}
    assert "x-bardo-degraded" not in same.headers
    other = post(town, "/v1/embeddings", {"model": "ollama_native/m", "input": "x", "truncate_prompt_tokens": 3})
    assert other.headers["x-bardo-degraded"] == "truncate_prompt_tokens"
    older = post(town, "/api/embed", {"model": "vllm/m", "input": "x", "keep_alive": "5m", "truncate": False})
    assert set(older.headers["x-bardo-degraded"].split(", ")) == {"keep_alive", "truncate"}


def test_a_reply_in_the_clients_own_form_is_sent_on_as_it_came(town: House) -> None:
    answer = post(town, "/v1/embeddings", {"model": "vllm/m", "input": TEXTS})
    assert town.log.row(answer.headers["x-bardo-request-id"]).passed_through
    assert answer.headers["x-bardo-model"] == "m"


def test_tokens_go_to_openais_dialect_only(town: House, openai_sdk: Any) -> None:
    made = openai_sdk.embeddings.create(model="openai_chat/text-embedding-3-small", input=[[1, 2], [3]])
    assert len(made.data) == 2
    made = openai_sdk.embeddings.create(model="openai_chat/text-embedding-3-small", input=[1, 2, 3])
    assert len(made.data) == 1
    refused = post(town, "/v1/embeddings", {"model": "gemini/gemini-embedding-001", "input": [1, 2]})
    assert (refused.status, json.loads(refused.body)["error"]["param"]) == (400, "input[0]")


def test_a_picture_goes_to_geminis_dialect_only(town: House) -> None:
    body = {"content": {"parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}]}}
    refused = post(town, "/v1beta/models/vllm/m:embedContent", body)
    assert (refused.status, json.loads(refused.body)["error"]["status"]) == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    ("model", "texts", "calls"),
    [
        ("bedrock/amazon.titan-embed-text-v2:0", 3, 3),
        ("cohere/embed-v4.0", 200, 3),
        ("gemini/gemini-embedding-001", 150, 2),
        ("qwen/text-embedding-v4", 25, 3),
    ],
)
def test_more_inputs_than_a_provider_takes_go_in_several_calls(town: House, model: str, texts: int, calls: int) -> None:
    provider = model.partition("/")[0]
    before = len(town.arrived(provider))
    given = [f"text {place}" for place in range(texts)]
    answer = post(town, "/v1/embeddings", {"model": model, "input": given, "dimensions": 6})
    body = json.loads(answer.body)
    kind = "search_document" if "cohere" in model else ""
    assert near([row["embedding"] for row in body["data"]], [vector(f"{kind}{text}", 6) for text in given])
    assert len(town.arrived(provider)) - before == calls
    row = town.log.row(answer.headers["x-bardo-request-id"])
    assert (row.attempts, row.receipt and row.receipt["requests"]) == (1, calls)


def test_a_batch_of_geminis_own_is_cut_by_its_requests(town: House) -> None:
    asked = [{"model": "models/x", "content": {"parts": [{"text": f"text {place}"}]}} for place in range(101)]
    answer = post(town, "/v1beta/models/gemini/gemini-embedding-001:batchEmbedContents", {"requests": asked})
    rows = json.loads(answer.body)["embeddings"]
    assert near([row["values"] for row in rows], [vector(f"text {place}") for place in range(101)])


def test_a_provider_that_counts_no_tokens_is_reported_where_the_client_must_be_told(town: House) -> None:
    answer = post(town, "/v1/embeddings", {"model": "gemini/gemini-embedding-001", "input": "x" * 40})
    assert json.loads(answer.body)["usage"] == {"prompt_tokens": 10, "total_tokens": 10}
    assert "usage.input_tokens" in answer.headers["x-bardo-degraded"]
    assert town.log.row(answer.headers["x-bardo-request-id"]).tokens_approx


def test_a_reply_that_is_sent_on_without_a_count_holds_no_estimate(town: House) -> None:
    body = {"content": {"parts": [{"text": "x" * 40}]}}
    answer = post(town, "/v1beta/models/gemini/gemini-embedding-001:embedContent", body)
    assert "usageMetadata" not in json.loads(answer.body)
    assert "x-bardo-degraded" not in answer.headers
    row = town.log.row(answer.headers["x-bardo-request-id"])
    assert (row.input_tokens, row.tokens_approx, row.degraded) == (10, True, ())


@pytest.mark.parametrize(
    ("content", "named"),
    [({}, "content.parts"), ({"parts": [{"text": "a"}, "b"]}, "content.parts[1]")],
)
def test_one_content_of_geminis_is_named_as_its_client_knows_it(town: House, content: Any, named: str) -> None:
    answer = post(town, "/v1beta/models/gemini/gemini-embedding-001:embedContent", {"content": content})
    assert answer.status == 400
    assert json.loads(answer.body)["error"]["message"].startswith(f"{named} ")


def test_the_receipt_is_in_the_answer_where_it_was_asked_for(town: House) -> None:
    answer = post(
        town, "/v1/embeddings", {"model": "vllm/m", "input": "x", "dimensions": 4}, {"X-Bardo-Include": "receipt"}
    )
    bardo = json.loads(answer.body)["bardo"]
    assert bardo["request_id"] == answer.headers["x-bardo-request-id"]
    assert bardo["receipt"] == {"asked_dimensions": 4, "dimensions": 4, "vectors": 1, "requests": 1}


ERRORS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "/v1/embeddings": ({"model": "{}", "input": "x"}, ("error", "message")),
    "/v1beta/models/{}:embedContent": ({"content": {"parts": [{"text": "x"}]}}, ("error", "status")),
    "/api/embed": ({"model": "{}", "input": "x"}, ("error",)),
}


@pytest.mark.parametrize("path", ERRORS)
@pytest.mark.parametrize(
    ("model", "status"), [("nobody-has-this", 404), ("anthropic/claude-haiku-4-5", 400), ("deepseek/m1", 400)]
)
def test_errors_are_the_dialects_own(town: House, path: str, model: str, status: int) -> None:
    body, place = ERRORS[path]
    filled = {name: model if value == "{}" else value for name, value in body.items()}
    answer = post(town, path.format(model), filled)
    assert answer.status == status
    said = json.loads(answer.body)
    for name in place:
        said = said[name]
    assert isinstance(said, str)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "vllm/m"}, "input"),
        ({"model": "vllm/m", "input": []}, "input"),
        ({"model": "vllm/m", "input": [None]}, "input[0]"),
        ({"model": "vllm/m", "input": "x", "encoding_format": "hex"}, "encoding_format"),
        ({"model": "vllm/m", "input": "x", "dimensions": 0}, "dimensions"),
        ({"input": "x"}, "model"),
    ],
)
def test_a_request_that_is_none_names_the_field(town: House, body: Any, param: str) -> None:
    answer = post(town, "/v1/embeddings", body)
    assert (answer.status, json.loads(answer.body)["error"]["param"]) == (400, param)


def test_a_provider_that_fails_is_followed_by_the_next() -> None:
    first, second = Simulator("vllm", models=["m"]), Simulator("ollama_native", models=["m"])
    with house([first, second], each={"models": ("m",)}) as running, closing(openai_client(running.address)) as client:
        first.fail(Fault(kind="status", status=503))
        made = client.embeddings.with_raw_response.create(model="m", input=TEXTS)
        assert made.headers["x-bardo-provider"] == "ollama_native"
        assert "provider" in made.headers["x-bardo-degraded"]
        assert near([row.embedding for row in made.parse().data], [vector(text) for text in TEXTS])
        row = running.log.row(made.headers["x-bardo-request-id"])
        assert (row.attempts, row.provider, row.outcome) == (3, "ollama_native", "ok")


def test_what_was_lost_before_is_told_where_the_call_has_a_deadline() -> None:
    first, second = Simulator("vllm", models=["m"]), Simulator("ollama_native", models=["m"])
    with house([first, second], each={"models": ("m",)}) as running:
        first.fail(Fault(kind="status", status=401))
        made = post(running, "/v1/embeddings", {"model": "m", "input": "x", "bardo": {"deadline_seconds": PATIENCE}})
    assert (made.status, made.headers["x-bardo-provider"]) == (200, "ollama_native")
    assert "provider" in made.headers["x-bardo-degraded"].split(", ")


def test_a_model_that_was_passed_over_is_told_beside_what_else_is_lost() -> None:
    alias = '[aliases]\nembedder = { model = "vllm/m", fallbacks = ["nobody/m"] }\n'
    with house([Simulator("vllm", models=["m"])], toml=f"{alias}[golem]\nenabled = true\n") as running:
        asked = {"model": "embedder", "input": "x"}
        made = post(running, "/v1/embeddings", asked, {"X-Bardo-Vitality": "0.2"})
    assert made.status == 200
    assert {"model", "vitality"} <= {*made.headers["x-bardo-degraded"].split(", ")}


class RefusingPlaces(Simulator):
    """A provider that does not know `provider` in a body."""

    def _answer(self, provider: Any, incoming: Incoming) -> Any:
        if "provider" in incoming.fields:
            raise Refusal("unknown_field", "Unknown parameter: 'provider'.", parameter="provider")
        return super()._answer(provider, incoming)


def test_that_the_last_provider_refuses_a_field_that_the_operator_requires_is_what_the_client_is_told() -> None:
    alias = 'embedder = { model = "vllm/BAAI/bge-m3", extra_body = { provider = { zdr = true } } }'
    with house([RefusingPlaces("vllm")], toml=f"[aliases]\n{alias}\n") as running:
        refused = post(running, "/v1/embeddings", {"model": "embedder", "input": "x"})
    error = json.loads(refused.body)["error"]
    assert (refused.status, error["param"]) == (400, "provider.zdr")
    assert "a default field of this gateway" in error["message"]


def test_the_error_of_the_last_provider_keeps_its_status_and_is_logged() -> None:
    import openai

    only = Simulator("vllm", models=["m"])
    with house([only]) as running, closing(openai_client(running.address)) as client:
        only.fail(Fault(kind="status", status=429, retry_after=7))
        with pytest.raises(openai.RateLimitError) as caught:
            client.embeddings.create(model="vllm/m", input="x")
        assert caught.value.response.headers["retry-after"] == "7"
        row = running.log.of_model("vllm/m")
        assert (row.operation, row.outcome, row.status) == ("embed", "error", 429)


@pytest.mark.parametrize("fault", ["malformed", "cut"])
def test_a_reply_that_is_none_is_an_error(fault: Any) -> None:
    only = Simulator("vllm", models=["m"])
    with house([only]) as running:
        only.fail(Fault(kind=fault))
        answer = post(running, "/v1/embeddings", {"model": "vllm/m", "input": "x"})
        assert answer.status == 502


def test_a_number_that_base64_cannot_hold_is_the_providers_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bardo.simulators.providers.ollama.vector", lambda *_: [1e39])
    with house([Simulator("ollama_native")]) as running:
        body = {"model": "ollama_native/m", "input": "x", "encoding_format": "base64"}
        answer = post(running, "/v1/embeddings", body)
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (502, "malformed_reply")
        assert running.log.of_model("ollama_native/m").outcome == "error"


FAILING = tuple(model for model in MODELS if model != "bedrock/cohere.embed-v4:0")


@pytest.mark.parametrize("model", FAILING)
def test_a_fault_in_the_models_name_befalls_vectors_too(town: House, model: str) -> None:
    failed = post(town, "/v1/embeddings", {"model": f"{model}+fault:status=429,times=1", "input": TEXTS})
    assert failed.status == 429
    again = post(town, "/v1/embeddings", {"model": f"{model}+fault:status=429,times=1", "input": TEXTS})
    assert again.status == 200


@pytest.mark.parametrize(
    "model", ["gemini/gemini-embedding-001", "cohere/embed-v4.0", "openai_chat/text-embedding-3-large"]
)
@pytest.mark.parametrize("size", [10**20, 5000, 0])
def test_a_length_that_no_vector_has_is_refused(town: House, model: str, size: int) -> None:
    refused = post(town, "/v1/embeddings", {"model": model, "input": "x", "dimensions": size})
    assert refused.status == 400


def test_the_fields_of_an_alias_on_privacy_go_with_requests_for_vectors() -> None:
    alias = 'embedder = { model = "vllm/BAAI/bge-m3", extra_body = { seed = 1, provider = { zdr = true } } }'
    with house([Simulator("vllm")], toml=f"[aliases]\n{alias}\n") as running:
        reply = request(running.address, "POST", "/v1/embeddings", {"model": "embedder", "input": TEXTS})
        [sent] = [one.body for one in running.arrived("vllm") if one.path.endswith("/embeddings")]
    assert reply.status == 200
    assert sent == {"model": "BAAI/bge-m3", "input": TEXTS, "provider": {"zdr": True}}
    assert "provider" in reply.headers["x-bardo-degraded"]
