"""Whatever an upstream does, the client gets a whole reply or an error in its own dialect: never nothing, never a silent end."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from bardo.adapters.config.settings import GatewaySettings, ProviderEntry, Settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.call import upstream
from bardo.dialects import dialect
from bardo.replies.reply_reader import row_reader
from bardo.services.facts.directory import ProviderDirectory
from bardo.surfaces.gateway.app import Gateway
from bardo.surfaces.library.decoding import provider_row
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.response import Response
from bardo.wiring import make_services
from support.failover import NO_PAUSES
from support.offenders import each_case
from support.talk import body_for, path_for
from support.upstream_faults import FAULTS, Fault
from support.upstream_replies import REPLIES, TEXT

# What reads the gateway's answer: the decoder of the client's own dialect.
CLIENTS = {
    "openai_chat": "openai-chat",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
    "gemini": "gemini",
}
PATIENCE = 60.0


@dataclass
class Upstream:
    """A gateway over one provider of each dialect, all of whose replies have the fault at hand."""

    fault: Fault

    def __post_init__(self) -> None:
        self.transport = FakeTransport(self._answer)
        entries = [
            ProviderEntry(
                id=name, preset=reply.preset, base_url="http://upstream.example", models=("m",), api_key_env="KEY"
            )
            for name, reply in REPLIES.items()
        ]
        keyring = Keyring({"KEY": "sk-1", "AWS_REGION": "eu-west-1"})
        directory = ProviderDirectory.of(
            Settings(providers=tuple(entries)), self.transport, keyring, clock=time.monotonic
        )
        self.gateway = Gateway(make_services(directory, self.transport, keyring, failover=NO_PAUSES), GatewaySettings())
        self.stream = False

    def _answer(self, call: Call) -> FakeReply:
        made = self.fault.make(REPLIES[call.provider], self.stream)
        if isinstance(made, BardoError):
            raise made
        return made

    async def ask(self, client: str, provider: str, *, stream: bool) -> tuple[int, bytes]:
        """Send one request through the ASGI application; return the answer's status and body."""
        self.stream = stream
        path, _, query = path_for(client, f"{provider}/m", stream=stream).partition("?")
        body = msgspec.json.encode(body_for(client, f"{provider}/m", stream=stream))
        headers = [(b"content-type", b"application/json"), (b"host", b"127.0.0.1")]
        scope = {"type": "http", "method": "POST", "path": path, "query_string": query.encode(), "headers": headers}
        sent: list[Any] = []
        asked = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if asked.is_set():
                await asyncio.Event().wait()
            asked.set()
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        async with asyncio.timeout(PATIENCE):
            await self.gateway(scope, receive, send)
        assert not sent[-1].get("more_body"), "the answer has an end"
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def read(client: str, body: bytes, *, stream: bool) -> Response:
    reader = row_reader(provider_row(CLIENTS[client]), streamed=stream)
    reader.feed(body)
    reader.finish()
    return reader.fold.response()


def check_strict(body: bytes) -> None:
    """Fail where a strict reader cannot read every event of a stream."""
    for event in body.decode().replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff").split("\n\n"):
        data = [line.removeprefix("data:").strip() for line in event.split("\n") if line.startswith("data:")]
        if data and data != ["[DONE]"] and data != [""]:
            msgspec.json.decode("\n".join(data))


def check(fault: Fault, client: str, status: int, body: bytes, *, stream: bool) -> None:
    if status != 200:
        assert 400 <= status < 600
        assert not fault.harmless, body
        assert msgspec.json.decode(body)
        assert dialect(client).decode_error(status, body, {}, "").message
        return
    if stream:
        check_strict(body)
    else:
        msgspec.json.decode(body)
    reply = read(client, body, stream=stream)
    assert reply.error is None or (stream and isinstance(reply.error, UpstreamRefused)), (reply.error, body)
    if fault.harmless:
        assert (reply.error, reply.text) == (None, TEXT), body
    assert reply.error or reply.blocks or reply.finish.reason not in ("unknown", "error"), body


@pytest.mark.sampled(15)
@pytest.mark.parametrize("fault", FAULTS, ids=str)
@each_case("provider", REPLIES)
def test_every_fault_ends_in_a_reply_or_in_an_error_of_the_clients_dialect(
    fault: Fault, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "_BEHIND_THE_END_SECONDS", 0.01)

    async def sweep() -> None:
        upstream = Upstream(fault)
        for client in CLIENTS:
            for stream in (False, True):
                status, body = await upstream.ask(client, provider, stream=stream)
                check(fault, client, status, body, stream=stream)
                assert not upstream.transport.open_calls

    asyncio.run(sweep())
