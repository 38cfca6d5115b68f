"""Where and how long a client of the library may be used, and what it leaves behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap

import pytest

import bardo
from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.values.errors import BardoError, ClientMisuse, InvalidRequest
from support.patience import PATIENCE
from support.upstream_replies import REPLIES

pytestmark = pytest.mark.each_python

ENTRY = ProviderEntry(id="one", preset="ollama", base_url="http://upstream", models=("m",))
SETTINGS = Settings(providers=(ENTRY,), log=LogSettings(enabled=False))
REPLY = FakeReply(headers={"content-type": "application/json"}, chunks=[REPLIES["ollama"].whole])


def client() -> bardo.AsyncClient:
    return bardo.AsyncClient(SETTINGS, transport=FakeTransport(lambda _: REPLY))


async def respond(one: bardo.AsyncClient) -> str:
    return (await one.respond("2+2?", model="m")).text


async def stream(one: bardo.AsyncClient) -> str:
    async with one.stream("2+2?", model="m") as reply:
        return "".join([piece async for piece in reply.text_stream])


@pytest.mark.parametrize("call", [respond, stream])
def test_a_client_in_a_second_event_loop_says_so(call: object) -> None:
    one = client()
    assert asyncio.run(respond(one)) == "Four."
    with pytest.raises(ClientMisuse, match="another event loop") as caught:
        asyncio.run(call(one))  # type: ignore[operator]
    assert isinstance(caught.value, BardoError)
    asyncio.run(one.close())


@pytest.mark.parametrize("call", [respond, stream])
def test_a_client_after_its_end_says_so(call: object) -> None:
    async def run() -> None:
        async with client() as one:
            assert await respond(one) == "Four."
        await one.close()
        with pytest.raises(ClientMisuse, match="closed"):
            await call(one)  # type: ignore[operator]

    asyncio.run(run())


def test_a_client_without_asyncio_says_so_after_its_end() -> None:
    one = bardo.Client(SETTINGS)
    one.close()
    one.close()
    with pytest.raises(ClientMisuse, match="closed"):
        one.respond("2+2?", model="m")
    with pytest.raises(ClientMisuse, match="closed"), one.stream("2+2?", model="m"):
        pass


PROGRAM = """
import asyncio, gc, http.server, json, threading
import bardo
from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps({"choices": [{"index": 0, "message": {"content": "Four."}, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_address[1]}/v1"
entry = ProviderEntry(id="one", preset="openai-compatible", base_url=address, models=("m",))
settings = Settings(providers=(entry,), log=LogSettings(enabled=False))

async def ask(client):
    return (await client.respond("2+2?", model="m")).text
"""

ENDINGS = {
    "a client that is still there at the end": """
        client = bardo.Client(settings)
        assert client.respond("2+2?", model="m").text == "Four."
    """,
    "a client that is gone": """
        client = bardo.Client(settings)
        assert client.respond("2+2?", model="m").text == "Four."
        del client
        gc.collect()
        assert not [one for one in threading.enumerate() if one.name == "bardo-client"]
    """,
    "an asyncio client that is still there at the end": """
        client = bardo.AsyncClient(settings)
        assert asyncio.run(ask(client)) == "Four."
    """,
    "an asyncio client that is gone in its loop": """
        async def main():
            assert await ask(bardo.AsyncClient(settings)) == "Four."
            gc.collect()
            await asyncio.sleep(0)
        asyncio.run(main())
    """,
    "an asyncio client that is gone after its loop": """
        client = bardo.AsyncClient(settings)
        assert asyncio.run(ask(client)) == "Four."
        del client
        gc.collect()
    """,
    "an asyncio client that is closed in another loop": """
        client = bardo.AsyncClient(settings)
        assert asyncio.run(ask(client)) == "Four."
        asyncio.run(client.close())
    """,
    "an asyncio client in a cycle": """
        client = bardo.AsyncClient(settings)
        client.itself = client
        assert asyncio.run(ask(client)) == "Four."
        del client
        gc.collect()
    """,
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_a_client_that_nobody_closes_leaves_no_noise(ending: str) -> None:
    program = PROGRAM + textwrap.dedent(ending)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_client_is_shown_shortly_and_says_when_it_is_closed() -> None:
    one = bardo.Client(SETTINGS)
    assert repr(one) == "<bardo.Client>"
    one.close()
    assert repr(one) == "<bardo.Client, closed>"


@pytest.mark.parametrize("prompt", [5, None, {"role": "user", "content": "hi"}])
def test_a_prompt_that_is_no_text_and_no_list_of_turns_is_named(prompt: object) -> None:
    with pytest.raises(InvalidRequest, match="a prompt cannot be"), bardo.Client(SETTINGS) as one:
        one.respond(prompt, model="m")  # type: ignore[call-overload]
