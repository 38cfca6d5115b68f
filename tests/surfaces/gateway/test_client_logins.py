"""A provider that asks each client for its own login: the login goes there and nowhere else, and nothing keeps it."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log import LogReader
from bardo.call.client_login import ClientLogin, login_of_headers, with_logins
from bardo.planning.route import Provider, Target
from bardo.services.facts.directory import Placement
from bardo.simulators import Incoming
from bardo.surfaces.cli.provider_checks import check_providers
from bardo.surfaces.gateway.callers import Caller, caller_of, without_path_key
from bardo.values.errors import ConfigError, Unauthorized
from support.any_model import Simulator
from support.keyed_gateway import PRICE, KeyedGateway, keyed_gateway
from support.patience import PATIENCE
from surfaces.gateway.test_websockets import talk

CLIENT = {"auth": "client", "api_key_env": ""}
CLAUDE, GPT, OWN = "anthropic/claude-sonnet-4-5", "openai_responses/gpt-5", "deepseek/m1"
TOML = (
    PRICE
    + """
[responses]
store = "memory"
[telemetry]
metrics = true
[log]
content = true
[aliases]
both = { model = "anthropic/claude-sonnet-4-5", fallbacks = ["deepseek/m1"] }
"""
)
ANTHROPIC = {"anthropic-version": "2023-06-01"}


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KeyedGateway, str]]:
    simulators = [Simulator(name) for name in ("anthropic", "openai_responses", "deepseek")]
    changes = {"anthropic": CLIENT, "openai_responses": CLIENT}
    folder = tmp_path_factory.mktemp("logins")
    with keyed_gateway(folder, simulators, toml=TOML, changes=changes) as running:
        yield running, running.key(name="team", usd_per_day=1.0)


def ask(
    address: str, model: str, headers: Mapping[str, str], path: str = "/v1/messages", **fields: Any
) -> httpx.Response:
    said: dict[str, Any] = (
        {"input": "Hi."} if "responses" in path else {"messages": [{"role": "user", "content": "Hi."}]}
    )
    most = "max_output_tokens" if "responses" in path else "max_tokens"
    body = {"model": model, most: 200, **said, **fields}
    return httpx.post(f"{address}{path}", json=body, headers=headers, timeout=PATIENCE)


def got(town: KeyedGateway, provider: str) -> Incoming:
    return town.servers[provider].requests[-1]


LOGINS = {
    "a Claude login": (
        CLAUDE,
        "/v1/messages",
        {"authorization": "Bearer sk-ant-oat01-own"},
        {"authorization": "Bearer sk-ant-oat01-own"},
    ),
    "an API key of Anthropic's": (
        CLAUDE,
        "/v1/messages",
        {"x-api-key": "sk-ant-api03-own"},
        {"x-api-key": "sk-ant-api03-own"},
    ),
    "such a key from a Chat client": (
        *(CLAUDE, "/v1/chat/completions", {"authorization": "Bearer sk-ant-api03-own"}),
        {"x-api-key": "sk-ant-api03-own"},
    ),
    "a ChatGPT login": (
        *(GPT, "/v1/responses", {"authorization": "Bearer eyJ.own", "chatgpt-account-id": "acc-7"}),
        {"authorization": "Bearer eyJ.own", "chatgpt-account-id": "acc-7"},
    ),
    "a ChatGPT login of the US government": (
        *(GPT, "/v1/responses"),
        {"authorization": "Bearer eyJ.own", "chatgpt-account-id": "acc-7", "x-openai-fedramp": "true"},
        {"authorization": "Bearer eyJ.own", "chatgpt-account-id": "acc-7", "x-openai-fedramp": "true"},
    ),
    "an API key of OpenAI's": (
        *(GPT, "/v1/responses", {"authorization": "Bearer sk-proj-own", "openai-project": "p-7"}),
        {"authorization": "Bearer sk-proj-own", "openai-project": "p-7"},
    ),
    "an older API key of OpenAI's": (
        *(GPT, "/v1/responses", {"authorization": "Bearer sk-old", "openai-organization": "o-7", "x-api-key": "dummy"}),
        {"authorization": "Bearer sk-old", "openai-organization": "o-7"},
    ),
    "a key of a known form beside another": (
        *(CLAUDE, "/v1/messages", {"authorization": "Bearer dummy", "x-api-key": "sk-ant-api03-own"}),
        {"x-api-key": "sk-ant-api03-own"},
    ),
    "a login of no known form": (
        CLAUDE,
        "/v1/messages",
        {"authorization": "Bearer strange"},
        {"authorization": "Bearer strange"},
    ),
}


@pytest.mark.parametrize("by_path", [False, True], ids=["header", "path"])
@pytest.mark.parametrize(("model", "path", "login", "sent"), LOGINS.values(), ids=LOGINS)
def test_a_login_goes_to_its_provider_in_the_form_that_it_takes(
    town: tuple[KeyedGateway, str], model: str, path: str, login: dict[str, str], sent: dict[str, str], by_path: bool
) -> None:
    running, key = town
    begin, own = (f"/k/{key}", {}) if by_path else ("", {"x-bardo-key": key})
    answer = ask(running.address, model, {**ANTHROPIC, **login, **own}, begin + path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-bardo-cost-source"] == "subscription"
    assert "x-bardo-cost-usd" not in answer.headers
    arrived = got(running, model.partition("/")[0]).headers
    credentials = {name: value for name, value in arrived.items() if name in ("authorization", "x-api-key", *sent)}
    assert credentials == sent
    assert key not in str(arrived)
    row = None
    with closing(LogReader(running.log)) as log:
        while row is None:
            row = log.get_exact(answer.headers["x-bardo-request-id"])
    assert (row.price_source, row.cost_nanos) == ("subscription", 0)
    assert ("oauth-2025-04-20" in arrived.get("anthropic-beta", "")) is ("oat" in str(login))


@pytest.mark.parametrize("name", ["a Claude login", "a ChatGPT login"])
def test_a_conversation_is_compacted_with_the_login_of_its_client(town: tuple[KeyedGateway, str], name: str) -> None:
    running, key = town
    model, _, login, sent = LOGINS[name]
    answer = httpx.post(
        f"{running.address}/v1/responses/compact",
        json={"model": model, "input": [{"role": "user", "content": "Hi."}]},
        headers={**login, "x-bardo-key": key},
        timeout=PATIENCE,
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["output"][-1]["type"] == "compaction"
    assert sent.items() <= got(running, model.partition("/")[0]).headers.items()


def test_the_beta_of_a_login_stands_beside_those_of_its_client(town: tuple[KeyedGateway, str]) -> None:
    running, key = town
    for beta in ("context-1m-2025-08-07", "oauth-2025-04-20, context-1m-2025-08-07"):
        headers = {**ANTHROPIC, "authorization": "Bearer sk-ant-oat01-own", "x-bardo-key": key, "anthropic-beta": beta}
        assert ask(running.address, CLAUDE, headers).status_code == 200
        named = [one.strip() for one in got(running, "anthropic").headers["anthropic-beta"].split(",")]
        assert sorted(named) == ["context-1m-2025-08-07", "oauth-2025-04-20"]


def test_a_call_without_the_login_is_401_and_says_what_is_missing(town: tuple[KeyedGateway, str]) -> None:
    running, key = town
    before = [len(server.requests) for server in running.servers.values()]
    without = ask(running.address, CLAUDE, {**ANTHROPIC, "x-api-key": key})
    assert without.status_code == 401
    assert without.json()["error"]["type"] == "authentication_error"
    assert "X-Bardo-Key" in without.json()["error"]["message"]
    for model, path, login in (
        (GPT, "/v1/responses", {"authorization": "Bearer sk-ant-oat01-own"}),
        (CLAUDE, "/v1/messages", {"authorization": "Bearer eyJ.own", "chatgpt-account-id": "acc-7"}),
        (CLAUDE, "/v1/responses", {"authorization": "Bearer strange"}),
        (CLAUDE, "/v1/messages", {"authorization": f"Bearer {key}"}),
    ):
        refused = ask(running.address, model, {**login, "x-bardo-key": key}, path)
        assert refused.status_code == 401, refused.text
        assert "login" in refused.text
        assert not any(value.removeprefix("Bearer ") in refused.text for value in login.values())
    assert [len(server.requests) for server in running.servers.values()] == before
    unknown = ask(running.address, CLAUDE, {"authorization": "Bearer sk-ant-oat01-own", "x-bardo-key": "bardo_nobodys"})
    assert unknown.status_code == 401
    for path in ("/k/bardo_nobodys/v1/messages", "/k//v1/messages", "/k/bardo_nobodys"):
        refused = ask(running.address, CLAUDE, {"authorization": "Bearer sk-ant-oat01-own"}, path)
        assert refused.status_code in (401, 404, 405)
        assert "nobodys" not in refused.text


def test_a_call_fails_over_only_to_whom_there_is_a_credential_for(town: tuple[KeyedGateway, str]) -> None:
    running, key = town
    answer = ask(running.address, "both", {**ANTHROPIC, "x-bardo-key": key})
    assert answer.status_code == 200, answer.text
    assert (answer.status_code, answer.headers["x-bardo-provider"]) == (200, "deepseek"), answer.text
    assert "model" in answer.headers["x-bardo-degraded"]
    login = {"authorization": "Bearer sk-ant-oat01-canary-failover", "x-bardo-key": key, **ANTHROPIC}
    model = {"model": "both+fault:status=500"}
    assert ask(running.address, "both", login).headers["x-bardo-provider"] == "anthropic"
    assert "canary" not in str(got(running, "deepseek").headers), model
    own = ask(running.address, OWN, login)
    assert own.status_code == 200
    assert "x-bardo-cost-source" not in own.headers
    assert "canary" not in str(got(running, "deepseek").headers)


def test_no_canary_of_two_logins_side_by_side_is_kept_anywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    simulators = [Simulator(name) for name in ("anthropic", "openai_responses", "deepseek")]
    changes = {"anthropic": CLIENT, "openai_responses": CLIENT}
    canaries = [f"sk-ant-oat01-canary{number}-0123456789abcdef" for number in (1, 2)]
    chat = "eyJcanary3.0123456789abcdef"
    told: list[str] = []
    with ExitStack() as stack:
        running = stack.enter_context(keyed_gateway(tmp_path, simulators, toml=TOML, changes=changes))
        keys = [running.key(name="one"), running.key(name="two")]
        events = stack.enter_context(_events(running.address, keys[0], told))

        def call(canary: str, key: str, model: str = CLAUDE, **fields: Any) -> None:
            headers = {**ANTHROPIC, "authorization": f"Bearer {canary}", "x-bardo-key": key}
            for stream in (False, True):
                answer = ask(running.address, model, headers, stream=stream, **fields)
                told.append(answer.text + str(answer.headers))

        threads = [
            threading.Thread(target=call, args=(canary, key)) for canary in canaries for key in keys for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        sent = [one.headers["authorization"] for one in running.servers["anthropic"].requests if one.method == "POST"]
        assert sorted(set(sent)) == [f"Bearer {one}" for one in canaries]
        assert [sent.count(f"Bearer {one}") for one in canaries] == [12, 12]
        call(canaries[0], keys[0], f"{CLAUDE}+fault:status=401")
        call(canaries[0], keys[0], f"{CLAUDE}+fault:error-event")
        call(canaries[0], keys[0], f"anthropic/{canaries[0]}")
        call(canaries[0], keys[0], GPT)
        call(canaries[0], keys[0], OWN, system=f"My token is {canaries[0]}.", metadata={"user_id": canaries[0]})
        headers = {"authorization": f"Bearer {chat}", "chatgpt-account-id": "acc-canary4", "x-bardo-key": keys[0]}
        for store in (True, False):
            answer = ask(running.address, GPT, headers, "/v1/responses", store=store)
            told.append(answer.text + str(answer.headers))
        told.append(httpx.get(f"{running.address}/v1/responses/{answer.json()['id']}", headers=headers).text)
        own = {"x_bardo_key": keys[0], "chatgpt_account_id": "acc-canary4"}
        by_path = f"/k/{keys[1]}/v1/responses"
        with talk(running.address, chat, by_path, chatgpt_account_id="acc-canary4") as client:
            assert client.ask(model=GPT, input="Hi.")["status"] == "completed"
        with talk(running.address, chat, **own) as client:
            client.send(model=GPT, input="Hi.")
            told.append(str(client.until()))
            client.send(model=CLAUDE, input="Hi.")
            refused = client.until()[-1]
            assert refused["status"] == 401
            told.append(str(refused))
        assert got(running, "openai_responses").headers["authorization"] == f"Bearer {chat}"
        told.append(httpx.get(f"{running.address}/metrics", headers={"x-bardo-key": keys[0]}).text)
        told.append(httpx.get(f"{running.address}/v1/bardo/health", headers={"x-bardo-key": keys[0]}).text)
        others = [str(one.headers) for one in running.servers["deepseek"].requests]
        others += [
            str(one.headers)
            for one in running.servers["openai_responses"].requests
            if "canary3" not in str(one.headers)
        ]
        del events
    assert not any("canary" in one for one in others)
    leaks = [one for one in told if "canary" in one]
    assert not leaks, leaks[0][:2000]
    assert "canary" not in "\n".join(one.getMessage() for one in caplog.records if one.name.startswith("bardo"))
    for file in tmp_path.rglob("*"):
        if file.is_file():
            kept = file.read_bytes()
            # What a client writes into its own prompt is its content; its login is taken out of it where it was sent.
            assert b"canary" not in kept, (file, kept[max(0, kept.find(b"canary") - 200) :][:400])


@contextmanager
def _events(address: str, key: str, told: list[str]) -> Iterator[None]:
    """Read the gateway's events while the block runs."""
    begun = threading.Event()

    def read() -> None:
        url = f"{address}/v1/bardo/events"
        with httpx.stream("GET", url, headers={"x-bardo-key": key}, timeout=PATIENCE) as events:
            begun.set()
            told.extend(events.iter_text())

    reader = threading.Thread(target=read)
    reader.start()
    assert begun.wait(PATIENCE)
    yield
    reader.join(0)


