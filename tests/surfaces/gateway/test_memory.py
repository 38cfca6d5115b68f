"""`/v1/bardo/memory`: each key finds, sees and forgets the thinking of its own tenant's calls, and of no other's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory
from support.any_model import Simulator
from support.gateway import model_of
from support.hostile_text import HOSTILE
from support.keyed_gateway import KeyedGateway, keyed_gateway
from support.patience import PATIENCE

CONSENT = "[log]\ncontent = true\n[memory]\nenabled = true\n"
PRIVACY = """
[inference.pipeline]
profile = "masked"
[inference.pipeline.profiles.masked]
layers = ["privacy"]
"""
MEMORY = "/v1/bardo/memory"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedGateway]:
    folder = tmp_path_factory.mktemp("memory")
    with keyed_gateway(folder, [Simulator("deepseek")], toml=CONSENT + PRIVACY) as running:
        yield running


def call(gateway: KeyedGateway, method: str, path: str, key: str, **further: Any) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}", **further.pop("headers", {})}
    return httpx.request(method, f"{gateway.address}{path}", headers=headers, timeout=PATIENCE, **further)


def asked(gateway: KeyedGateway, key: str, question: str, **further: Any) -> str:
    """Ask a model that thinks, and return the id of the call."""
    body = {
        "model": model_of("deepseek"),
        "messages": [{"role": "user", "content": question}],
        "reasoning_effort": "high",
    }
    answer = call(gateway, "POST", "/v1/chat/completions", key, json=body, **further)
    assert answer.status_code == 200, answer.text
    return answer.headers["x-bardo-request-id"]


def found(gateway: KeyedGateway, key: str, **query: Any) -> list[dict[str, Any]]:
    answer = call(gateway, "GET", MEMORY, key, params=query)
    assert answer.status_code == 200, answer.text
    listed: list[dict[str, Any]] = answer.json()["data"]
    return listed


def test_a_key_sees_the_thinking_of_its_own_tenant_alone(gateway: KeyedGateway) -> None:
    mine, also_mine, other = (gateway.key(name=name, tenant=name[:4]) for name in ("acme-1", "acme-2", "else"))
    request_id = asked(gateway, mine, "Which bridge is oldest?")
    asked(gateway, other, "Which bridge is longest?")
    [one] = found(gateway, mine, query="bridge", by="words")
    assert (one["request_id"], one["tenant"]) == (request_id, "acme")
    assert [each["request_id"] for each in found(gateway, also_mine, query="bridge", by="words")] == [request_id]
    shown = call(gateway, "GET", f"{MEMORY}/{one['id']}", also_mine)
    assert shown.json()["question"] == "Which bridge is oldest?"
    assert shown.json()["reasoning"]["steps"][0]["content"]
    path = f"{MEMORY}/{one['id']}"
    assert call(gateway, "GET", path, other).status_code == 404
    assert call(gateway, "DELETE", path, other).status_code == 404
    assert call(gateway, "GET", path, "wrong").status_code == 401
    assert call(gateway, "DELETE", path, mine).json() == {
        "id": one["id"],
        "object": "episode",
        "deleted": True,
        "calls": 1,
    }
    assert call(gateway, "DELETE", path, mine).status_code == 404
    assert len(found(gateway, other, query="bridge", by="words")) == 1


def test_filters_are_read_and_wrong_ones_are_named(gateway: KeyedGateway) -> None:
    key = gateway.key(name="filters")
    asked(gateway, key, "Which lake is deepest?", headers={"x-bardo-session": "lakes"})
    [one] = found(gateway, key, query="lake", session="lakes", model="m1", since="0", limit="5", by="words")
    assert one["question"] == "Which lake is deepest?"
    assert found(gateway, key, query="lake", session="rivers") == []
    assert found(gateway, key, query="lake", before="1") == []
    for query, said in (
        ({"tenant": "acme"}, "tenant"),
        ({"limit": "many"}, "limit"),
        ({"since": "inf"}, "since"),
        ({"since": "nan"}, "since"),
        ({"by": "magic"}, "by"),
    ):
        answer = call(gateway, "GET", MEMORY, key, params=query)
        assert answer.status_code == 400
        assert said in answer.json()["error"]["message"]


def test_hostile_queries_and_ids_find_nothing_of_others(gateway: KeyedGateway) -> None:
    key = gateway.key(name="nobody", tenant="nobody")
    for text in HOSTILE.values():
        short = text[:1_000]
        assert found(gateway, key, query=short.encode("utf-8", "replace").decode()) == []
        path = f"{MEMORY}/{quote(short[:200].encode('utf-8', 'replace'), safe='')}"
        assert call(gateway, "GET", path, key).status_code in (400, 404, 405)


def test_what_is_masked_is_kept_masked(gateway: KeyedGateway) -> None:
    key = gateway.key(name="masked")
    request_id = asked(gateway, key, "Is zoe.fischer@example.org a mail address?")
    shown = call(gateway, "GET", f"{MEMORY}/{request_id}", key).json()
    assert shown["question"] == "Is <EMAIL_1> a mail address?"
    assert "fischer" not in str(shown)
    assert found(gateway, key, query="fischer", by="words") == []


def test_whoever_has_the_log_sees_all_tenants(gateway: KeyedGateway) -> None:
    key = gateway.key(name="wide", tenant="wide")
    request_id = asked(gateway, key, "Which volcano is highest?")
    found(gateway, key, query="volcano")  # Its row is stored once it has answered this.
    memory = ReasoningMemory(gateway.log, gateway.settings.memory, None)
    assert [one.request_id for one in memory.search("volcano", by="words")] == [request_id]
    memory.close()


def test_a_gateway_without_a_memory_says_how_to_turn_it_on(tmp_path_factory: pytest.TempPathFactory) -> None:
    with keyed_gateway(tmp_path_factory.mktemp("off"), [Simulator("deepseek")]) as running:
        key = running.key(name="k")
        for method, path in (("GET", MEMORY), ("GET", f"{MEMORY}/x"), ("DELETE", f"{MEMORY}/x")):
            answer = call(running, method, path, key)
            assert answer.status_code == 404
            assert "[memory]" in answer.text
