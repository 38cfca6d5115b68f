"""Feedback on calls: stored beside them, by those whose calls they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.config.settings import LogSettings, Settings
from bardo.adapters.stores.log import LogReader
from bardo.server.serving import BackgroundServer
from bardo.surfaces.gateway.main import gateway_of
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE, SECRET, entry
from support.talk import ask, request

PATH = "/v1/bardo/feedback"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A gateway with a log, and where the log is."""
    log = tmp_path / "log.db"
    simulator = Simulator("deepseek")
    with simulator.running() as server:
        settings = Settings(providers=(entry(simulator, server.base_url),), log=LogSettings(path=str(log)))
        with BackgroundServer(gateway_of(settings, {KEY_VARIABLE: SECRET})) as gateway:
            yield gateway.address, log


def give(address: str, body: Any, key: str = "") -> Any:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return request(address, "POST", PATH, body, headers=headers)


def stored(log: Path) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(log)
    found = connection.execute("SELECT request_id, score, comment FROM inference_feedback ORDER BY row_number")
    rows = found.fetchall()
    connection.close()
    return rows


def test_feedback_is_stored_beside_its_call(served: tuple[str, Path]) -> None:
    address, log = served
    key = "of-the-client"
    asked = ask(address, "openai_chat", "deepseek/m1", headers={"authorization": f"Bearer {key}"})
    call = asked.headers["x-bardo-request-id"]
    for body, score in (
        ({"request_id": call, "thumbs": "up"}, 1.0),
        ({"request_id": call, "thumbs": "down", "comment": "too long"}, 0.0),
        ({"request_id": call, "score": 0.25}, 0.25),
    ):
        answer = give(address, body, key)
        assert answer.json == {"request_id": call, "score": score, "stored": True}
    assert stored(log) == [(call, 1.0, None), (call, 0.0, "too long"), (call, 0.25, None)]
    with LogReader(log) as reader:
        row = reader.get(call)
    assert row is not None
    assert row.tenant
    assert key not in row.tenant


def test_a_call_of_somebody_else_is_unknown(served: tuple[str, Path]) -> None:
    address, log = served
    call = ask(address, "openai_chat", "deepseek/m1").headers["x-bardo-request-id"]
    for body, key in (({"request_id": call, "thumbs": "up"}, "another"), ({"request_id": "req_0", "score": 1}, "")):
        answer = give(address, body, key)
        assert (answer.status, answer.headers["x-bardo-error"]) == (404, "not_stored")
        assert body["request_id"] in answer.text
    assert stored(log) == []


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"thumbs": "up"}, "request_id"),
        ({"request_id": "", "thumbs": "up"}, "request_id"),
        ({"request_id": "r" * 300, "thumbs": "up"}, "request_id"),
        ({"request_id": "r"}, "thumbs"),
        ({"request_id": "r", "thumbs": "sideways"}, "thumbs"),
        ({"request_id": "r", "thumbs": "up", "score": 1}, "thumbs"),
        ({"request_id": "r", "score": 1.5}, "score"),
        ({"request_id": "r", "score": "good"}, "score"),
        ({"request_id": "r", "score": 1, "comment": "x" * 2001}, "comment"),
        ({"request_id": "r", "score": 1, "coment": "x"}, "coment"),
    ],
)
def test_bad_feedback_is_refused_with_the_field(served: tuple[str, Path], body: Any, param: str) -> None:
    answer = give(served[0], body)
    assert answer.status == 400
    assert answer.json["error"]["param"] == param


def test_a_gateway_without_a_log_says_so() -> None:
    settings = Settings(log=LogSettings(enabled=False))
    with BackgroundServer(gateway_of(settings, {})) as gateway:
        answer = give(gateway.address, {"request_id": "r", "thumbs": "up"})
    assert answer.status == 404
    assert "enabled = true under [log]" in answer.text
