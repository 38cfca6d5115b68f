"""Two gateways over one PostgreSQL, and over one Redis, are as one: conversations, responses and budgets hold over both."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from bardo.adapters.stores.log import LogMissing, LogReader
from bardo.services.accounts import accounts
from bardo.simulators import Fault
from support.any_model import Simulator
from support.gateway import Remembering
from support.keyed_gateway import PRICE, KeyedGateway, keyed_gateway, make_key
from support.one_day import stay_in_one_day
from support.patience import PATIENCE
from support.postgres import PostgresServer
from support.redis import run_redis
from support.talk import ask
from surfaces.gateway.replay_loops import loses_reasoning, script, talk
from surfaces.gateway.test_sdk_tool_loops import sealed_in

STORES = """
[replay]
store_env = "SHARED"
timeout_seconds = 30

[responses]
store_env = "SHARED"
timeout_seconds = 30
"""


@contextmanager
def machine(
    folder: Path, simulator: Simulator, shared: str, further: str = "", **options: Any
) -> Iterator[KeyedGateway]:
    """Run a gateway that has files of its own, and shares its stores."""
    folder.mkdir()
    with keyed_gateway(folder, [simulator], toml=STORES + further, variables={"SHARED": shared}, **options) as running:
        yield running


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it did not become true"
        time.sleep(0.02)


@pytest.mark.parametrize("shared", ["postgres_url", "redis_url"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_conversation_goes_on_at_another_machine_with_its_reasoning(
    shared: str, stream: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    address = str(request.getfixturevalue(shared))
    simulators = [Remembering("anthropic", script=script()) for _ in range(2)]
    with (
        machine(tmp_path / "one", simulators[0], address, first_key=False) as one,
        machine(tmp_path / "two", simulators[1], address, first_key=False) as two,
        talk(one, stream=stream) as here,  # type: ignore[arg-type]
        talk(two, stream=stream) as there,  # type: ignore[arg-type]
    ):
        here.step("anthropic")
        here.step("anthropic")
        sealed = [found[-1] for sent in simulators[0].sent if (found := sealed_in(bytes(sent)))]
        assert len(sealed) == 2
        there.history = here.history
        assert there.step("anthropic")["tool_calls"]
        asked = [one for one in two.servers["anthropic"].requests if one.method == "POST"]
        assert sealed_in(asked[0].raw) == sealed
        assert not loses_reasoning(there)


@pytest.mark.parametrize("shared", ["postgres_url", "redis_url"])
def test_a_response_is_gone_on_from_at_another_machine(
    shared: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    address = str(request.getfixturevalue(shared))
    with (
        machine(tmp_path / "one", Simulator("deepseek"), address, first_key=False) as one,
        machine(tmp_path / "two", Simulator("deepseek"), address, first_key=False) as two,
    ):
        first = post(one, "/v1/responses", "", model="deepseek/m1", input="Remember the word heron.").json()
        assert first["store"] is True
        again = post(two, "/v1/responses", "", model="deepseek/m1", input="Which?", previous_response_id=first["id"])
        assert again.status_code == 200
        assert "heron" in two.servers["deepseek"].requests[-1].raw.decode()


def post(gateway: KeyedGateway, path: str, key: str, **body: object) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return httpx.post(f"{gateway.address}{path}", json=body, headers=headers, timeout=PATIENCE)


def chat(gateway: KeyedGateway, key: str) -> httpx.Response:
    asked = [{"role": "user", "content": "hi"}]
    return post(gateway, "/v1/chat/completions", key, model="deepseek/m1", messages=asked, max_tokens=20)


def test_calls_go_on_while_the_database_is_stopped_and_none_is_lost_or_counted_twice(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    toml = f'{PRICE}\n[log]\nurl = "{own_postgres.address}"\n'
    with (
        machine(tmp_path / "one", Simulator("deepseek"), own_postgres.address, toml, first_key=False) as one,
        machine(tmp_path / "two", Simulator("deepseek"), own_postgres.address, toml, first_key=False) as two,
    ):
        ids = [chat(gateway, "").headers["x-bardo-request-id"] for gateway in (one, two)]
        own_postgres.stop()
        answers = [chat(gateway, "") for gateway in (one, two) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200] * 6
        ids += [answer.headers["x-bardo-request-id"] for answer in answers]
        kept = post(one, "/v1/responses", "", model="deepseek/m1", input="hi")
        assert (kept.status_code, kept.json()["store"]) == (200, False)
        ids.append(kept.headers["x-bardo-request-id"])
        own_postgres.start()
        ids += [chat(gateway, "").headers["x-bardo-request-id"] for gateway in (one, two)]
        until(lambda: sorted(rows_of(own_postgres.address)) == sorted(ids))
        assert summed_calls(own_postgres.address) == len(ids), "the sums count each once"


def answered_rows(address: str) -> list[str]:
    try:
        with LogReader(address) as reader:
            return sorted(row.request_id for row in reader.recent(1000) if row.outcome == "ok")
    except LogMissing:
        return []


def rows_of(address: str) -> list[str]:
    with LogReader(address) as reader:
        return [row.request_id for row in reader.recent(1000)]


def summed_calls(address: str) -> int:
    with LogReader(address) as reader:
        return sum(group.sums.calls for group in reader.costs())


def test_a_budget_holds_over_both_machines(postgres_url: str, tmp_path: Path) -> None:
    toml = f'{PRICE}\n[log]\nurl = "{postgres_url}"\n'
    with (
        machine(tmp_path / "one", Simulator("deepseek"), postgres_url, toml) as one,
        machine(tmp_path / "two", Simulator("deepseek"), postgres_url, toml) as two,
    ):
        stay_in_one_day()
        key = make_key(one.state, name="team", usd_per_day="0.002")[1]
        answered, refused = 0, set[int]()
        for place in range(200):
            answer = chat(one if place % 2 else two, key)
            if answer.status_code == 200:
                answered += 1
            else:
                assert answer.json()["error"]["code"] == "insufficient_quota"
                refused.add(place % 2)
            if refused == {0, 1}:
                break
        assert refused == {0, 1}, "neither lets calls through any longer"
        until(lambda: len(costs_of(postgres_url)) == answered)
    assert 0 < sum(costs_of(postgres_url)) <= 2_000_000, "no more than the budget was spent, in both together"


def costs_of(address: str) -> list[int]:
    with LogReader(address) as reader:
        return [row.cost_nanos for row in reader.recent(1000) if row.cost_nanos]


def test_calls_of_a_key_with_a_budget_survive_a_restart_of_the_database(
    own_postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What this process has leased and does not use goes back once a second: here, not before the database is gone.
    monkeypatch.setattr(accounts, "SYNC_SECONDS", 3600.0)
    toml = f'{PRICE}\n[log]\nurl = "{own_postgres.address}"\n'
    stay_in_one_day()
    with machine(tmp_path / "one", Simulator("deepseek"), own_postgres.address, toml) as one:
        key = make_key(one.state, name="team", usd_per_day="5")[1]
        assert chat(one, key).status_code == 200
        own_postgres.stop()
        assert chat(one, key).status_code == 200, "within what this process has of the budget"
        own_postgres.start()
        assert [chat(one, key).status_code for _ in range(3)] == [200] * 3
        until(lambda: len(costs_of(own_postgres.address)) == 5)


def test_a_provider_that_fails_at_one_machine_is_asked_last_at_the_other(redis_url: str, tmp_path: Path) -> None:
    toml = '[health]\nstore_env = "SHARED"\n'
    failing = Simulator("deepseek", fault=Fault("status", status=500))
    with (
        machine(tmp_path / "one", failing, redis_url, toml, first_key=False) as one,
        machine(tmp_path / "two", Simulator("deepseek"), redis_url, toml, first_key=False) as two,
    ):
        until(lambda: {sharing_of(gateway) for gateway in (one, two)} == {"shared"})
        assert [chat(one, "").status_code for _ in range(5)] == [500] * 5
        until(lambda: state_at(two) == "down")
        assert two.servers["deepseek"].requests == [], "it was not asked to find out"
        assert chat(two, "").status_code == 200, "down means last: it is asked where nobody else is left"


def health_of(gateway: KeyedGateway) -> dict[str, Any]:
    found = httpx.get(f"{gateway.address}/v1/bardo/health", timeout=PATIENCE).json()
    assert isinstance(found, dict)
    return found


def sharing_of(gateway: KeyedGateway) -> str:
    return str(health_of(gateway)["sharing"])


def state_at(gateway: KeyedGateway) -> str:
    (provider,) = health_of(gateway)["providers"]
    return next((str(one["state"]) for one in provider["models"]), "")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "anthropic_messages", "gemini"])
def test_a_call_that_needs_more_of_a_limit_while_the_database_is_stopped_is_told_to_come_back(
    name: str, own_postgres: PostgresServer, tmp_path: Path
) -> None:
    toml = f'{PRICE}\n[log]\nurl = "{own_postgres.address}"\n'
    with machine(tmp_path / "one", Simulator("deepseek"), own_postgres.address, toml) as one:
        key = make_key(one.state, name="team", requests_per_minute=3)[1]
        headers = {"authorization": f"Bearer {key}"}
        assert ask(one.address, name, "deepseek/m1", headers=headers).status == 200
        own_postgres.stop()
        answers = [ask(one.address, name, "deepseek/m1", headers=headers) for _ in range(4)]
        assert {answer.status for answer in answers[1:]} == {503}
        assert "the limits of this key is not known now" in answers[-1].text
        assert str(own_postgres.address) not in answers[-1].text
        own_postgres.start()
        until(lambda: ask(one.address, name, "deepseek/m1", headers=headers).status in (200, 429))


def test_a_call_whose_budget_cannot_be_read_in_the_log_is_told_to_come_back(
    own_postgres: PostgresServer, redis_url: str, tmp_path: Path
) -> None:
    toml = f'{PRICE}\n[log]\nurl = "{own_postgres.address}"\n[budgets]\nstore = "{redis_url}"\n'
    with machine(tmp_path / "one", Simulator("deepseek"), own_postgres.address, toml) as one:
        key = make_key(one.state, name="team", usd_per_day="5")[1]
        until(lambda: chat(one, key).status_code == 200)
        own_postgres.stop()
        # What this process has leased of the budget is soon returned; more is leased after a look at what was spent.
        until(lambda: chat(one, key).status_code != 200)
        answer = chat(one, key)
        assert answer.status_code == 503
        assert "the limits of this key is not known now" in answer.text
        assert "postgres" not in answer.text
        own_postgres.start()
        until(lambda: chat(one, key).status_code == 200)


CONFIGURED = """
[[keys]]
id = "plain"
key_env = "PLAIN_KEY"

