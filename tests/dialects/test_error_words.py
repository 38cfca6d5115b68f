"""An error reaches a client in the words of its own dialect, whatever dialect the provider speaks."""

from __future__ import annotations

import json

import pytest

from bardo.dialects import dialect
from bardo.values.errors import UpstreamRefused
from bardo.values.events import ContentChunk, Failed
from bardo.values.request import Request
from bardo.values.wire import Arrival

CLIENTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini", "bedrock_converse", "cohere", "ollama")
OPENAI = {"upstream_type": "invalid_request_error", "upstream_code": "invalid_api_key", "dialect": "openai_chat"}
WORDS_OF = {
    "anthropic_messages": {
        "authentication_error",
        "permission_error",
        "not_found_error",
        "overloaded_error",
        "timeout_error",
        "api_error",
        "request_too_large",
    },
    "openai_chat": {"invalid_api_key", "model_not_found", "server_error", "insufficient_quota"},
}
OVERFLOWS = {
    "openai_chat": "maximum context length",
    "openai_responses": "maximum context length",
    "anthropic_messages": "prompt is too long",
    "gemini": "The input token count",
    "bedrock_converse": "Input is too long for requested model.",
    "cohere": "too many tokens",
    "ollama": "prompt too long",
}


def written(client: str, error: UpstreamRefused) -> str:
    return dialect(client).encode_error(error).decode()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (429, "rate_limit_error"),
        (400, "invalid_request_error"),
    ],
)
def test_a_messages_client_reads_its_own_type_whatever_the_provider_calls_it(status: int, kind: str) -> None:
    said = json.loads(written("anthropic_messages", UpstreamRefused("no", status=status, **OPENAI)))
    assert said["error"]["type"] == kind


def test_a_type_of_the_clients_own_dialect_comes_back_as_it_was() -> None:
    error = UpstreamRefused("busy", status=500, upstream_type="overloaded_error", dialect="anthropic_messages")
    assert json.loads(written("anthropic_messages", error))["error"]["type"] == "overloaded_error"
    assert json.loads(written("openai_chat", error))["error"]["type"] == "server_error"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 408, 413, 429, 500, 503, 504, 529])
def test_no_word_of_one_dialect_reaches_the_client_of_another(client: str, status: int) -> None:
    for spoken, words in WORDS_OF.items():
        family = client.partition("_")[0] == spoken.partition("_")[0]
        for word in () if family else words:
            error = UpstreamRefused("no", status=status, upstream_type=word, upstream_code=word, dialect=spoken)
            assert f'"{word}"' not in written(client, error), (spoken, word)


@pytest.mark.parametrize("client", CLIENTS)
def test_no_word_of_one_dialect_reaches_the_client_of_another_in_the_middle_of_a_stream(client: str) -> None:
    for spoken, words in WORDS_OF.items():
        family = client.partition("_")[0] == spoken.partition("_")[0]
        for word in () if family else words:
            for status in (400, 401, 404, 429, 500, 529):
                encoder = dialect(client).open_encoder(Request(model="m", messages=(), dialect=client), Arrival())
                error = UpstreamRefused("no", status=status, upstream_type=word, upstream_code=word, dialect=spoken)
                said = b"".join([*encoder.feed(ContentChunk(0, "Hi")), *encoder.feed(Failed(error)), *encoder.finish()])
                assert f'"{word}"'.encode() not in said, (spoken, word, status)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("numbers", [True, False])
def test_a_prompt_that_is_too_long_is_told_in_the_clients_own_sentence(client: str, numbers: bool) -> None:
    said = "prompt is too long: 210000 tokens > 200000 maximum" if numbers else "context window exceeded"
    error = UpstreamRefused(said, status=400, dialect="elsewhere")
    assert error.overflow is not None
    body = written(client, error)
    assert (OVERFLOWS[client] if numbers or not client.startswith("openai") else "exceeds the context window") in body
    assert said in body or client == "anthropic_messages"
    if client in ("cohere", "ollama"):
        assert ("by 10000 tokens" in body) == numbers


@pytest.mark.parametrize("client", ["bedrock_converse", "cohere", "ollama"])
def test_the_sentence_of_a_provider_of_the_clients_own_dialect_stays(client: str) -> None:
    error = UpstreamRefused("prompt is too long", status=400, dialect=client)
    assert OVERFLOWS[client] not in written(client, error)
    assert "prompt is too long" in written(client, error)
