"""What a key opens, what its owner is told, and that a key stays a secret: over a gateway as `bardo serve` puts it together."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.stores.log import LogReader, LogRow
from bardo.services.accounts.key_store import KeyStore, open_keys
from bardo.surfaces.gateway.main import gateway_of
from bardo.surfaces.gateway.routes import FIXED_ROUTES
from bardo.values.errors import ConfigError
from support.any_model import Simulator
from support.keyed_gateway import PRICE, KeyedGateway, keyed_gateway, make_key
from support.one_day import stay_in_one_day
from support.patience import PATIENCE

TOML = (
    PRICE
    + """
[aliases]
swift = "deepseek/m1"
mixed = { model = "deepseek/m1", fallbacks = ["deepseek/m2"] }

[[keys]]
id = "of-the-file"
key_env = "TEAM_KEY"
models = ["swift"]
tags = ["red", "blue"]
requests_per_minute = 50
"""
)
TEAM = "a-key-that-the-operator-chose"
ASK = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 20}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedGateway]:
    folder, simulators = tmp_path_factory.mktemp("keys"), [Simulator("deepseek")]
    with keyed_gateway(folder, simulators, toml=TOML, variables={"TEAM_KEY": TEAM}) as running:
        yield running


def chat(gateway: KeyedGateway, key: str, model: str = "deepseek/m1", **asked: Any) -> httpx.Response:
    body = {**ASK, "model": model, **asked}
    headers = {"authorization": f"Bearer {key}"}
    return httpx.post(f"{gateway.address}/v1/chat/completions", json=body, headers=headers, timeout=PATIENCE)


def get(gateway: KeyedGateway, path: str, key: str) -> httpx.Response:
    return httpx.get(f"{gateway.address}{path}", headers={"authorization": f"Bearer {key}"}, timeout=PATIENCE)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it did not become true"
        time.sleep(0.02)


def row_of(gateway: KeyedGateway, request_id: str) -> LogRow:
    found: list[LogRow] = []

    def is_there() -> bool:
        with LogReader(gateway.log) as reader:
            row = reader.get(request_id)
        found.extend([row] if row else [])
        return row is not None

    until(is_there)
    return found[0]


@pytest.mark.parametrize("path", [path for path in FIXED_ROUTES if path not in ("/healthz", "/readyz")])
def test_every_endpoint_but_health_asks_for_a_key(gateway: KeyedGateway, path: str) -> None:
    answer = httpx.request(FIXED_ROUTES[path].method, f"{gateway.address}{path}", json={}, timeout=PATIENCE)
    assert answer.status_code == 401
    assert answer.headers["x-bardo-error"] == "unauthorized"


def test_anybody_may_see_that_the_gateway_is_there(gateway: KeyedGateway) -> None:
    assert httpx.get(f"{gateway.address}/healthz").status_code == 200
    assert httpx.head(gateway.address).status_code == 200


def test_anybody_may_see_that_the_gateway_is_ready_and_who_has_a_key_its_providers(gateway: KeyedGateway) -> None:
    def providers(**headers: str) -> list[str]:
        found: list[str] = httpx.get(f"{gateway.address}/readyz", headers=headers).json()["providers"]
        return found

    assert providers() == []
    assert "deepseek" in providers(authorization=f"Bearer {gateway.key()}")
    assert httpx.get(f"{gateway.address}/readyz", headers={"authorization": "Bearer wrong"}).status_code == 401


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"authorization": "Bearer KEY"}, ""),
        ({"authorization": "bearer KEY"}, ""),
        ({"x-api-key": "KEY"}, ""),
        ({"x-goog-api-key": "KEY"}, ""),
        ({"api-key": "KEY"}, ""),
        ({}, "?key=KEY"),
        ({}, "?alt=sse&key=KEY"),
    ],
    ids=["bearer", "lower case", "anthropic", "google", "azure", "query", "query with more"],
)
def test_a_key_may_come_by_each_dialects_way(gateway: KeyedGateway, headers: dict[str, str], query: str) -> None:
    key = gateway.key()
    sent = {name: value.replace("KEY", key) for name, value in headers.items()}
    path = f"{gateway.address}/v1beta/models/deepseek/m1:generateContent{query.replace('KEY', key)}"
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    assert httpx.post(path, json=body, headers=sent, timeout=PATIENCE).status_code == 200
    arrived = gateway.servers["deepseek"].requests[-1]
    assert key not in repr(arrived)


Place = tuple[dict[str, str], str]
PLACES: dict[str, Callable[[str], Place]] = {
    "bearer": lambda key: ({"authorization": f"Bearer {key}"}, ""),
    "x-api-key": lambda key: ({"x-api-key": key}, ""),
    "x-goog-api-key": lambda key: ({"x-goog-api-key": key}, ""),
    "api-key": lambda key: ({"api-key": key}, ""),
    "query": lambda key: ({}, f"key={key}"),
    "query again": lambda key: ({}, f"a=b&key={key}"),
}
DIALECTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {**ASK, "model": "deepseek/m1"},
    "/v1/messages": {**ASK, "model": "deepseek/m1"},
    "/v1/responses": {"input": "hi", "model": "deepseek/m1"},
    "/v1beta/models/deepseek/m1:generateContent": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "/api/chat": {"messages": ASK["messages"], "model": "deepseek/m1", "stream": False},
    "/v2/chat": {"messages": ASK["messages"], "model": "deepseek/m1"},
    "/model/deepseek%2Fm1/converse": {"messages": [{"role": "user", "content": [{"text": "hi"}]}]},
}


def with_keys(gateway: KeyedGateway, one: Place, other: Place, path: str = "/v1/chat/completions") -> httpx.Response:
    """Ask with two keys in one request."""
    query = "&".join(filter(None, (one[1], other[1])))
    address = f"{gateway.address}{path}?{query}"
    return httpx.post(address, json=DIALECTS[path], headers={**one[0], **other[0]}, timeout=PATIENCE)


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(PLACES, 2)))
def test_of_two_keys_in_a_request_the_gateways_own_counts_and_two_of_them_are_refused(
    gateway: KeyedGateway, first: str, second: str
) -> None:
    (own, key), (_, other) = make_key(gateway.state), make_key(gateway.state)
    one, another = PLACES[first], PLACES[second]
    # The second key is new: nobody has asked with it alone.
    for refused in (
        with_keys(gateway, one(key), another(other)),
        with_keys(gateway, one(other), another(key)),
        with_keys(gateway, one(key), another(TEAM)),
        with_keys(gateway, one("sk-ant-of-a-provider"), another("a-second-one")),
    ):
        assert refused.status_code == 401
        assert not [secret for secret in (key, other, TEAM) if secret in refused.text]
    for answered in (
        with_keys(gateway, one(key), another(key)),
        with_keys(gateway, one(key), another("sk-ant-of-a-provider")),
        with_keys(gateway, one("sk-ant-of-a-provider"), another(key)),
        with_keys(gateway, one(f"{key[:-1]}x"), another(key)),
    ):
        assert answered.status_code == 200
        assert row_of(gateway, answered.headers["x-bardo-request-id"]).key_id == own.id


@pytest.mark.parametrize("path", DIALECTS)
def test_two_keys_are_refused_in_each_dialects_words(gateway: KeyedGateway, path: str) -> None:
    one, other = PLACES["bearer"](gateway.key()), PLACES["x-api-key"](gateway.key())
    assert with_keys(gateway, one, one, path).status_code == 200
    refused, unknown = with_keys(gateway, one, other, path), with_keys(gateway, ({}, ""), ({}, ""), path)
    assert refused.status_code == unknown.status_code == 401
    assert "two different keys" in refused.text
    assert refused.json().keys() == unknown.json().keys()


def test_what_is_no_place_of_a_key_neither_opens_nor_refuses(gateway: KeyedGateway) -> None:
    key, other = gateway.key(), gateway.key()
    strange = {
        "proxy-authorization": f"Bearer {other}",
        "cookie": f"authorization={other}; bardo_panel={other}; key={other}",
        "x-forwarded-authorization": f"Bearer {other}",
    }
    assert (
        with_keys(gateway, ({"authorization": f"Bearer {key}"}, ""), (strange, f"api_key={other}")).status_code == 200
    )
    assert with_keys(gateway, ({}, ""), (strange, f"api_key={other}")).status_code == 401


def test_a_key_beside_a_signature_of_aws_counts(gateway: KeyedGateway) -> None:
    signed = ({"authorization": "AWS4-HMAC-SHA256 Credential=AKID/20260101/r/bedrock/aws4_request, Signature=0"}, "")
    assert with_keys(gateway, signed, PLACES["x-api-key"](gateway.key())).status_code == 200
    assert with_keys(gateway, signed, PLACES["x-api-key"]("wrong")).status_code == 401


def test_a_request_of_many_keys_is_refused_without_trying_them(gateway: KeyedGateway) -> None:
    many = "&".join(f"key={number}" for number in range(20))
    assert "more than 8" in with_keys(gateway, PLACES["bearer"](gateway.key()), ({}, many)).text


def test_requests_that_are_signed_are_told_what_to_do(gateway: KeyedGateway) -> None:
    signed = {"authorization": "AWS4-HMAC-SHA256 Credential=AKID/20260101/r/bedrock/aws4_request, Signature=0"}
    answer = httpx.post(f"{gateway.address}/model/deepseek/m1/converse", json={}, headers=signed)
    assert answer.status_code == 401
    assert "AWS_BEARER_TOKEN_BEDROCK" in answer.json()["message"]


def test_a_key_of_the_file_asks_only_what_it_may(gateway: KeyedGateway) -> None:
    answer = chat(gateway, TEAM, "swift")
    assert answer.status_code == 200
    row = row_of(gateway, answer.headers["x-bardo-request-id"])
    assert (row.key_id, row.tags, row.tenant) == ("of-the-file", ("red", "blue"), "of-the-file")
    assert answer.headers["x-ratelimit-limit-requests"] == "50"
    assert int(answer.headers["x-ratelimit-remaining-requests"]) < 50
    refused = chat(gateway, TEAM, "deepseek/m2")
    assert refused.status_code == 403
    assert "swift" in refused.json()["error"]["message"]


def test_fallbacks_that_a_key_may_not_ask_are_left_out(gateway: KeyedGateway) -> None:
    key = gateway.key(models=("m2",))
    answer = chat(gateway, key, "mixed")
    assert answer.status_code == 200
    assert answer.headers["x-bardo-model"] == "m2"
    assert chat(gateway, key, "swift").status_code == 403


def test_a_key_is_shown_the_models_that_it_may_ask(gateway: KeyedGateway) -> None:
    listed = {one["id"] for one in get(gateway, "/v1/models", TEAM).json()["data"]}
    assert listed == {"swift"}
    assert len(get(gateway, "/v1/models", gateway.key()).json()["data"]) > 1


def test_a_glob_of_an_earlier_version_that_fits_nothing_allows_nothing_and_is_said_once(
    gateway: KeyedGateway, caplog: pytest.LogCaptureFixture
) -> None:
    alone, beside = gateway.key(models=("m[2-1]",)), gateway.key(models=("m[2-1]", "m2"))
    refused, answered = chat(gateway, alone, "deepseek/m2"), chat(gateway, beside, "deepseek/m2")
    assert (refused.status_code, answered.status_code) == (403, 200)
    assert get(gateway, "/v1/models", alone).json()["data"] == []
    chat(gateway, gateway.key(), "deepseek/m1")
    said = [one.getMessage() for one in caplog.records if "m[2-1]" in one.getMessage()]
    assert len(said) == 2
    assert "allows no model" in said[0]


@pytest.mark.parametrize("path", ["/v1/models/{}", "/api/v0/models/{}", "/api/show"])
def test_a_key_is_told_nothing_of_a_model_that_it_may_not_ask(gateway: KeyedGateway, path: str) -> None:
    def show(name: str, key: str) -> httpx.Response:
        if "{}" in path:
            return get(gateway, path.format(name), key)
        headers = {"authorization": f"Bearer {key}"}
        return httpx.post(f"{gateway.address}{path}", json={"model": name}, headers=headers)

    every, other = gateway.key(), gateway.key(models=("m2",))
    listed = get(gateway, "/v1/models", every).json()["data"][0]["id"]
    assert show(listed, every).status_code == show(listed, gateway.key(models=(listed,))).status_code == 200
    for name, key in ((listed, TEAM), ("deepseek/m1", TEAM), ("swift", other)):
        refused = show(name, key)
        assert refused.status_code == 403
        assert "the key may not ask" in refused.text


def test_anthropics_clients_get_their_own_headers(gateway: KeyedGateway) -> None:
    key = gateway.key(requests_per_minute=2, tokens_per_minute=5_000)
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    answer = httpx.post(f"{gateway.address}/v1/messages", json={**ASK, "model": "deepseek/m1"}, headers=headers)
    assert answer.headers["anthropic-ratelimit-requests-limit"] == "2"
    assert answer.headers["anthropic-ratelimit-requests-remaining"] == "1"
    assert answer.headers["anthropic-ratelimit-requests-reset"].endswith("Z")
    assert answer.headers["anthropic-ratelimit-tokens-limit"] == "5000"


def test_who_is_refused_is_told_which_limit_and_how_long(gateway: KeyedGateway) -> None:
    key = gateway.key(requests_per_minute=1)
    assert chat(gateway, key).status_code == 200
    refused = chat(gateway, key)
    assert refused.status_code == 429
    assert refused.headers["x-bardo-limit"] == "requests_per_minute"
    assert 1 <= int(refused.headers["retry-after"]) <= 62
    assert refused.json()["error"] | {"message": ""} == {
        "message": "",
        "type": "requests",
        "param": None,
        "code": "rate_limit_exceeded",
    }


def test_a_stream_that_its_client_leaves_frees_its_place(gateway: KeyedGateway) -> None:
    key = gateway.key(concurrency=1)
    for _ in range(3):
        body = {**ASK, "model": "deepseek/m1", "stream": True}
        headers = {"authorization": f"Bearer {key}"}
        url = f"{gateway.address}/v1/chat/completions"

        def is_let_through(body: Any = body, headers: Any = headers, url: str = url) -> bool:
            with httpx.stream("POST", url, json=body, headers=headers, timeout=PATIENCE) as answer:
                return answer.status_code == 200

        until(is_let_through)


def test_a_key_sees_its_own_figures_and_no_others(gateway: KeyedGateway) -> None:
    stay_in_one_day()
    key = gateway.key(name="mine", usd_per_day=1, usd_per_month=20, requests_per_minute=30)
    answers = [chat(gateway, key) for _ in range(2)]
    for answer in answers:
        row_of(gateway, answer.headers["x-bardo-request-id"])
    cost = sum(row_of(gateway, answer.headers["x-bardo-request-id"]).cost_nanos or 0 for answer in answers)
    assert cost > 0
    usage = get(gateway, "/v1/bardo/usage", key).json()
    assert usage["key"]["name"] == "mine"
    assert usage["today"]["calls"] == usage["this_month"]["calls"] == 2
    assert usage["today"]["spent_usd"] == pytest.approx(cost / 1e9)
    assert usage["limits"]["usd_per_day"]["remaining"] == pytest.approx(1 - cost / 1e9)
    assert usage["limits"]["requests_per_minute"]["used"] == 2
    assert [(one["provider"], one["model"], one["calls"]) for one in usage["by_model"]] == [("deepseek", "m1", 2)]
    other = get(gateway, "/v1/bardo/usage", gateway.key()).json()
    assert other["today"]["calls"] == 0
    assert other["by_model"] == []


def test_a_revoked_key_is_refused_within_seconds(gateway: KeyedGateway) -> None:
    account, key = make_key(gateway.state)
    assert chat(gateway, key).status_code == 200
    engine = open_keys(gateway.state)
    KeyStore(engine).change(account.id, {}, revoked=time.time())
    engine.dispose()
    until(lambda: chat(gateway, key).status_code == 401)
    assert "revoked" in chat(gateway, key).json()["error"]["message"]


def test_an_expired_key_is_refused(gateway: KeyedGateway) -> None:
    answer = chat(gateway, gateway.key(expires=time.time() - 1))
    assert answer.status_code == 401
    assert "expired" in answer.json()["error"]["message"]


def test_keys_of_one_tenant_give_feedback_on_each_others_calls(gateway: KeyedGateway) -> None:
    one, other, stranger = gateway.key(tenant="house"), gateway.key(tenant="house"), gateway.key()
    asked = chat(gateway, one).headers["x-bardo-request-id"]
    row_of(gateway, asked)
    statuses = {}
    for name, key in (("other", other), ("stranger", stranger)):
        headers = {"authorization": f"Bearer {key}"}
        body = {"request_id": asked, "score": 1}
        statuses[name] = httpx.post(f"{gateway.address}/v1/bardo/feedback", json=body, headers=headers).status_code
    assert statuses == {"other": 200, "stranger": 404}


def test_a_key_stands_in_no_log_no_error_and_no_database(
    gateway: KeyedGateway, caplog: pytest.LogCaptureFixture
) -> None:
    key = gateway.key(requests_per_minute=2)
    with caplog.at_level(logging.DEBUG):
        replies = [
            chat(gateway, key),
            chat(gateway, key, messages=[{"role": "user", "content": 5}]),
            chat(gateway, key, "no-such-model"),
            chat(gateway, key, "swift"),
            chat(gateway, key),
            chat(gateway, f"{key}x"),
            httpx.get(f"{gateway.address}/v1/models", params={"key": key}, timeout=PATIENCE),
            get(gateway, "/v1/bardo/usage", key),
        ]
    said = "".join(f"{reply.text}{reply.headers}" for reply in replies)
    # The tests' own client runs in this process too, and names whole addresses.
    said += "".join(record.getMessage() for record in caplog.records if record.name.partition(".")[0] != "httpx")
    assert key not in said
    assert key[-42:] not in said
    row_of(gateway, replies[0].headers["x-bardo-request-id"])
    folder = Path(gateway.state).parent
    for file in folder.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert key.encode() not in content, file
            assert TEAM.encode() not in content, file


def test_a_gateway_may_also_answer_who_comes_without_a_key(tmp_path: Path) -> None:
    toml = "[gateway]\nallow_unauthenticated = true\n"
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=toml) as gateway:
        assert (
            httpx.post(f"{gateway.address}/v1/chat/completions", json={**ASK, "model": "deepseek/m1"}).status_code
            == 200
        )
        assert chat(gateway, gateway.key()).status_code == 200
        assert chat(gateway, "any").status_code == 200
        assert chat(gateway, "bardo_wrong").status_code == 401


def test_a_gateway_without_keys_opens_no_database(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [Simulator("deepseek")], first_key=False) as gateway:
        assert chat(gateway, "any").status_code == 200
        assert not Path(gateway.state).exists()


def test_a_budget_without_a_log_is_refused_at_the_start(tmp_path: Path) -> None:
    toml = '[log]\nenabled = false\n[[keys]]\nid = "team"\nkey_env = "TEAM_KEY"\nusd_per_day = 5\n'
    variables = {"TEAM_KEY": TEAM, "XDG_DATA_HOME": str(tmp_path)}
    with pytest.raises(ConfigError, match="the key team has a budget, and the log is off"):
        gateway_of(parse_settings(toml), variables)
