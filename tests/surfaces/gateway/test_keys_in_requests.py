"""A client that writes its key into the place of something else does not find it in any file, line or reply of the gateway."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bardo.adapters.stores.log.row import LogRow
from bardo.call.row import without_key, without_key_as_model
from bardo.values.operations import EmbedRequest
from bardo.values.request import BardoOptions, Intent, Request
from support.any_model import Simulator
from support.keyed_gateway import KeyedGateway, keyed_gateway
from support.patience import PATIENCE

CHOSEN = "a-key-that-the-operator-chose-1"
TOML = """
[log]
content = true
[[keys]]
id = "of-the-file"
key_env = "TEAM_KEY"
"""
HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[KeyedGateway]:
    simulators = [Simulator("deepseek"), Simulator("mistral")]
    with keyed_gateway(tmp_path, simulators, toml=TOML, variables={"TEAM_KEY": CHOSEN}) as running:
        yield running


def requests_of(key: str) -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    """Return requests with the key in every place: path, body and headers."""
    said = {"model": "deepseek/m1", "messages": HI, "max_tokens": 5}
    return [
        ("/v1/chat/completions", {**said, "model": key}, {}),
        ("/v1/chat/completions", {**said, "model": f"deepseek/{key}"}, {}),
        ("/v1/chat/completions", {**said, "model": f"deepseek/{key}", "stream": True}, {}),
        ("/v1/chat/completions", {**said, "user": key, "metadata": {key: key}, "logit_bias": {key: 1}}, {}),
        ("/v1/chat/completions", said, {"x-bardo-subsystem": key, "x-bardo-session": key, "user-agent": key}),
        ("/v1/chat/completions", said, {key.lower(): key}),
        ("/v1/messages", {**said, "model": f"deepseek/{key}", "metadata": {"user_id": key}}, {}),
        ("/v1/responses", {"model": f"deepseek/{key}", "input": "Hi", "service_tier": key}, {}),
        ("/v1/embeddings", {"model": f"mistral/{key}", "input": "Hi", "user": key}, {}),
        ("/v1/messages/count_tokens", {"model": f"deepseek/{key}", "messages": HI}, {}),
        (f"/v1beta/models/deepseek/{key}:generateContent", {"contents": [{"parts": [{"text": "Hi"}]}]}, {}),
        (f"/v1/chat/completions?key={key}&user={key}", said, {}),
        (f"/v1/{key}", {}, {}),
    ]


@pytest.mark.parametrize("made", [True, False], ids=["made by bardo", "chosen by the operator"])
def test_a_key_stands_in_nothing_that_is_written(
    gateway: KeyedGateway, tmp_path: Path, made: bool, caplog: pytest.LogCaptureFixture
) -> None:
    key = gateway.key() if made else CHOSEN
    with caplog.at_level(logging.DEBUG, logger="bardo"):
        for path, body, headers in requests_of(key):
            own = {"authorization": f"Bearer {key}", **headers}
            answer = httpx.post(f"{gateway.address}{path}", json=body, headers=own, timeout=PATIENCE)
            assert key not in answer.text, path
            _assert_nowhere(tmp_path, key)
    assert key not in caplog.text


def _assert_nowhere(folder: Path, key: str) -> None:
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files
    assert [file.name for file in files if key.encode() in file.read_bytes()] == []


def row(**fields: Any) -> LogRow:
    return LogRow(request_id="req_1", started_at=0.0, **fields)


KEY = "sk-proj-0123456789abcdefghijkl"
WITH_KEY = Request(model="m1", messages=(), body_bytes=b'{"user": "%s"}' % KEY.encode(), body={"user": KEY})


def test_every_field_of_a_row_is_without_the_key() -> None:
    fields: dict[str, Any] = {
        "model_asked": f"p/{KEY}",
        "subsystem": KEY,
        "finish_raw": KEY,
        "error_message": KEY,
        "degraded": ({"what": "user", "asked": KEY},),
        "receipt": {KEY: [KEY]},
        "route": {"asked": {"model": KEY}},
        "pipeline": {"session": KEY},
        "tags": (KEY,),
        "request_content": f'{{"user": "{KEY}"}}',
        "sent_content": f'{{"a": "{KEY}"}}',
        "reply_content": f'["{KEY}"]',
    }
    cleaned = without_key(row(**fields), WITH_KEY, KEY, is_known=True)
    assert KEY not in repr(cleaned)
    assert (cleaned.model_asked, cleaned.request_content) == ("p/[key]", '{"user": "[key]"}')


@pytest.mark.parametrize(
    "request_",
    [
        WITH_KEY,
        Request(model="m1", messages=(), options=BardoOptions(session=KEY)),
        Request(model="m1", messages=(), options=BardoOptions(intent=Intent(subsystem=KEY))),
        EmbedRequest(model="m1", inputs=(), extra={"user": KEY}),
    ],
    ids=["body", "session", "subsystem", "vectors"],
)
def test_wherever_a_client_writes_its_key_the_row_is_cleaned(request_: Request | EmbedRequest) -> None:
    assert without_key(row(subsystem=KEY), request_, KEY, is_known=False).subsystem == "[key]"


def test_a_row_of_a_request_without_the_key_is_the_same() -> None:
    written = row(subsystem="waking")
    assert without_key(written, Request(model="m1", messages=()), KEY, is_known=True) is written


def test_a_word_that_is_sent_as_a_key_may_be_a_part_of_a_model() -> None:
    asked = Request(model="lm-studio/qwen", messages=())
    assert without_key_as_model(asked, "lm-studio", is_known=False) is asked
    assert without_key_as_model(asked, "lm-studio", is_known=True).model == "[key]/qwen"


def test_a_key_of_bardo_that_is_another_clients_is_no_model_either() -> None:
    other = "bardo_k4bvychjxz0c_" + "aB3" * 14
    asked = Request(model=f"p/{other}", messages=())
    assert without_key_as_model(asked, "another", is_known=True).model == "p/[key]"
