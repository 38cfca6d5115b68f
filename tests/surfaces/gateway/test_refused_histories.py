"""`repair_history = false`: a history that its provider would refuse is refused in the client's dialect, and nothing is sent."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.server.serving import BackgroundServer
from bardo.surfaces.gateway.main import gateway_of
from support.any_model import Simulator
from support.patience import PATIENCE

CALL = {"id": "call_7", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ASKED = {"role": "user", "content": "Go on."}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_7", "content": "found"}
USED = {"type": "tool_use", "id": "call_7", "name": "f", "input": {}}
ANSWERED = {"type": "tool_result", "tool_use_id": "call_7", "content": "found"}

BROKEN: dict[str, tuple[str, list[Any], str]] = {
    "a call without its result": ("chat", [ASKED, CALLED, ASKED], "the call call_7 has no result"),
    "a result without its call": ("chat", [ASKED, RESULT, ASKED], "the result of call_7 has no call"),
    "a result twice": ("chat", [ASKED, CALLED, RESULT, RESULT, ASKED], "the call call_7 has its result twice"),
    "a call of Claude's own body": (
        "messages",
        [ASKED, {"role": "assistant", "content": [USED]}, ASKED],
        "the call call_7 has no result",
    ),
    "two turns of the user": ("chat", [ASKED, ASKED], "two turns of the role user follow each other"),
    "two calls with one id": (
        "messages",
        [
            ASKED,
            *[{"role": "assistant", "content": [USED]}, {"role": "user", "content": [ANSWERED]}] * 2,
        ],
        "two calls have the id call_7",
    ),
    "an empty text": (
        "messages",
        [{"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "Go on."}]}],
        "a text has nothing in it",
    ),
}
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}


@pytest.fixture(scope="module")
def gateways() -> Iterator[tuple[Any, dict[bool, str]]]:
    with Simulator("anthropic").running() as server:
        provider = (
            f'[log]\nenabled = false\n[[providers]]\nid = "it"\npreset = "anthropic"\nbase_url = "{server.base_url}"\n'
            'api_key_env = "K"\nmodels = ["claude-sonnet-5"]\n'
        )
        with (
            BackgroundServer(gateway_of(parse_settings(provider), {"K": "any"})) as mending,
            BackgroundServer(
                gateway_of(parse_settings(f"[inference]\nrepair_history = false\n{provider}"), {"K": "any"})
            ) as refusing,
        ):
            yield server, {True: mending.address, False: refusing.address}


def posts(server: Any) -> int:
    return sum(one.method == "POST" for one in server.requests)


def post(address: str, client: str, messages: list[Any]) -> tuple[int, Any, str]:
    body = {"model": "it/claude-sonnet-5", "max_tokens": 99, "messages": messages}
    request = urllib.request.Request(
        address + PATHS[client], json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, json.load(answer), answer.headers.get("x-bardo-degraded") or ""
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused), ""


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_history_is_refused_where_it_may_not_be_repaired_and_else_mended(name: str, gateways: Any) -> None:
    server, addresses = gateways
    client, messages, words = BROKEN[name]
    sent = posts(server)
    status, said, _ = post(addresses[False], client, messages)
    assert status == 400
    assert said["error"]["type"] == "invalid_request_error"
    assert words in said["error"]["message"]
    assert client == "chat" or said["type"] == "error"
    assert posts(server) == sent
    status, _, reported = post(addresses[True], client, messages)
    assert status == 200
    assert "history." in reported


@pytest.mark.parametrize("messages", [[ASKED], [ASKED, CALLED, RESULT], [ASKED, CALLED, RESULT, ASKED]])
def test_a_sound_history_is_sent_where_none_may_be_repaired(messages: list[Any], gateways: Any) -> None:
    assert post(gateways[1][False], "chat", messages)[0] == 200