[[keys]]
id = "bounded"
key_env = "BOUNDED_KEY"
requests_per_minute = 100
"""
KEYS = {"PLAIN_KEY": "a-plain-key-of-the-configuration", "BOUNDED_KEY": "a-bounded-key-of-the-configuration"}


def test_a_gateway_that_starts_while_the_database_of_keys_is_away_takes_its_keys_once_it_is_back(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    stored = make_key(own_postgres.address, name="team", requests_per_minute=100)[1]
    own_postgres.stop()
    toml = f'{CONFIGURED}\n[log]\nurl = "{own_postgres.address}"\n'
    variables = {"SHARED": own_postgres.address, **KEYS}
    options: dict[str, Any] = {"toml": STORES + toml, "variables": variables, "first_key": False}
    with keyed_gateway(tmp_path, [Simulator("deepseek")], **options) as one:
        ids = [chat(one, KEYS["PLAIN_KEY"]).headers["x-bardo-request-id"]]
        assert httpx.get(f"{one.address}/readyz").status_code == 503
        for key in (KEYS["BOUNDED_KEY"], stored, "bardo_unknown", ""):
            answer = chat(one, key)
            assert answer.status_code == 503, key
            assert "postgres" not in answer.text
        used = httpx.get(f"{one.address}/v1/bardo/usage", headers={"authorization": f"Bearer {KEYS['PLAIN_KEY']}"})
        assert used.status_code == 503
        own_postgres.start()
        until(lambda: httpx.get(f"{one.address}/readyz").status_code == 200)
        for key in (KEYS["PLAIN_KEY"], KEYS["BOUNDED_KEY"], stored):
            ids.append(chat(one, key).headers["x-bardo-request-id"])
        assert {chat(one, key).status_code for key in ("bardo_unknown", "")} == {401}
        until(lambda: answered_rows(own_postgres.address) == sorted(ids))


def test_a_gateway_without_keys_that_starts_while_its_database_is_away_is_open_once_it_is_back(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    own_postgres.stop()
    toml = f'[log]\nurl = "{own_postgres.address}"\n'
    with machine(tmp_path / "one", Simulator("deepseek"), own_postgres.address, toml, first_key=False) as one:
        assert chat(one, "").status_code == 503, "whether there are keys is not known"
        own_postgres.start()
        until(lambda: chat(one, "").status_code == 200)
        assert chat(one, "any").status_code == 200


def test_calls_go_on_while_the_server_of_health_does_not_answer_and_health_is_shared_again_after_it(
    tmp_path: Path, redis_program: str
) -> None:
    toml = '[health]\nstore_env = "HEALTH"\n'
    folder = tmp_path / "redis"
    folder.mkdir()
    server = run_redis(redis_program, folder)
    variables = {"HEALTH": f"unix://{folder}/socket"}
    try:
        with (
            keyed_gateway(tmp_path, [Simulator("deepseek")], toml=toml, variables=variables, first_key=False) as one,
            keyed_gateway(
                tmp_path / "two", [Simulator("deepseek")], toml=toml, variables=variables, first_key=False
            ) as two,
        ):
            until(lambda: {sharing_of(gateway) for gateway in (one, two)} == {"shared"})
            # The server keeps its connections open and answers nothing, as behind a network that drops packets.
            server.send_signal(signal.SIGSTOP)
            assert [chat(gateway, "").status_code for gateway in (one, two) for _ in range(5)] == [200] * 10
            until(lambda: {sharing_of(gateway) for gateway in (one, two)} == {"alone"})
            assert [chat(gateway, "").status_code for gateway in (one, two) for _ in range(5)] == [200] * 10
            server.send_signal(signal.SIGCONT)
            until(lambda: {sharing_of(gateway) for gateway in (one, two)} == {"shared"})
    finally:
        server.kill()
        server.wait(PATIENCE)
