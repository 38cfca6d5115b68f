"""What a session, an agent and a repository cost, and the budget of a session: over a gateway as `bardo serve` puts it together."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from bardo.adapters.stores.log import LogReader, LogRow
from support.any_model import Simulator
from support.keyed_gateway import PRICE, KeyedGateway, keyed_gateway
from support.patience import PATIENCE

ASK: dict[str, Any] = {"model": "deepseek/m1", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 20}
CODEX = json.dumps(
    {"workspaces": {"/home/me/place": {"associated_remote_urls": {"origin": "https://me:hunter2@github.com/o/n.git"}}}}
)
REFUSED = [
    ("/v1/chat/completions", ASK, lambda body: body["error"]["code"]),
    ("/v1/messages", ASK, lambda body: body["error"]["type"]),
    (
        "/v1/responses",
        {"model": "deepseek/m1", "input": "hi", "max_output_tokens": 20},
        lambda body: body["error"]["code"],
    ),
    (
        "/v1beta/models/deepseek/m1:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": {"maxOutputTokens": 20}},
        lambda body: body["error"]["status"],
    ),
]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedGateway]:
    with keyed_gateway(tmp_path_factory.mktemp("sessions"), [Simulator("deepseek")], toml=PRICE) as running:
        yield running


def ask(
    gateway: KeyedGateway, key: str, path: str = "/v1/chat/completions", body: Any = ASK, **headers: str
) -> httpx.Response:
    sent = {"authorization": f"Bearer {key}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return httpx.post(gateway.address + path, json=body, headers=sent, timeout=PATIENCE)


def row_of(gateway: KeyedGateway, answer: httpx.Response) -> LogRow:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with LogReader(gateway.log) as reader:
            row = reader.get(answer.headers["x-bardo-request-id"])
        if row is not None:
            return row
        time.sleep(0.02)
    raise AssertionError("the call is not in the log")


def test_a_call_is_logged_with_its_session_agent_and_repository(gateway: KeyedGateway) -> None:
    key = gateway.key()
    answer = ask(
        gateway, key, user_agent="codex_cli_rs/0.6", session_id="s1", x_codex_turn_metadata=CODEX, x_title="Mine"
    )
    row = row_of(gateway, answer)
    assert (row.session, row.agent, row.repository) == ("s1", "codex", "github.com/o/n")
    arrived = gateway.servers["deepseek"].requests[-1]
    assert "x-title" not in {name.lower() for name in arrived.headers}
    said = {**ASK, "bardo": {"session": "s2", "agent": "job", "repository": "git@github.com:o/m.git"}}
    row = row_of(gateway, ask(gateway, key, body=said, user_agent="codex_cli_rs/0.6", session_id="s1"))
    assert (row.session, row.agent, row.repository) == ("s2", "job", "github.com/o/m")
    row = row_of(gateway, ask(gateway, key, body=said, x_bardo_agent="a", x_bardo_repository="r", x_bardo_session="s3"))
    assert (row.session, row.agent, row.repository) == ("s3", "a", "r")
    row = row_of(gateway, ask(gateway, key, user_agent="python"))
    assert (row.session, row.agent, row.repository) == (None, None, None)


def test_vectors_are_logged_with_the_session_of_their_headers(gateway: KeyedGateway) -> None:
    body = {"model": "deepseek/m1", "input": "hi"}
    answer = ask(
        gateway, gateway.key(), "/v1/embeddings", body, x_claude_code_session_id="v", user_agent="claude-cli/2"
    )
    row = row_of(gateway, answer)
    assert (row.operation, row.session, row.agent) == ("embed", "v", "claude-code")


def test_the_key_of_a_client_is_no_name_of_its_session(gateway: KeyedGateway) -> None:
    key = gateway.key()
    row = row_of(gateway, ask(gateway, key, x_bardo_session=key, x_bardo_agent=f"a {key}", x_bardo_repository=key))
    assert key not in repr(row)
    cut = "x" * (201 - len(key)) + key
    for path, body in (("/v1/chat/completions", ASK), ("/v1/embeddings", {"model": "deepseek/m1", "input": "hi"})):
        row = row_of(gateway, ask(gateway, key, path, body, x_bardo_session=cut, x_bardo_agent=cut))
        assert key[:-1] not in repr(row)


@pytest.mark.parametrize("header", ["x-bardo-agent", "x-bardo-repository", "x-bardo-session"])
def test_a_name_that_is_too_long_is_refused(gateway: KeyedGateway, header: str) -> None:
    answer = ask(gateway, gateway.key(), **{header: "x" * 501})
    assert answer.status_code == 400
    assert header in answer.text.lower()


@pytest.mark.parametrize(("path", "body", "kind"), REFUSED, ids=[path for path, _, _ in REFUSED])
def test_a_session_that_is_spent_is_refused_in_the_words_of_its_dialect(
    gateway: KeyedGateway, path: str, body: Any, kind: Any
) -> None:
    key, other = gateway.key(usd_per_session=0.00025), gateway.key(usd_per_session=0.00025)
    answers = [ask(gateway, key, path, body, x_bardo_session="s") for _ in range(4)]
    assert [one.status_code == 200 for one in answers[:1]] == [True]
    refused = answers[-1]
    assert refused.status_code in (402, 429)
    assert refused.headers["x-bardo-limit"] == "usd_per_session"
    assert refused.headers["x-should-retry"] == "false"
    assert "retry-after" not in refused.headers
    assert "begin a new session" in refused.text
    assert kind(refused.json())
    assert ask(gateway, key, path, body, x_bardo_session="t").status_code == 200
    assert ask(gateway, other, path, body, x_bardo_session="s").status_code == 200
    usage = httpx.get(f"{gateway.address}/v1/bardo/usage", headers={"authorization": f"Bearer {key}"}).json()
    assert usage["limits"]["usd_per_session"] == {"limit": 0.00025}
