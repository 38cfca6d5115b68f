"""Every fault, over real sockets, as a client meets it."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from urllib.parse import urlsplit

import pytest

from bardo.simulators import Fault, Running, Script, Turn, parse_fault
from bardo.simulators.delivery import Action, Pause, Send
from bardo.simulators.wire import _Connection
from simulators.support import answered, body_for, events_of, headers_for, path_for, post
from support.any_model import Simulator
from support.patience import PATIENCE

PRESETS_OF_EACH_DIALECT = (
    "openai_chat",
    "openai_responses",
    "anthropic",
    "gemini",
    "gemini_interactions",
    "ollama_native",
    "cohere",
    "watsonx",
)
each_dialect = pytest.mark.parametrize("preset", PRESETS_OF_EACH_DIALECT)


def meet(preset: str, fault: str, *, streamed: bool = True) -> tuple[int, dict[str, str], bytes]:
    """Ask for a fault by the model's name."""
    model = f"any-model+fault:{fault}"
    with Simulator(preset).running() as server:
        body = body_for(preset, model=model, streamed=streamed)
        return post(server, preset, body, streamed=streamed, model=model)


@pytest.mark.parametrize(
    ("wanted", "fault"),
    [
        ("stall", Fault("stall")),
        ("cut=3", Fault("cut", after=3)),
        ("status=429,retry-after=2", Fault("status", status=429, retry_after=2)),
        ("slow=0.5,times=2", Fault("slow", delay=0.5, times=2)),
        ("drip", Fault("drip", size=1)),
        ("oversized=1000", Fault("oversized", size=1000)),
    ],
)
def test_a_fault_is_read_from_a_models_name(wanted: str, fault: Fault) -> None:
    assert parse_fault(wanted) == fault


@pytest.mark.parametrize("wanted", ["nothing", "stall,depth=3", "status=many"])
def test_a_fault_that_is_not_one_is_refused(wanted: str) -> None:
    with pytest.raises(ValueError, match=r"fault|invalid literal"):
        parse_fault(wanted)
    assert meet("openai_chat", wanted)[0] == 400


@each_dialect
@pytest.mark.parametrize("status", [400, 401, 429, 500, 503, 529])
def test_a_status_comes_with_the_providers_error_body(preset: str, status: int) -> None:
    found, headers, body = meet(preset, f"status={status},retry-after=2")
    assert found == status
    assert headers["retry-after"] == "2"
    said = json.loads(body)
    if preset in ("ollama_native", "cohere"):
        assert said["error" if preset == "ollama_native" else "message"]
        return
    error = said["errors"][0] if preset == "watsonx" else said["error"]
    assert error["message"]
    expected = {"gemini": "status", "gemini_interactions": "code", "watsonx": "code"}.get(preset, "type")
    assert error[expected]


@each_dialect
def test_a_cut_comes_in_the_middle_of_an_event(preset: str) -> None:
    model = "any-model+fault:cut=2"
    with Simulator(preset).running() as server:
        received = raw_bytes(server, preset, model)
    assert b"HTTP/1.1 200" in received
    assert not received.endswith(b"0\r\n\r\n")
    assert not received.rstrip(b"\r\n").endswith(b"}")


def test_http_clients_see_a_cut_as_an_incomplete_reply() -> None:
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        meet("openai_chat", "cut")
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        meet("openai_chat", "cut", streamed=False)


def test_an_early_end_is_a_proper_end_of_too_little() -> None:
    status, _, body = meet("openai_chat", "early-end=3")
    assert status == 200
    assert len(events_of(body)) == 3
    assert b"[DONE]" not in body
    with pytest.raises(json.JSONDecodeError):
        json.loads(meet("openai_chat", "early-end", streamed=False)[2])


@pytest.mark.parametrize("kind", ["disconnect", "reset"])
def test_a_connection_dies_before_any_header(kind: str) -> None:
    with pytest.raises(ConnectionResetError if kind == "reset" else (http.client.RemoteDisconnected, ConnectionError)):
        meet("openai_chat", kind)


def test_nobody_listens() -> None:
    with (
        Simulator("openai_chat", fault=Fault("refused")).running() as server,
        pytest.raises(ConnectionRefusedError),
    ):
        post(server, "openai_chat", body_for("openai_chat"))


@each_dialect
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_json_is_malformed(preset: str, streamed: bool) -> None:
    status, _, body = meet(preset, "malformed", streamed=streamed)
    assert status == 200
    parse = events_of if streamed else json.loads
    with pytest.raises(json.JSONDecodeError):
        parse(body)


def test_only_one_event_is_malformed() -> None:
    frames = meet("anthropic", "malformed=4")[2].split(b"\n\n")[:-1]
    broken = [place for place, frame in enumerate(frames) if not _is_json(frame.split(b"data: ")[1])]
    assert broken == [4]


