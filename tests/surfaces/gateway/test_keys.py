"""Keys: who may ask, what they may ask, and how each dialect says no, through the official libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from support.any_model import Simulator
from support.keyed_gateway import PRICE, KeyedGateway, keyed_gateway
from support.patience import PATIENCE

MODEL = "deepseek/m1"
ASK = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 20}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedGateway]:
    toml = PRICE + '[aliases]\nswift = "deepseek/m1"\nother = "deepseek/m2"\n'
    with keyed_gateway(tmp_path_factory.mktemp("keys"), [Simulator("deepseek")], toml=toml) as running:
        yield running


def post(gateway: KeyedGateway, path: str, body: Any, **headers: str) -> httpx.Response:
    return httpx.post(f"{gateway.address}{path}", json=body, headers=headers, timeout=PATIENCE)


def chat(gateway: KeyedGateway, key: str, **asked: Any) -> httpx.Response:
    return post(gateway, "/v1/chat/completions", {**ASK, **asked}, authorization=f"Bearer {key}")


def with_openai(address: str, key: str) -> None:
    import openai

    with openai.OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0, timeout=PATIENCE) as client:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}], max_tokens=20)


def with_responses(address: str, key: str) -> None:
    import openai

    with openai.OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0, timeout=PATIENCE) as client:
        client.responses.create(model=MODEL, input="hi", max_output_tokens=20)


def with_anthropic(address: str, key: str) -> None:
    import anthropic

    with anthropic.Anthropic(base_url=address, api_key=key, max_retries=0, timeout=PATIENCE) as client:
        client.messages.create(model=MODEL, messages=[{"role": "user", "content": "hi"}], max_tokens=20)


def with_google(address: str, key: str) -> None:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=address, timeout=int(PATIENCE * 1000))
    with genai.Client(api_key=key, http_options=options) as client:
        client.models.generate_content(
            model=MODEL, contents="hi", config=types.GenerateContentConfig(max_output_tokens=20)
        )


def with_ollama(address: str, key: str) -> None:
    import ollama

    client: Any = ollama.Client(address, timeout=PATIENCE, headers={"authorization": f"Bearer {key}"})
    try:
        client.chat(model=MODEL, messages=[{"role": "user", "content": "hi"}], options={"num_predict": 20})
    finally:
        client.close()


def with_cohere(address: str, key: str) -> None:
    import cohere

    with cohere.ClientV2(api_key=key, base_url=address, timeout=PATIENCE) as client:
        client.chat(
            model=MODEL,
            messages=[cohere.UserChatMessageV2(content="hi")],
            max_tokens=20,
            request_options={"max_retries": 0},
        )


LIBRARIES: dict[str, Callable[[str, str], None]] = {
    "openai": with_openai,
    "openai responses": with_responses,
    "anthropic": with_anthropic,
    "google-genai": with_google,
    "ollama": with_ollama,
    "cohere": with_cohere,
}
each_library = pytest.mark.parametrize("library", LIBRARIES)
REFUSED = {
    "openai": ("AuthenticationError", "RateLimitError", "RateLimitError", "PermissionDeniedError"),
    "openai responses": ("AuthenticationError", "RateLimitError", "RateLimitError", "PermissionDeniedError"),
    "anthropic": ("AuthenticationError", "RateLimitError", "PaymentRequiredError", "PermissionDeniedError"),
    "google-genai": ("ClientError", "ClientError", "ClientError", "ClientError"),
    "ollama": ("ResponseError", "ResponseError", "ResponseError", "ResponseError"),
    "cohere": ("UnauthorizedError", "TooManyRequestsError", "ApiError", "ForbiddenError"),
}
_WITH_429 = ("openai", "openai responses", "google-genai")
STATUSES = {name: (401, 429, 429 if name in _WITH_429 else 402, 403) for name in LIBRARIES}


def refused(library: str, address: str, key: str) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each library has a class of its own, which is looked at
        LIBRARIES[library](address, key)
    return caught.value


def status_of(error: Any) -> int:
    return int(getattr(error, "status_code", None) or error.code)


@each_library
def test_a_key_opens_the_gateway_to_every_library(gateway: KeyedGateway, library: str) -> None:
    LIBRARIES[library](gateway.address, gateway.key())


@each_library
def test_a_key_that_is_not_known_raises_the_librarys_own_error(gateway: KeyedGateway, library: str) -> None:
    error = refused(library, gateway.address, "bardo_not-one-of-ours")
    assert type(error).__name__ == REFUSED[library][0]
    assert status_of(error) == STATUSES[library][0]
    assert "not-one-of-ours" not in str(error)


@each_library
def test_a_key_past_its_requests_raises_the_librarys_own_error(gateway: KeyedGateway, library: str) -> None:
    key = gateway.key(requests_per_minute=1)
    LIBRARIES[library](gateway.address, key)
    error = refused(library, gateway.address, key)
    assert type(error).__name__ == REFUSED[library][1]
    assert status_of(error) == STATUSES[library][1]
    assert "requests per minute" in str(error)


@each_library
def test_a_key_past_its_budget_raises_the_librarys_own_error(gateway: KeyedGateway, library: str) -> None:
    key = gateway.key(usd_per_day="0.000001")
    error = refused(library, gateway.address, key)
    assert type(error).__name__ == REFUSED[library][2]
    assert status_of(error) == STATUSES[library][2]
    assert "budget" in str(error)


@each_library
def test_a_key_may_ask_only_its_models(gateway: KeyedGateway, library: str) -> None:
    error = refused(library, gateway.address, gateway.key(models=("gpt-*",)))
    assert type(error).__name__ == REFUSED[library][3]
    assert status_of(error) == STATUSES[library][3]
