"""Responses by WebSocket: OpenAI's own library and a plain client, several turns, lanes, limits, keys, and the connection's end."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from bardo.adapters.config.settings import GatewaySettings
from bardo.adapters.stores.response_store import ResponseStore
from bardo.adapters.stores.state import MemoryStore
from bardo.simulators import Script, ToolCall, Turn
from bardo.surfaces.gateway.websocket import OpenSockets, ResponsesSocket, _Memory, _rate_limits, _Turn
from bardo.values.errors import Overloaded
from support.any_model import Simulator
from support.gateway import House, Watched, house, model_of
from support.keyed_gateway import PRICE, keyed_gateway
from support.patience import PATIENCE
from support.raw import RawClient, head
from support.sdk import openai_client

# OpenAI's library opens its connections in the way that `websockets` would rather not have.
pytestmark = pytest.mark.filterwarnings("ignore:connect\\(\\) must be used as a context manager:DeprecationWarning")
TOOL: dict[str, Any] = {
    "type": "function",
    "name": "weather",
    "strict": False,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
SCRIPT = Script(
    (
        Turn(reasoning="I need the weather.", tool_calls=(ToolCall("weather", {"city": "Paris"}),)),
        Turn(reasoning="I know it.", text="It is sunny."),
        Turn(text="You are welcome."),
    )
)
PROVIDERS = ("anthropic", "gemini", "openai_responses", "deepseek")


class Talk:
    """A client's side of a connection."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def send(self, **fields: Any) -> None:
        self.socket.send(json.dumps({"type": "response.create", "store": False, **fields}))

    def event(self) -> Any:
        return json.loads(self.socket.recv(PATIENCE))

    def until(self, *ends: str) -> list[Any]:
        """Return the events up to one of these types, or to an error."""
        events = [self.event()]
        while events[-1]["type"] not in (*(ends or ("response.completed",)), "error"):
            events.append(self.event())
        return events

    def ask(self, **fields: Any) -> Any:
        """Return the finished response to a request."""
        self.send(**fields)
        last = self.until()[-1]
        assert last["type"] == "response.completed", last
        return last["response"]

    def refused(self, **fields: Any) -> Any:
        self.send(**fields)
        [event] = self.until()
        return event

    def closed(self) -> tuple[int, str]:
        """Return the code and the reason of the connection's end, before which nothing may come."""
        with pytest.raises(ConnectionClosed) as ended:
            self.socket.recv(PATIENCE)
        assert ended.value.rcvd is not None
        return ended.value.rcvd.code, ended.value.rcvd.reason


