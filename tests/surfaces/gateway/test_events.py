"""The events of a live gateway: told as they happen, filtered, and taken up again."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bardo.surfaces.gateway import own_endpoints as events
from support.any_model import Simulator
from support.gateway import house
from support.keyed_gateway import keyed_gateway
from support.patience import PATIENCE
from support.talk import ask, request
from surfaces.gateway.cells import whole_and_streamed


class Reader:
    """Reads server-sent events from one connection."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response

    def until(self, name: str) -> list[dict[str, Any]]:
        """Return the events up to the first of a name, each with its `id` and `name`."""
        found: list[dict[str, Any]] = []
        fields: dict[str, str] = {}
        while True:
            line = self._response.readline().decode().rstrip("\n")
            assert line or fields or self._response.fp is not None, "the stream ended"
            if line:
                field, _, value = line.partition(": ")
                fields[field] = value
            elif "event" in fields:
                found.append({"id": fields["id"], "name": fields["event"], **json.loads(fields["data"])})
                if fields["event"] == name:
                    return found
                fields = {}
            else:
                fields = {}


@contextmanager
def listening(address: str, path: str = "/v1/bardo/events", **headers: str) -> Iterator[Reader]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        assert (response.status, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert response.readline().startswith(b":")
        assert response.readline() == b"\n"
        yield Reader(response)
    finally:
        connection.close()


@whole_and_streamed
def test_a_call_is_told_from_its_beginning_to_its_end(stream: bool) -> None:
    with house([Simulator("deepseek")]) as running, listening(running.address) as reader:
        answer = ask(running.address, "openai_chat", "deepseek/m", stream=stream)
        found = reader.until("call:finished")
        assert {one["request_id"] for one in found} == {answer.headers["x-bardo-request-id"]}
        assert found[0]["name"] == "call:started"
        assert found[0]["event"]["provider"] == "deepseek"
        assert found[-1]["event"]["outcome"] == "ok"
        assert "call:reasoning" not in {one["name"] for one in found}


def test_a_call_that_no_provider_was_asked_for_is_told_by_what_the_client_said() -> None:
    with house([Simulator("deepseek")]) as running, listening(running.address) as reader:
        answer = ask(running.address, "anthropic_messages", "nowhere")
        (told,) = reader.until("call:finished")
        assert answer.status == 404
        assert (told["event"]["provider"], told["event"]["error"]) == ("", "UnknownModel")
        assert (told["event"]["model_asked"], told["event"]["client_dialect"]) == ("nowhere", "anthropic_messages")


def test_thinking_is_told_only_where_content_is_kept() -> None:
    with house([Simulator("deepseek")], keep_content=True) as running, listening(running.address) as reader:
        ask(running.address, "openai_chat", "deepseek/m", stream=True)
        found = reader.until("call:finished")
        assert "".join(one["event"]["text"] for one in found if one["name"] == "call:reasoning")


def test_progress_is_told_without_any_text() -> None:
    with house([Simulator("deepseek", pace=0.01)]) as running, listening(running.address) as reader:
        ask(running.address, "openai_chat", "deepseek/m", stream=True)
        told = [one["event"] for one in reader.until("call:finished") if one["name"] == "call:progress"]
    assert list(dict.fromkeys(one["phase"] for one in told)) == ["thinking", "answering"]
    assert told[0]["reasoning_tokens"] > 0
    assert told[-1]["answer_tokens"] > 0
    assert all("27" not in str(one) for one in told)


def test_a_reader_goes_on_where_it_stopped() -> None:
    with house([Simulator("deepseek")]) as running:
        with listening(running.address, "/v1/bardo/events?event=call:finished") as reader:
            ask(running.address, "openai_chat", "deepseek/m")
            [seen] = reader.until("call:finished")
        missed = ask(running.address, "openai_chat", "deepseek/m").headers["x-bardo-request-id"]
        with listening(running.address, "/v1/bardo/events?event=call:f", **{"Last-Event-ID": seen["id"]}) as reader:
            [found] = reader.until("call:finished")
        assert found["request_id"] == missed


def test_a_filter_that_there_is_not_is_refused() -> None:
    with house([Simulator("deepseek")]) as running:
        answer = request(running.address, "GET", "/v1/bardo/events?model=x")
        assert answer.status == 400
        assert "request_id" in answer.text


def test_the_readers_of_each_key_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_READERS_OF_A_KEY", 2)
    with keyed_gateway(tmp_path, [Simulator("deepseek")]) as running:
        one, other = ({"authorization": f"Bearer {running.key(name=name)}"} for name in ("one", "other"))
        with listening(running.address, **one):
            with listening(running.address, **one):
                refused = request(running.address, "GET", "/v1/bardo/events", headers=one)
                assert refused.status == 503
                assert "2 readers of events are connected with this key" in refused.text
                with listening(running.address, **other):
                    pass
            # A reader that left makes room for another, once the gateway knows.
            give_up = time.monotonic() + PATIENCE
            while True:
                try:
                    with listening(running.address, **one):
                        break
                except AssertionError:
                    assert time.monotonic() < give_up
