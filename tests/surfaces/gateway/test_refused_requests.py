"""Requests that bardo itself refuses: the error says what is wrong and what to do, in the client's dialect (GW7)."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from bardo.adapters.config.settings import ProviderEntry
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE, House, house
from support.patience import PATIENCE
from support.talk import ALL_CLIENTS, Answer, ask, body_for, path_for, request
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.refusals import refusal

each_client = pytest.mark.parametrize("client", ALL_CLIENTS)
MODEL = "deepseek/m1"

NOT_JSON = {
    "nothing": b"",
    "no JSON": b"{",
    "text after it": b"{} {}",
    "an array": b"[]",
    "a number": b"1",
    "null": b"null",
    "no UTF-8": b'{"model": "\xff\xfe"}',
    "half a surrogate": b'{"model": "\\ud800"}',
    "not a number": b'{"temperature": NaN}',
    "deep arrays": b"[" * 200_000,
    "deep objects": b'{"a":' * 200_000,
    "deep below a field": b'{"tools":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


def sent(town: House, client: str, body: Any, *, stream: bool = False) -> Answer:
    return request(town.address, "POST", path_for(client, MODEL, stream=stream), body)


@each_client
@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON)
def test_a_body_that_is_no_json_object_is_refused(town: House, client: str, body: bytes) -> None:
    answer = sent(town, client, body)
    assert answer.status == 400
    assert "body" in refusal(client, answer)


WRONG: dict[str, dict[str, dict[str, Any]]] = {
    "openai_chat": {
        "messages": {"messages": "hello"},
        "messages[0]": {"messages": [1]},
        "role": {"messages": [{"role": "wizard", "content": "x"}]},
        "content": {"messages": [{"role": "user", "content": 5}]},
        "temperature": {"temperature": "hot"},
        "max_tokens": {"max_tokens": "many"},
        "stream": {"stream": "yes"},
        "model": {"model": None},
        "tools": {"tools": {}},
        "n": {"n": "two"},
    },
    "openai_responses": {
        "input": {"input": 5},
        "model": {"model": 5},
        "temperature": {"temperature": "hot"},
        "max_output_tokens": {"max_output_tokens": "many"},
        "tools": {"tools": {}},
        "stream": {"stream": "yes"},
    },
    "anthropic_messages": {
        "messages": {"messages": None},
        "messages[0]": {"messages": [1]},
        "max_tokens": {"max_tokens": None},
        "model": {"model": []},
        "thinking": {"thinking": 5},
        "temperature": {"temperature": "hot"},
        "stream": {"stream": "yes"},
    },
    "gemini": {
        "contents": {"contents": None},
        "parts": {"contents": [{"role": "user", "parts": 5}]},
        "generationConfig": {"generationConfig": []},
        "temperature": {"generationConfig": {"temperature": "hot"}},
        "tools": {"tools": 5},
    },
}
WRONG |= {
    "ollama": {
        "messages": {"messages": "hello"},
        "messages[0]": {"messages": [1]},
        "role": {"messages": [{"role": "wizard", "content": "x"}]},
        "model": {"model": None},
        "temperature": {"options": {"temperature": "hot"}},
        "think": {"think": "wildly"},
        "format": {"format": "xml"},
        "stream": {"stream": "yes"},
    },
    "ollama_generate": {
        "prompt": {"prompt": 5},
        "system": {"system": {}},
        "images": {"images": "one"},
        "model": {"model": 5},
        "raw": {"raw": True},
    },
    "bedrock_converse": {
        "messages": {"messages": None},
        "messages[0]": {"messages": [1]},
        "maxTokens": {"inferenceConfig": {"maxTokens": "many"}},
        "temperature": {"inferenceConfig": {"temperature": "hot"}},
        "thinking": {"additionalModelRequestFields": {"thinking": 5}},
        "toolConfig": {"toolConfig": []},
    },
    "bedrock_invoke": {
        "messages": {"messages": None},
        "max_tokens": {"max_tokens": None},
        "anthropic_beta": {"anthropic_beta": "one"},
        "thinking": {"thinking": 5},
    },
    "cohere": {
        "messages": {"messages": "hello"},
        "model": {"model": None},
        "max_tokens": {"max_tokens": 0},
        "thinking": {"thinking": {"type": "maybe"}},
        "tool_choice": {"tool_choice": "ANY"},
        "stream": {"stream": "yes"},
    },
    "gemini_interactions": {
        "input": {"input": 5},
        "model": {"model": None},
        "generation_config": {"generation_config": []},
        "temperature": {"generation_config": {"temperature": "hot"}},
        "thinking_level": {"generation_config": {"thinking_level": "wild"}},
        "tools": {"tools": {}},
    },
}
_CASES = [pytest.param(client, field, id=f"{client}-{field}") for client, fields in WRONG.items() for field in fields]


@pytest.mark.parametrize(("client", "field"), _CASES)
@whole_and_streamed
def test_a_wrong_value_is_named(town: House, client: str, field: str, stream: bool) -> None:
    before = len(town.arrived("deepseek"))
    body = body_for(client, MODEL, stream=stream) | WRONG[client][field]
    answer = sent(town, client, body, stream=stream)
    assert answer.status == 400
    message = refusal(client, answer)
    assert field.partition("[")[0] in message
    assert len(town.arrived("deepseek")) == before


@pytest.fixture(scope="module")
def village() -> Iterator[House]:
    """A gateway over two servers that serve only what they list."""
    with house([Simulator("vllm", models=("qwen3-32b",)), Simulator("llama_server")]) as running:
        yield running


@each_client
@whole_and_streamed
def test_an_unknown_model_is_answered_with_near_names(village: House, client: str, stream: bool) -> None:
    answer = ask(village.address, client, "qwen-32b", stream=stream)
    assert answer.status == 404
    assert "did you mean qwen3-32b" in refusal(client, answer)
    row = village.log.rows[-1]
    assert (row.outcome, row.error_class, row.attempts, row.provider) == ("error", "UnknownModel", 0, "")


def test_an_unknown_provider_is_answered_with_those_there_are(village: House) -> None:
    answer = ask(village.address, "openai_chat", "nobody/qqqqqqqq")
    assert answer.status == 404
    assert "use provider/model with one of vllm, llama_server" in refusal("openai_chat", answer)


@pytest.mark.parametrize(
    ("path", "client"),
    [
        ("/v1", "openai_chat"),
        ("/v1/nothing", "openai_chat"),
        ("/v1/messages/nothing", "anthropic_messages"),
        ("/v1beta/models/m:tuneModel", "gemini"),
        ("/v1beta/nothing", "gemini"),
        ("/v1/chat/completions/", "openai_chat"),
        ("/api/pull", "ollama"),
        ("/v2/rerank", "cohere"),
        ("/model/m/converse/", "bedrock_converse"),
        ("/model/m/apply-guardrail", "bedrock_converse"),
        ("/model//invoke", "bedrock_converse"),
        ("/v1beta/interactions-of", "gemini_interactions"),
        ("/%2e%2e/etc/passwd", "openai_chat"),
    ],
)
def test_an_unknown_route_is_404(town: House, path: str, client: str) -> None:
    answer = request(town.address, "POST", path, {})
    assert answer.status == 404
    assert "try one of /v1/chat/completions" in refusal(client, answer)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
@each_client
def test_a_wrong_method_is_405(town: House, client: str, method: str) -> None:
    answer = request(town.address, method, path_for(client, MODEL))
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"
    assert "takes POST" in refusal(client, answer)


def test_asking_for_models_with_post_is_405(town: House) -> None:
    answer = request(town.address, "POST", "/v1/models", {})
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/v1/models", "/models", "/v1beta/models"])
def test_small_endpoints_answer_get_and_head(town: House, path: str) -> None:
    assert request(town.address, "GET", path).json
    head = request(town.address, "HEAD", path)
    assert (head.status, head.body) == (200, b"")


@each_client
@whole_and_streamed
def test_a_body_over_the_limit_is_413(town: House, client: str, stream: bool) -> None:
    answer = sent(town, client, body_for(client, MODEL, question="x" * 1_000_001), stream=stream)
    assert answer.status == 413
    assert "over 1000000 bytes" in refusal(client, answer)


def test_a_request_of_more_messages_than_a_call_can_look_at_is_refused() -> None:
    turns = [{"role": ("user", "assistant")[at % 2], "content": "x"} for at in range(100_001)]
    with house([Simulator("deepseek")], gateway={"max_body_bytes": 8_000_000}) as large:
        for client in ("openai_chat", "anthropic_messages"):
            body = {**body_for(client, MODEL), "messages": turns}
            answer = request(large.address, "POST", path_for(client, MODEL), body)
            assert answer.status == 400
            assert "100,001 messages" in refusal(client, answer)
        assert not large.arrived("deepseek")


def test_a_body_of_unknown_length_is_measured_as_it_arrives(town: House) -> None:
    connection = HTTPConnection(urlsplit(town.address).netloc, timeout=PATIENCE)
    try:
        pieces = (b" " * 50_000 for _ in range(40))
        connection.request("POST", "/v1/chat/completions", pieces, encode_chunked=True)
        answer = connection.getresponse()
        assert answer.status == 413
        assert json.loads(answer.read())["error"]["code"] == "too_large"
    finally:
        connection.close()


def test_a_body_that_announces_a_monstrous_size_is_not_waited_for(town: House) -> None:
    with socket.create_connection(_place(town), timeout=PATIENCE) as client:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99999999999\r\n\r\n")
        assert client.recv(64).startswith(b"HTTP/1.1 413")


def _place(town: House) -> tuple[str, int]:
    parts = urlsplit(town.address)
    return str(parts.hostname), int(parts.port or 0)


@pytest.fixture(scope="module")
def keyless() -> Iterator[House]:
    """A gateway whose provider has no key, and another where nobody listens."""
    hosted = ProviderEntry(id="hosted", preset="deepseek", api_key_env=KEY_VARIABLE)
    with (
        Simulator("deepseek").running() as gone,
        house(before=[hosted], environment={}) as running,
    ):
        assert gone.base_url
        yield running


@each_client
@whole_and_streamed
def test_a_missing_key_is_the_operators_turn(keyless: House, client: str, stream: bool) -> None:
    answer = ask(keyless.address, client, "hosted/m1", stream=stream)
    assert answer.status == 401
    message = refusal(client, answer)
    assert "no key for hosted" in message
    assert f"set {KEY_VARIABLE}" in message


def test_after_all_that_bardo_still_serves(town: House) -> None:
    for client in ALL_CLIENTS:
        assert b"1161" in ask(town.address, client, MODEL).body