class _Quoting(BaseHTTPRequestHandler):
    """Refuses each call, and quotes its credential in the body and in a header."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        quoted = self.headers["authorization"]
        body = json.dumps({"type": "error", "error": {"type": "api_error", "message": f"bad {quoted}"}}).encode()
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.send_header("anthropic-ratelimit-requests-remaining", quoted.partition(" ")[2])
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_provider_that_quotes_a_login_is_not_quoted(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Quoting) as upstream:
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{upstream.server_address[1]}"
        changes = {"anthropic": {**CLIENT, "base_url": base}}
        try:
            with keyed_gateway(tmp_path, [Simulator("anthropic")], changes=changes) as running:
                headers = {
                    "authorization": "Bearer opaque-canary-token",
                    "x-bardo-key": running.key(name="a"),
                    **ANTHROPIC,
                }
                answer = ask(running.address, CLAUDE, headers)
                assert answer.status_code == 400
                assert "canary" not in answer.text + str(answer.headers)
        finally:
            upstream.shutdown()


def test_what_one_login_left_is_not_found_by_another(town: tuple[KeyedGateway, str]) -> None:
    running, key = town

    def respond(login: str, **fields: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {login}", "x-bardo-key": key}
        return ask(running.address, GPT, headers, "/v1/responses", **fields)

    name = respond("sk-proj-one").json()["id"]
    assert respond("sk-proj-one", previous_response_id=name).status_code == 200
    assert respond("sk-proj-two", previous_response_id=name).status_code in (400, 404)


def test_a_refused_login_is_no_fault_of_its_provider_for_others(town: tuple[KeyedGateway, str]) -> None:
    running, key = town
    for _ in range(6):
        for fault in ("status=401", "status=429,retry-after=600"):
            headers = {**ANTHROPIC, "authorization": "Bearer sk-ant-oat01-bad", "x-bardo-key": key}
            ask(running.address, f"{CLAUDE}+fault:{fault}", headers)
    health = httpx.get(f"{running.address}/v1/bardo/health", headers={"x-bardo-key": key}).text
    assert '"down"' not in health
    headers = {**ANTHROPIC, "authorization": "Bearer sk-ant-oat01-good", "x-bardo-key": key}
    answer = ask(running.address, CLAUDE, headers)
    assert answer.status_code == 200
    assert answer.headers["x-bardo-provider"] == "anthropic"


def provider(name: str, preset: str, **said: Any) -> Provider:
    from bardo.adapters.config.providers import ProviderEntry, provider_of

    return provider_of(ProviderEntry(id=name, preset=preset, base_url="https://host.example/v1", **said))


def test_one_credential_is_one_providers() -> None:
    login = login_of_headers({"authorization": "Bearer strange"})
    labs = [provider(name, "openai-compatible", auth="client") for name in ("one", "two")]
    own = provider("own", "openai-compatible", api_key_env="KEY")

    def placed(*providers: Provider) -> Placement:
        return Placement(tuple(Target(provider=one, model="m") for one in providers))

    both, found = with_logins(placed(*labs, own), login, labs, "openai_chat")
    assert list(found) == ["one"]
    assert [one.provider.id for one in both.targets] == ["one", "own"]
    assert [one.asked for one in both.skipped] == ["two"]
    # Of two that could be meant, none is where the client named neither.
    kept, found = with_logins(placed(own, *labs), login, labs, "openai_chat")
    assert (list(found), [one.provider.id for one in kept.targets]) == ([], ["own"])
    kept, found = with_logins(placed(own, labs[0]), login, labs[:1], "openai_chat")
    assert [one.provider.id for one in kept.targets] == ["own", "one"]
    with pytest.raises(Unauthorized):
        with_logins(placed(labs[0]), login, labs[:1], "anthropic_messages")
    with pytest.raises(Unauthorized):
        with_logins(placed(labs[0]), None, labs[:1], "openai_chat")
    assert with_logins(placed(own), login, labs, "openai_chat") == (placed(own), {})


def test_a_login_shows_nothing_and_is_none_of_the_gateways_keys() -> None:
    login = ClientLogin({"authorization": "Bearer canary"}, {})
    assert "canary" not in repr(login) + login.digest
    assert login.secrets == ("Bearer canary", "canary")
    assert login.digest != ClientLogin({"authorization": "Bearer canary"}, {"chatgpt-account-id": "a"}).digest
    assert login_of_headers({"authorization": "Bearer bardo_key"}) is None
    assert login_of_headers({"x-api-key": "same"}, gateway_key="same") is None
    assert login_of_headers({"authorization": "AWS4-HMAC-SHA256 Credential=a/b"}) is None
    assert login_of_headers({"authorization": "Bearer ", "x-api-key": " "}) is None


def test_a_word_in_the_place_of_a_login_is_no_key() -> None:
    key = "sk-proj-0123456789abcdefghij"
    login = ClientLogin({"authorization": f"Bearer {key}", "x-api-key": "any"}, {})
    assert login.secrets == (f"Bearer {key}", "any", key)
    assert login.keys == (f"Bearer {key}", key)


def test_callers_with_two_logins_are_two_and_without_one_as_before() -> None:
    def caller(path: str = "/v1/messages", **fields: str) -> Caller:
        lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in fields.items()]
        return caller_of(without_path_key({"type": "http", "path": path, "headers": lines, "query_string": b""}))

    team = caller(x_bardo_key="team")
    assert (team.key, team.login) == ("team", None)
    assert team.tenant == caller(authorization="Bearer team").tenant == caller("/k/team/v1/messages").tenant
    one, two = (caller(x_bardo_key="team", authorization=f"Bearer {name}") for name in ("one", "two"))
    assert (
        len({team.tenant, one.tenant, two.tenant, caller(x_bardo_key="other", authorization="Bearer one").tenant}) == 4
    )
    assert one.tenant == caller("/k/team/v1/messages", authorization="Bearer one").tenant
    assert (one.key, repr(one.login)) == ("team", "ClientLogin(…)")
    assert caller(x_bardo_key="team", x_api_key="team").login is None
    alone = caller(authorization="Bearer one")
    assert alone.key == "one"
    assert alone.login is not None


def test_a_provider_of_clients_logins_has_no_key_of_its_own() -> None:
    table = '[[providers]]\nid = "anthropic"\nauth = "client"\n'
    [entry] = parse_settings(table).providers
    assert entry.auth == "client"
    with pytest.raises(ConfigError, match="their own logins"):
        parse_settings(table + 'api_key_env = "KEY"\n')
    with pytest.raises(ConfigError, match="auth"):
        parse_settings(table.replace("client", "guest"))


async def _findings(toml: str) -> list[Any]:
    return [one for one in await check_providers(parse_settings(toml), Keyring({})) if one.area.startswith("provider")]


def test_doctor_says_that_a_provider_is_asked_by_its_clients() -> None:
    import asyncio

    table = '[[providers]]\nid = "anthropic"\nauth = "client"\n'
    [found] = asyncio.run(_findings(table))
    assert (found.status, "own login" in found.found, "models" in found.fix) == ("warning", True, True)
    [found] = asyncio.run(_findings(table + 'models = ["claude-sonnet-5"]\n'))
    assert found.status == "ok"


def test_a_batch_has_no_login_and_keeps_none(tmp_path: Path) -> None:
    changes, toml = {"anthropic": CLIENT}, "[batches]\npoll_seconds = 0.05\n"
    with keyed_gateway(tmp_path, [Simulator("anthropic")], toml=toml, changes=changes) as running:
        headers = {**ANTHROPIC, "authorization": "Bearer sk-ant-oat01-canary-01", "x-bardo-key": running.key(name="a")}
        params = {"model": CLAUDE, "max_tokens": 10, "messages": [{"role": "user", "content": "Hi."}]}
        url = f"{running.address}/v1/messages/batches"
        with httpx.Client(headers=headers, timeout=PATIENCE) as client:
            batch = client.post(url, json={"requests": [{"custom_id": "one", "params": params}]}).json()
            while batch["processing_status"] != "ended":
                batch = client.get(f"{url}/{batch['id']}").json()
            results = client.get(f"{url}/{batch['id']}/results").text
        assert "asks each client for a login of its own" in results
        assert "was not sent" in results
        assert "The provider refused" not in results
        assert not [one for one in running.servers["anthropic"].requests if one.method == "POST"]
    assert not any(b"canary" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