@contextmanager
def talk(address: str, key: str = "of-the-client", path: str = "/v1/responses", **headers: str) -> Iterator[Talk]:
    own = {"authorization": f"Bearer {key}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    place = address.replace("http", "ws") + path
    with connect(place, additional_headers=own, max_size=None, open_timeout=PATIENCE) as socket:
        yield Talk(socket)


@pytest.fixture(scope="module")
def town() -> Iterator[House]:
    with house([Simulator(name, script=SCRIPT) for name in PROVIDERS]) as running:
        yield running


def text_of(response: Any) -> str:
    return "".join(part["text"] for item in response["output"] for part in item.get("content") or () if "text" in part)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_tool_loop_sends_only_what_is_new_and_every_provider_gets_the_whole(town: House, provider: str) -> None:
    model, asked = model_of(provider), {"tools": [TOOL], "include": ["reasoning.encrypted_content"]}
    with openai_client(town.address).responses.connect() as connection:

        def turn(**fields: Any) -> Any:
            create: Any = connection.response.create
            create(model=model, store=False, **asked, **fields)
            kinds = []
            for event in connection:
                kinds.append(event.type)
                assert event.type != "error", event
                if event.type == "response.completed":
                    assert kinds[0] == "response.created"
                    return event.response
            raise AssertionError(kinds)

        first = turn(input="What is the weather in Paris?")
        [call] = [item for item in first.output if item.type == "function_call"]
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny, from the tool"}
        second = turn(input=[result], previous_response_id=first.id)
        assert second.output_text == "It is sunny."
        assert second.previous_response_id == first.id
        third = turn(input="Thank you.", previous_response_id=second.id)
        assert third.output_text == "You are welcome."
    sent = json.dumps(town.last(provider))
    for said in ("in Paris?", "sunny, from the tool", "It is sunny.", "Thank you."):
        assert sent.count(said) == 1, said
    assert "previous_response_id" not in sent


def test_a_prepared_request_asks_nobody_and_can_be_gone_on_from(town: House) -> None:
    model, before = model_of("deepseek"), len(town.arrived("deepseek"))
    with talk(town.address) as client:
        prepared = client.ask(model=model, input="The text before.", generate=False)
        assert prepared["output"] == []
        assert prepared["usage"]["total_tokens"] == 0
        assert len(town.arrived("deepseek")) == before
        client.ask(model=model, input="The question.", previous_response_id=prepared["id"])
        assert [m["content"] for m in town.last("deepseek")["messages"]] == ["The text before.", "The question."]
        refused = client.refused(model=model, input=7, generate=False)
        assert (refused["status"], refused["error"]["param"]) == (400, "input")


@pytest.mark.parametrize("said", [{"type": "item_reference"}, {}])
def test_an_item_that_only_the_connection_has_is_found_by_a_reference(town: House, said: dict[str, str]) -> None:
    model, hello = model_of("deepseek"), [{"role": "user", "content": "Hello."}]
    with talk(town.address) as client:
        [*_, item] = client.ask(model=model, input=hello)["output"]
        client.ask(model=model, input=[{**said, "id": item["id"]}, {"role": "user", "content": "And then?"}])
        sent = [(one["role"], one["content"]) for one in town.last("deepseek")["messages"]]
        assert sent == [("assistant", item["content"][0]["text"]), ("user", "And then?")]
    with talk(town.address) as stranger:
        refused = stranger.refused(model=model, input=[{**said, "id": item["id"]}])
        assert refused["status"] in (400, 404), refused


def test_a_response_of_another_connection_is_not_found_by_openais_code(town: House) -> None:
    with talk(town.address) as client:
        name = client.ask(model=model_of("deepseek"), input="Prepare.", generate=False)["id"]
    with talk(town.address) as client:
        refused = client.refused(model=model_of("deepseek"), input="Go on.", previous_response_id=name)
        assert (refused["status"], refused["error"]["code"]) == (400, "previous_response_not_found")
        assert refused["error"]["type"] == "invalid_request_error"
        client.ask(model=model_of("deepseek"), input="All of it.")


def test_what_the_gateway_keeps_is_gone_on_from_by_either_way() -> None:
    store = ResponseStore(MemoryStore())
    model = model_of("anthropic")
    with (
        house([Simulator("anthropic", script=SCRIPT)], responses=store) as running,
        talk(running.address) as client,
        openai_client(running.address) as typed,
    ):
        library: Any = typed
        unstored = client.ask(model=model, input="One.", generate=False)
        first = client.ask(model=model, input="Two.", previous_response_id=unstored["id"], store=True, tools=[TOOL])
        assert first["store"] is True
        assert first["previous_response_id"] == unstored["id"]
        [call] = [item for item in first["output"] if item["type"] == "function_call"]
        result: Any = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
        second = library.responses.create(model=model, input=[result], previous_response_id=first["id"], tools=[TOOL])
        third = client.ask(model=model, input="Thank you.", previous_response_id=second.id, tools=[TOOL])
        assert text_of(third) == "You are welcome."
        sent = json.dumps(running.last("anthropic"))
        assert [sent.count(said) for said in ('"One."', '"Two."', '"sunny"', "It is sunny.", "Thank you.")] == [1] * 5


def test_lanes_answer_at_once_and_the_requests_of_one_lane_in_their_order() -> None:
    slow, quick = Simulator("deepseek"), Simulator("anthropic")
    gate = slow.hold()
    with house([slow, quick]) as running, talk(running.address) as client:
        client.send(model=model_of("deepseek"), input="Slow.", stream_id="slow")
        client.send(model=model_of("anthropic"), input="Behind it.", stream_id="slow")
        gate.wait(PATIENCE)
        client.send(model=model_of("anthropic"), input="Quick.")
        events = client.until()
        assert not any("stream_id" in event for event in events)
        client.send(model=model_of("anthropic"), input="Also quick.", stream_id="a.B-_9")
        assert {event["stream_id"] for event in client.until()} == {"a.B-_9"}
        assert len(running.arrived("anthropic")) == 2
        gate.release()
        for _ in range(2):
            assert {event["stream_id"] for event in client.until()} == {"slow"}
        assert "Behind it." in json.dumps(running.last("anthropic"))


def test_lanes_have_a_form_and_a_number(town: House) -> None:
    with talk(town.address) as client:
        for wrong in ("", "a" * 257, "a/b", "é", 7, ["a"]):
            refused = client.refused(model="m", input="Hi.", stream_id=wrong)
            assert (refused["error"]["code"], refused["error"]["param"]) == ("invalid_stream_id", "stream_id")
            assert "stream_id" not in refused
        for number in range(32):
            client.ask(model=model_of("deepseek"), input="Hi.", generate=False, stream_id=f"lane-{number}")
        refused = client.refused(model=model_of("deepseek"), input="Hi.", stream_id="one-more")
        assert (refused["error"]["code"], refused["stream_id"]) == ("websocket_stream_limit_reached", "one-more")
        client.ask(model=model_of("deepseek"), input="Hi.", generate=False, stream_id="lane-3")
        client.ask(model=model_of("deepseek"), input="Hi.", generate=False)


def test_an_error_has_the_status_and_the_headers_of_http_and_the_connection_goes_on(town: House) -> None:
    with talk(town.address) as client:
        refused = client.refused(model="nobody/has-it", input="Hi.", stream_id="a")
        assert (refused["status"], refused["stream_id"], refused["error"]["code"]) == (404, "a", "unknown_model")
        assert refused["headers"]["x-bardo-error"] == "unknown_model"
        assert (
            client.refused(model=model_of("deepseek"), input="Hi.", background=True)["error"]["param"] == "background"
        )
        limited = client.refused(model=f"{model_of('deepseek')}+fault:status=429,retry-after=7", input="Hi.")
        assert (limited["status"], limited["headers"]["retry-after"]) == (429, "7")
        for wrong in ("{", "[]", "7", '{"input": "Hi."}', '{"type": "response.cancel"}', '{"type": 7}', "[" * 100_000):
            client.socket.send(wrong)
            event = client.event()
            assert (event["type"], event["status"], event["error"]["type"]) == ("error", 400, "invalid_request_error")
        client.socket.send(b'{"type": "response.create"}')
        assert "binary" in client.event()["error"]["message"]
        client.send(model=f"{model_of('deepseek')}+fault:error-event", input="Hi.")
        assert [event["type"] for event in client.until("response.failed")][-1] == "error"
        assert client.event()["type"] == "response.failed"
        client.ask(model=model_of("deepseek"), input="Hi.")


@pytest.mark.filterwarnings("ignore:connect")
def test_what_is_to_steer_a_reply_is_given_back(town: House) -> None:
    with openai_client(town.address).responses.connect() as connection:
        send: Any = connection.send
        send({"type": "response.steer", "previous_response_id": "resp_1", "input": "Rather in French."})
        event: Any = next(iter(connection))
        assert (event.type, event.error.code) == ("response.steer.failed", "steering_not_supported")
        assert (event.steer.input, event.steer.previous_response_id) == ("Rather in French.", "resp_1")


def test_each_request_is_a_call_in_the_log_and_its_first_event_tells_the_headers(town: House) -> None:
    with talk(town.address) as client:
        client.send(model=model_of("deepseek"), input="Hi.", top_k=3, truncation="auto")
        events = client.until()
        told = events[0]["response"]["headers"]
        row = town.log.row(told["x-bardo-request-id"])
        assert (row.outcome, row.model_asked, row.streamed) == ("ok", model_of("deepseek"), True)
        assert "truncation" in told["x-bardo-degraded"]
        assert "headers" not in events[-1]["response"]


def test_messages_at_work_count_as_bodies_and_what_is_refused_counts_no_more() -> None:
    provider = Simulator("deepseek")
    gate = provider.hold()
    model, long = model_of("deepseek"), "long " * 3000
    with house([provider], gateway={"max_total_body_bytes": 40_000}) as running, talk(running.address) as client:
        client.send(model=model, input=long, stream_id="held")
        gate.wait(PATIENCE)
        client.send(model=model, input=long, stream_id="held-too")
        for _ in range(4):
            refused = client.refused(model=model, input=long, stream_id="c")
            assert (refused["status"], refused["headers"]["retry-after"]) == (503, "1")
        gate.release()
        assert [client.until()[-1]["type"] for _ in range(2)] == ["response.completed"] * 2
        for _ in range(4):
            client.ask(model=model, input=long)


def test_a_mistake_in_one_request_leaves_the_next_of_its_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    answer = ResponsesSocket._answer

    async def fails_once(self: ResponsesSocket, fields: Any, lane: str | None) -> None:
        asked.append(lane)
        if len(asked) == 1:
            raise RuntimeError("a mistake")
        await answer(self, fields, lane)

    monkeypatch.setattr(ResponsesSocket, "_answer", fails_once)
    with house([Simulator("deepseek")]) as running, talk(running.address) as client:
        client.send(model=model_of("deepseek"), input="One.", stream_id="a")
        client.send(model=model_of("deepseek"), input="Two.", stream_id="a")
        assert client.event()["status"] == 500
        assert client.until()[-1]["type"] == "response.completed"


def test_a_client_that_leaves_ends_its_calls() -> None:
    provider = Watched("deepseek", silent_first=True)
    with house([provider]) as running:
        with talk(running.address) as client:
            client.send(model="deepseek/left", input="Hi.")
            assert provider.asked.wait(PATIENCE)
        assert provider.over.wait(PATIENCE), "the provider's connection stays open"
        assert running.log.of_model("deepseek/left").outcome == "cancelled"


def test_a_gateway_that_stops_ends_idle_connections_and_lets_requests_end_first() -> None:
    provider = Watched("deepseek")
    gate = provider.hold()
    with talk_and_stop(provider, grace=PATIENCE) as (idle, busy):
        gate.wait(PATIENCE)
        assert idle.closed() == (1001, "the gateway stops")
        busy.send(model="deepseek/m", input="One more.", stream_id="b")
        assert busy.until()[-1]["status"] == 503
        gate.release()
        assert busy.until()[-1]["type"] == "response.completed"
        assert busy.closed()[0] == 1001


def test_a_request_that_does_not_end_in_time_ends_with_an_error() -> None:
    with talk_and_stop(Watched("deepseek", silent_first=True), grace=0.05) as (_, busy):
        [event] = busy.until()
        assert (event["status"], event["error"]["code"]) == (503, "shutting_down")
        assert busy.closed()[0] == 1012


@contextmanager
def talk_and_stop(provider: Watched, *, grace: float) -> Iterator[tuple[Talk, Talk]]:
    """Give an idle connection and one that waits for a reply, of a gateway that stops."""
    with provider.running():
        running = house([provider], grace=grace)
        town = running.__enter__()
        with talk(town.address) as idle, talk(town.address) as busy:
            busy.send(model="deepseek/m", input="Hi.")
            assert provider.asked.wait(PATIENCE)
            stopping = threading.Thread(target=running.__exit__, args=(None, None, None))
            stopping.start()
            yield idle, busy
            stopping.join(PATIENCE)
            assert not stopping.is_alive()


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions", "/v1/realtime?model=m"])
def test_where_none_is_served_a_client_gets_426_and_goes_on_by_http(path: str) -> None:
    with (
        house([Simulator("deepseek")], gateway={"websockets": path != "/v1/responses"}) as running,
        pytest.raises(InvalidStatus) as refused,
        talk(running.address, path=path),
    ):
        pass
    response = refused.value.response
    assert response.status_code == 426
    assert response.headers["upgrade"] == "HTTP/1.1"
    assert "send the request by HTTP" in json.loads(response.body)["error"]["message"]


def test_a_connection_has_an_age_and_a_time_of_rest() -> None:
    provider = Simulator("deepseek")
    gate = provider.hold()
    with (
        house([provider], gateway={"websocket_seconds": 0.2}) as running,
        talk(running.address) as client,
    ):
        client.send(model="deepseek/m", input="Hi.")
        gate.wait(PATIENCE)
        code = ""
        while code != "websocket_connection_limit_reached":
            client.send(model="deepseek/m", input="Hi.", generate=False, stream_id="b")
            code = client.until()[-1].get("error", {}).get("code")
        gate.release()
        assert client.until()[-1]["type"] == "response.completed"
        assert client.event()["error"]["code"] == "websocket_connection_limit_reached"
        assert client.closed()[0] == 1000
    with house([], gateway={"websocket_idle_seconds": 0.1}) as running, talk(running.address) as client:
        assert client.closed() == (1000, "nothing was asked for a long time")


def test_a_request_that_comes_as_an_idle_connection_is_closed_is_not_begun() -> None:
    async def run() -> list[str]:
        received: asyncio.Queue[Any] = asyncio.Queue()
        sent: list[str] = []

        async def serve(*_: object) -> None:
            sent.append("served")

        async def send(message: Any) -> None:
            sent.append(message["type"])

        scope = {"type": "websocket", "path": "/v1/responses", "headers": []}
        socket = ResponsesSocket(serve, scope, received.get, send, GatewaySettings(), OpenSockets())
        running = asyncio.create_task(socket.run())
        await asyncio.sleep(0)
        socket._end_idle()
        received.put_nowait({"type": "websocket.receive", "text": '{"type": "response.create", "input": "Hi."}'})
        for _ in range(20):
            await asyncio.sleep(0)
        received.put_nowait({"type": "websocket.disconnect"})
        await running
        return sent

    assert asyncio.run(run()) == ["websocket.accept", "websocket.close"]


def test_pages_of_other_origins_and_hosts_get_no_connection(town: House) -> None:
    own = {"connection": "Upgrade", "upgrade": "websocket", "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for wrong, host in (({"origin": "https://evil.example"}, ""), ({}, "evil.example")):
        with RawClient(town.address) as raw:
            raw.send(head(host or raw.host, "/v1/responses", "GET", **own, sec_websocket_version="13", **wrong))
            assert raw.reply().status == 403
    allowed = {"allowed_origins": ("https://app.example",)}
    with (
        house([Simulator("deepseek")], gateway=allowed) as running,
        talk(running.address, origin="https://app.example") as client,
    ):
        client.ask(model=model_of("deepseek"), input="Hi.")


def test_keys_their_limits_and_their_connections_are_apart(tmp_path: Path) -> None:
    toml = PRICE + "\n[gateway]\nmax_websockets_per_key = 2\n"
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=toml) as running:
        limited, other = running.key(name="limited", requests_per_minute=4), running.key(name="other")
        with pytest.raises(InvalidStatus) as refused, talk(running.address, key="nobody's"):
            pass
        assert refused.value.response.status_code == 401
        assert b"nobody's" not in refused.value.response.body
        with talk(running.address, limited, originator="codex_exec") as one, talk(running.address, limited) as two:
            with pytest.raises(InvalidStatus) as refused, talk(running.address, limited):
                pass
            assert refused.value.response.status_code == 503
            with talk(running.address, other) as third:
                one.send(model="deepseek/m", input="Hi.")
                events = one.until()
                assert events[0]["type"] == "codex.rate_limits"
                window = events[0]["rate_limits"]["primary"]
                assert (window["used_percent"], window["window_minutes"]) == (25.0, 1)
                name = events[-1]["response"]["id"]
                two.send(model="deepseek/m", input="Hi.")
                assert two.event()["type"] == "response.created"
                assert two.until()[-1]["type"] == "response.completed"
                for stranger in (two, third):
                    told = stranger.refused(model="deepseek/m", input="Mine?", previous_response_id=name)
                    assert told["status"] in (400, 404), told
                one.ask(model="deepseek/m", input="Mine.", previous_response_id=name)
                told = {"type": ""}
                while told["type"] != "error":
                    one.send(model="deepseek/m", input="Hi.")
                    told = one.until()[-1]
                assert told["status"] == 429
                assert told["headers"]["x-bardo-limit"] == "requests_per_minute"
                third.ask(model="deepseek/m", input="Hi.")


def test_the_window_of_a_login_goes_before_that_of_a_key() -> None:
    headers = {
        "x-codex-primary-used-percent": "12.5",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": "1700",
        "x-codex-secondary-used-percent": "many",
        "x-ratelimit-limit-requests": "10",
        "x-ratelimit-remaining-requests": "9",
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "250",
    }
    windows = {"primary": {"used_percent": 12.5, "window_minutes": 300, "reset_at": 1700}}
    limit = {"type": "codex.rate_limits", "rate_limits": windows, "metered_limit_name": "codex"}
    assert _rate_limits(headers, 0.0) == [limit]
    more = {
        "x-codex-spark-primary-used-percent": "80",
        "x-codex-credits-has-credits": "True",
        "x-codex-credits-unlimited": "0",
        "x-codex-credits-balance": "9.50",
    }
    money = {"has_credits": True, "unlimited": False, "balance": "9.50"}
    own = {"primary": {"used_percent": 80.0, "window_minutes": None, "reset_at": None}}
    assert _rate_limits({**headers, **more}, 0.0) == [
        {**limit, "credits": money},
        {**limit, "rate_limits": own, "metered_limit_name": "codex_spark", "credits": money},
    ]
    assert _rate_limits({**headers, "x-codex-plan-type": "pro"}, 0.0) == [{**limit, "plan_type": "pro"}]
    of_key = {name: value for name, value in headers.items() if "ratelimit" in name}
    window = {"used_percent": 75.0, "window_minutes": 1, "reset_at": 160}
    assert _rate_limits(of_key, 100.0) == [{"type": "codex.rate_limits", "rate_limits": {"primary": window}}]
    assert _rate_limits({"x-ratelimit-limit-requests": "0"}, 0.0) == []


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e300", "", "many"])
def test_a_limit_that_is_no_number_is_not_told(value: str) -> None:
    told = {f"x-codex-primary-{name}": value for name in ("window-minutes", "reset-at")}
    [event] = _rate_limits({**told, "x-codex-primary-used-percent": "1"}, 0.0)
    assert event["rate_limits"]["primary"] == {"used_percent": 1.0, "window_minutes": None, "reset_at": None}
    of_key = {f"x-ratelimit-{name}-requests": value for name in ("limit", "remaining")}
    assert _rate_limits({**of_key, "x-codex-primary-used-percent": value}, 0.0) == []


class Heard:
    """A connection on which events are sent."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    async def event(self, data: bytes, lane: str | None) -> None:
        self.events.append(json.loads(data))

    async def limits(self, headers: dict[str, str]) -> None:
        """Codex alone is told."""


ITEM, BROKEN = {"type": "message", "id": "m"}, {"type": "function_call", "status": "incomplete"}


@pytest.mark.parametrize(
    ("response", "remembered"),
    [
        ({"id": "r", "output": [{"type": "message", "id": "other"}]}, ["other"]),
        ({"id": "r", "output": []}, ["m"]),
        ({"id": "r", "output": None}, ["m"]),
        ({"id": "r", "output": [BROKEN, {"type": 7, "id": 7}], "store": "x"}, [7]),
        ({"id": 9, "output": [ITEM]}, None),
        ({"output": [ITEM]}, None),
    ],
)
def test_a_reply_is_told_whatever_its_fields_are_and_remembered_by_its_items(response: Any, remembered: Any) -> None:
    heard = Heard()
    turn = _Turn(cast("ResponsesSocket", heard), None)
    said = [{"type": "response.output_item.done", "item": ITEM}, {"type": "response.completed", "response": response}]
    asyncio.run(turn.events(b"".join(b"data: %s\n\n" % json.dumps(one).encode() for one in said)))
    assert heard.events == said
    assert (turn.answered and [json.loads(item)["id"] for item in turn.answered[1]]) == remembered


def test_a_memory_holds_what_others_go_on_from_and_counts_it_once() -> None:
    memory = _Memory(30)
    memory.put("a", None, b"1" * 10)
    memory.put("b", memory.find("a"), b"2" * 10)
    memory.put("c", memory.find("a"), b"3" * 10)
    assert memory.bytes == 30
    memory.put("d", None, b"4")
    # "a" is forgotten by its name, and held by "b" and "c"; then "b" goes.
    assert [memory.find(name) is not None for name in "abcd"] == [False, False, True, True]
    assert memory.bytes == 21
    late = memory.find("c")
    memory.forget_oldest()
    assert memory.bytes == 1
    memory.put("e", late, b"5")
    assert memory.bytes == 22
    memory.put("e", None, b"6" * 5)
    assert memory.bytes == 6
    while not memory.is_empty():
        memory.forget_oldest()
    assert memory.bytes == 0


def test_whoever_remembers_most_forgets_first() -> None:
    class Open:
        def __init__(self, sizes: Sequence[int]) -> None:
            self.memory = _Memory(1000)
            for number, size in enumerate(sizes):
                self.memory.put(str(number), None, b"a" * size)

    small, large = Open([10, 10]), Open([40, 30, 20])
    sockets: Any = OpenSockets()
    sockets.add(small, "one", 1)
    sockets.add(large, "two", 1)
    sockets.make_room(60)
    assert (small.memory.bytes, large.memory.bytes) == (20, 20)
    assert large.memory.find("2") is not None
    with pytest.raises(Overloaded):
        sockets.add(Open([]), "one", 1)
    sockets.remove(small, "one")
    sockets.add(small, "one", 1)
    sockets.make_room(0)
    assert (small.memory.bytes, large.memory.bytes) == (0, 0)


def test_websockets_are_on_unless_they_are_turned_off() -> None:
    assert GatewaySettings().websockets
