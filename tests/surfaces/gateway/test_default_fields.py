"""Default fields of a body over a gateway: they reach their own provider in every dialect, are told, and reach no other provider."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import openai
import pytest

from bardo.adapters.config.settings import Settings
from bardo.planning.model_names import Alias
from bardo.server.serving import BackgroundServer
from bardo.simulators import Running
from bardo.surfaces.gateway.main import gateway_of
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE, SECRET, entry

PLACES = {"order": ["a"], "data_collection": "deny"}


@pytest.fixture(scope="module")
def gateway() -> Iterator[tuple[str, dict[str, Running]]]:
    with Simulator("openrouter").running() as router, Simulator("deepseek").running() as other:
        first = msgspec.structs.replace(
            entry(Simulator("openrouter"), router.base_url), extra_body={"provider": PLACES}
        )
        aliases = {
            "nightly": Alias(model="openrouter/lab/m", fallbacks=("deepseek/n",), extra_body={"service_tier": "flex"}),
        }
        settings = Settings(providers=(first, entry(Simulator("deepseek"), other.base_url)), aliases=aliases)
        with BackgroundServer(gateway_of(settings, {KEY_VARIABLE: SECRET})) as server:
            yield server.address, {"openrouter": router, "deepseek": other}


def ask(address: str, model: str, **said: Any) -> tuple[Any, str]:
    with openai.OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0) as client:
        raw = client.chat.completions.with_raw_response.create(
            model=model, messages=[{"role": "user", "content": "hi"}], extra_body=said or None
        )
        return raw.parse(), raw.headers.get("x-bardo-degraded", "")


def latest(server: Running) -> dict[str, Any]:
    body = server.requests[-1].body
    assert isinstance(body, dict)
    return body


def test_a_provider_gets_its_fields_and_another_does_not(gateway: tuple[str, dict[str, Running]]) -> None:
    address, servers = gateway
    _, told = ask(address, "openrouter/lab/m")
    assert latest(servers["openrouter"])["provider"] == PLACES
    assert "provider" in told
    _, told = ask(address, "deepseek/n")
    assert "provider" not in latest(servers["deepseek"])
    assert "provider" not in told


def test_the_client_wins(gateway: tuple[str, dict[str, Running]]) -> None:
    address, servers = gateway
    ask(address, "openrouter/lab/m", provider={"order": ["mine"], "data_collection": "allow"})
    assert latest(servers["openrouter"])["provider"] == {"order": ["mine"], "data_collection": "allow"}


def test_an_alias_has_fields_of_its_own_in_another_dialect_too(gateway: tuple[str, dict[str, Running]]) -> None:
    address, servers = gateway
    with openai.OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0) as client:
        client.responses.create(model="nightly", input="hi")
    body = latest(servers["openrouter"])
    assert (body["provider"], body["service_tier"]) == (PLACES, "flex")
