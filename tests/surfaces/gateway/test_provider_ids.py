"""Two keys of one gateway cannot reach what the provider keeps for the other, though both are asked with the operator's credential."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from support.any_model import Simulator
from support.gateway import model_of
from support.keyed_gateway import KeyedGateway, keyed_gateway
from support.patience import PATIENCE

MODEL = model_of("openai_responses")
KEEPS_NONE = '[responses]\nstore = ""'
"""Without this the gateway keeps responses itself, and gives ids of its own."""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedGateway]:
    simulators = [Simulator("openai_responses"), Simulator("anthropic"), Simulator("gemini")]
    with keyed_gateway(
        tmp_path_factory.mktemp("ids"), simulators, toml=f'{KEEPS_NONE}\n[provider_ids]\nshared = ["vs_ours*"]'
    ) as running:
        yield running


def sdk(gateway: KeyedGateway, key: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.address}/v1", api_key=key, max_retries=0, timeout=PATIENCE)


def ask(client: openai.OpenAI, **asked: Any) -> Any:
    return client.responses.create(**{"model": MODEL, "input": "Hello", **asked})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_response_is_gone_on_from_by_its_own_key_alone(gateway: KeyedGateway, stream: bool) -> None:
    with sdk(gateway, gateway.key()) as mine, sdk(gateway, gateway.key()) as other:
        made = list(ask(mine, stream=True))[-1].response if stream else ask(mine)
        asked = len(gateway.servers["openai_responses"].requests)
        problems = []
        for name in (made.id, "resp_that_never_was"):
            with pytest.raises(openai.NotFoundError) as caught:
                ask(other, previous_response_id=name, stream=stream)
            problems.append((caught.value.code, caught.value.param, str(caught.value).replace(name, "X")))
        assert problems[0][:2] == ("previous_response_not_found", "previous_response_id")
        assert problems[0] == problems[1]
        with pytest.raises(openai.NotFoundError):
            other.responses.input_tokens.count(model=MODEL, input="Hi", previous_response_id=made.id)
        for item in made.output:
            with pytest.raises(openai.NotFoundError):
                ask(other, input=[{"type": "item_reference", "id": item.id}])
        assert len(gateway.servers["openai_responses"].requests) == asked
        assert ask(mine, previous_response_id=made.id).output_text


def test_keys_of_one_tenant_share_what_is_theirs(gateway: KeyedGateway) -> None:
    with sdk(gateway, gateway.key(tenant="ours")) as one, sdk(gateway, gateway.key(tenant="ours")) as two:
        assert ask(two, previous_response_id=ask(one).id).output_text


def test_what_the_operator_shares_is_everybodys(gateway: KeyedGateway) -> None:
    with sdk(gateway, gateway.key()) as client:
        search: Any = {"type": "file_search", "vector_store_ids": ["vs_ours1"]}
        assert ask(client, tools=[search]).output_text
        with pytest.raises(openai.NotFoundError, match="Vector store with id 'vs_1' not found"):
            ask(client, tools=[{**search, "vector_store_ids": ["vs_ours1", "vs_1"]}])


def test_clients_of_other_dialects_are_told_in_their_words(gateway: KeyedGateway) -> None:
    key = gateway.key()
    file: Any = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
    with anthropic.Anthropic(base_url=gateway.address, api_key=key, max_retries=0, timeout=PATIENCE) as client:
        message: Any = {"role": "user", "content": [file]}
        with pytest.raises(anthropic.NotFoundError, match="File with id 'file_1' not found"):
            client.messages.create(model=model_of("anthropic"), messages=[message], max_tokens=9)
        with pytest.raises(anthropic.NotFoundError, match="File with id 'file_1' not found"):
            client.messages.count_tokens(model=model_of("anthropic"), messages=[message])
    for verb in ("generateContent", "streamGenerateContent", "countTokens"):
        body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "cachedContent": "cachedContents/1"}
        address = f"{gateway.address}/v1beta/models/{model_of('gemini')}:{verb}"
        found = httpx.post(address, json=body, headers={"x-goog-api-key": key}, timeout=PATIENCE)
        assert (found.status_code, found.json()["error"]["status"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    "path", ["responses/X", "responses/X/cancel", "responses/X/input_items", "conversations/X", "files/X", "batches/X"]
)
def test_nothing_that_a_provider_keeps_is_read_or_deleted_by_its_id(gateway: KeyedGateway, path: str) -> None:
    key = gateway.key()
    with sdk(gateway, key) as client:
        made = ask(client)
    asked = len(gateway.servers["openai_responses"].requests)
    headers = {"authorization": f"Bearer {key}"}
    for method in ("GET", "DELETE", "POST"):
        address = f"{gateway.address}/v1/{path.replace('X', made.id)}"
        assert httpx.request(method, address, json={}, headers=headers, timeout=PATIENCE).status_code in (404, 405)
    assert len(gateway.servers["openai_responses"].requests) == asked


def test_whose_an_id_is_outlives_the_gateway_and_both_engines_agree(tmp_path: Path) -> None:
    simulators = [Simulator("openai_responses")]
    with keyed_gateway(tmp_path, simulators, toml=KEEPS_NONE) as before:
        mine, others = before.key(), before.key()
        with sdk(before, mine) as client:
            made = ask(client)
    store = '[responses]\nstore = "memory"'
    with keyed_gateway(tmp_path, simulators, toml=store) as after:
        with sdk(after, others) as client, pytest.raises(openai.NotFoundError):
            ask(client, previous_response_id=made.id)
        with sdk(after, mine) as client:
            assert ask(client, previous_response_id=made.id).output_text
            kept = ask(client)
            assert ask(client, previous_response_id=kept.id).output_text
    asked = [one.raw for one in after.servers["openai_responses"].requests]
    assert sum(made.id.encode() in raw for raw in asked) == 1


def test_without_keys_ids_are_passed_on_as_they_come(tmp_path: Path) -> None:
    with (
        keyed_gateway(tmp_path, [Simulator("openai_responses")], first_key=False) as running,
        sdk(running, "anything") as client,
    ):
        search: Any = {"type": "file_search", "vector_store_ids": ["vs_1"]}
        assert ask(client, tools=[search]).output_text
    assert not (tmp_path / "bardo" / "provider_ids.db").exists()