@pytest.mark.parametrize(
    ("kind", "content_type"), [("content-type", "text/html"), ("lying", "text/event-stream; charset=utf-8")]
)
def test_a_page_of_html_comes_instead(kind: str, content_type: str) -> None:
    status, headers, body = meet("openai_chat", kind)
    assert (status, headers["content-type"]) == (200, content_type)
    assert body.startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("preset", ["openai_chat", "ollama_native"])
def test_one_line_is_oversized(preset: str, streamed: bool) -> None:
    body = meet(preset, "oversized=300000", streamed=streamed)[2]
    assert max(map(len, body.split(b"\n"))) > 300_000
    assert json.loads(body) if not streamed else events_of(body)


@pytest.mark.parametrize(
    ("preset", "mark"),
    [
        ("openai_chat", '"server_error"'),
        ("openai_responses", "event: response.failed"),
        ("anthropic", '"overloaded_error"'),
        ("gemini", '"UNAVAILABLE"'),
        ("gemini_interactions", '"event_type":"error"'),
        ("watsonx", "event: error"),
        ("groq", "event: error"),
        ("ollama_native", '{"error":'),
        ("cohere", '"finish_reason":"ERROR"'),
        ("openrouter", '"finish_reason":"error"'),
    ],
)
def test_an_error_comes_inside_a_stream_that_began_well(preset: str, mark: str) -> None:
    status, _, body = meet(preset, "error-event=4")
    assert status == 200
    assert mark in body.decode()
    assert len(events_of(body)) >= 3


def test_a_drip_says_the_same_in_many_pieces() -> None:
    assert meet("openai_responses", "drip=3")[2].count(b"event:") == answered(
        Simulator("openai_responses"), streamed=True
    ).count(b"event:")


def test_a_slow_stream_waits_before_each_event(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Action] = []
    perform = _Connection._perform

    async def noted(connection: _Connection, action: Action) -> None:
        steps.append(action)
        await perform(connection, action)

    monkeypatch.setattr(_Connection, "_perform", noted)
    status, _, body = meet("openai_chat", "slow=0.02")
    assert status == 200
    assert body.endswith(b"[DONE]\n\n")
    sent = [number for number, step in enumerate(steps) if isinstance(step, Send)]
    assert len(sent) == body.count(b"data: ")
    assert all(steps[number - 1] == Pause(0.02) for number in sent)


@each_dialect
def test_a_stalled_stream_stays_open_until_the_client_leaves(preset: str) -> None:
    model = "any-model+fault:stall=2"
    simulator = Simulator(preset)
    event = b'{"model":' if preset == "ollama_native" else b"data: "

    async def scenario() -> bytes:
        async with simulator.serve() as base_url:
            reader, writer = await asyncio.open_connection(*address(base_url))
            writer.write(raw_request(preset, model))
            received = b""
            while received.count(event) < 2:
                received += await reader.read(65536)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.1)
            handlers = asyncio.all_tasks() - {asyncio.current_task()}
            assert len(handlers) == 1
            writer.close()
            ended, _ = await asyncio.wait(handlers, timeout=PATIENCE)
            assert ended == handlers
            return received

    assert asyncio.run(scenario()).startswith(b"HTTP/1.1 200")


def test_a_fault_strikes_as_often_as_it_may() -> None:
    simulator = Simulator("openai_chat", fault=Fault("status", status=503, times=2))
    with simulator.running() as server:
        assert [post(server, "openai_chat", body_for("openai_chat"))[0] for _ in range(4)] == [503, 503, 200, 200]


def test_a_turn_has_its_own_fault() -> None:
    script = Script((Turn(text="x", fault=Fault("status", status=500)), Turn(text="y")))
    with Simulator("openai_chat", script=script).running() as server:
        body = body_for("openai_chat")
        assert post(server, "openai_chat", body)[0] == 500
        answered_before = [{"role": "assistant", "content": "x"}, {"role": "user", "content": "And?"}]
        later = {**body, "messages": [*_messages(body), *answered_before]}
        assert post(server, "openai_chat", later)[0] == 200


def test_the_models_name_is_given_back_without_its_fault() -> None:
    assert json.loads(meet("openai_chat", "slow=0", streamed=False)[2])["model"] == "any-model"


def address(base_url: str) -> tuple[str, int]:
    parts = urlsplit(base_url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def raw_request(preset: str, model: str) -> bytes:
    body = json.dumps(body_for(preset, model=model, streamed=True)).encode()
    headers = {**headers_for(preset), "host": "simulator", "content-length": str(len(body))}
    lines = [f"POST {path_for(preset, model, streamed=True)} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def raw_bytes(server: Running, preset: str, model: str) -> bytes:
    """Read all that comes before the connection closes."""
    with socket.create_connection(address(server.root), timeout=PATIENCE) as connection:
        connection.sendall(raw_request(preset, model))
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received


def _messages(body: dict[str, object]) -> list[object]:
    messages = body["messages"]
    assert isinstance(messages, list)
    return messages


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except json.JSONDecodeError:
        return False
    return True
