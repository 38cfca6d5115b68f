"""The stream of a page of live requests, over HTTP: what it says of calls, to whom, and when it ends."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from bardo.simulators import Script, Turn
from support.any_model import Simulator
from support.keyed_gateway import KeyedGateway, keyed_gateway, make_key
from support.panel_pages import PanelReader
from support.patience import PATIENCE
from support.talk import ask
from surfaces.panel.conftest import CONTENT, MODEL, QUIET

THOUGHT = "First **27 * 40**, <script>then</script> 27 * 3."


class Stream:
    """Reads messages of the stream."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response
        self.calls: dict[str, dict[str, Any]] = {}

    def message(self) -> tuple[str, Any]:
        """Return the next message."""
        name = ""
        while True:
            line = self.response.readline().decode()
            assert line, "the stream ended"
            if line.startswith("event: "):
                name = line[7:].strip()
            elif line.startswith("data: "):
                return name, json.loads(line[6:])

    def until_finished(self) -> dict[str, Any]:
        """Return the first call that ends, with all of its thinking."""
        while True:
            for change in self.message()[1]:
                call = self.calls.setdefault(change["id"], {"text": ""})
                call |= {**change, "text": call["text"] + change.get("text", "")}
                if call.get("finished"):
                    return call


@contextmanager
def listening(reader: PanelReader) -> Iterator[Stream]:
    reader.get("")
    connection = http.client.HTTPConnection(urlsplit(reader.address).netloc, timeout=PATIENCE)
    cookie = "; ".join(f"{one.name}={one.value}" for one in reader.client.cookies.jar)
    try:
        connection.request("GET", "/panel/events", headers={"cookie": cookie})
        response = connection.getresponse()
        assert (response.status, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        stream = Stream(response)
        assert stream.message()[0] == "snapshot"
        yield stream
    finally:
        connection.close()


def thinker() -> Simulator:
    return Simulator("deepseek", script=Script((Turn(reasoning=THOUGHT, text="1161"),)), delta_size=3)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedGateway]:
    with keyed_gateway(tmp_path_factory.mktemp("live"), [thinker()], toml=CONTENT) as running:
        yield running


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_call_is_told_with_its_thinking(gateway: KeyedGateway, stream: bool) -> None:
    key = gateway.key(name="own", operator=True)
    with closing(PanelReader(gateway.address, key)) as reader, listening(reader) as feed:
        ask(gateway.address, "openai_chat", MODEL, stream=stream, headers={"authorization": f"Bearer {key}"})
        call = feed.until_finished()
        assert call["text"] == THOUGHT
        assert call["started"]["provider"] == "deepseek"
        assert (call["finished"]["outcome"], call["finished"]["visibility"]) == ("ok", "visible")
        # Once it has ended, the server writes it as Markdown that was made safe.
        found = reader.get(f"/live/{call['id']}").text
        assert "<strong>27 * 40</strong>, &lt;script&gt;then&lt;/script&gt;" in found


def test_a_key_is_told_of_its_own_calls_and_an_operator_of_all(gateway: KeyedGateway) -> None:
    _, own_key = make_key(gateway.state, name="own")
    _, other_key = make_key(gateway.state, name="other")
    operator_key = gateway.key(operator=True)
    with (
        closing(PanelReader(gateway.address, own_key)) as own,
        closing(PanelReader(gateway.address, operator_key)) as operator,
        listening(own) as own_feed,
        listening(operator) as operator_feed,
    ):
        ask(gateway.address, "openai_chat", MODEL, headers={"authorization": f"Bearer {other_key}"})
        foreign = operator_feed.until_finished()["id"]
        ask(gateway.address, "openai_chat", MODEL, headers={"authorization": f"Bearer {own_key}"})
        mine = own_feed.until_finished()["id"]
        assert list(own_feed.calls) == [mine]
        assert foreign != mine
        assert own.get(f"/live/{foreign}").status_code == 404
        assert operator.get(f"/live/{foreign}").status_code == 200


def test_no_thinking_is_told_where_no_content_is_logged(tmp_path: Path) -> None:
    with (
        keyed_gateway(tmp_path, [thinker()], toml=QUIET, first_key=False) as running,
        closing(PanelReader(running.address)) as reader,
        listening(reader) as feed,
    ):
        ask(running.address, "openai_chat", MODEL, stream=True)
        call = feed.until_finished()
        assert call["text"] == ""
        assert call["finished"]["reasoning_tokens"]
        assert THOUGHT[:5] not in reader.get(f"/live/{call['id']}").text


def test_a_gateway_that_stops_ends_the_stream_as_a_whole(tmp_path: Path) -> None:
    """A stream that is cancelled has no end: its reader would get an error, and the gateway would wait for it as for a call."""
    rest: list[bytes] = []
    with closing(PanelReader("http://127.0.0.1")) as reader, ExitStack() as stack:
        running = stack.enter_context(keyed_gateway(tmp_path, [thinker()], toml=CONTENT, first_key=False))
        reader.address = running.address
        reader.client.base_url = httpx.URL(running.address)
        with listening(reader) as feed:
            thread = threading.Thread(target=lambda: rest.append(feed.response.read()))
            thread.start()
            stack.close()
            thread.join(PATIENCE)
    assert rest == [b"\n"]
