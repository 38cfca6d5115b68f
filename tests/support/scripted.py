"""A gateway without sockets: requests come as ASGI messages, and providers answer with the bytes a test gives."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from bardo.adapters.config.settings import GatewaySettings, ProviderEntry, Settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log import LogRow
from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import KeyedStore
from bardo.call.services import Limits
from bardo.catalog.load import builtin
from bardo.services.facts.directory import ProviderDirectory
from bardo.surfaces.gateway.app import Gateway
from bardo.wiring import make_services
from support.failover import NO_PAUSES
from support.talk import Answer, body_for, path_for

KEY = "sk-proj-Recognisable0123456789/abc+def="
KEY_VARIABLE = "BARDO_TEST_KEY"
ADDRESS = "http://provider.invalid/v1"
CONTENT_TYPES = {"bedrock_converse": "application/vnd.amazon.eventstream", "ollama": "application/x-ndjson"}


@dataclass
class Scripted:
    """A gateway over one provider of `dialect`, which answers each call with what `handler` gives."""

    dialect: str
    handler: Callable[[Call], FakeReply]
    headers: Mapping[str, str] = field(default_factory=dict)
    base_url: str = ADDRESS
    limits: Limits = field(default_factory=Limits)
    rows: list[LogRow] = field(default_factory=list)
    clock: Callable[[], float] = time.time
    drops: bool = False
    """Whether what the client is sent is thrown away."""
    preset: str = ""
    """The provider's row; empty: one of `dialect` of which nothing else is known."""
    models: tuple[str, ...] = ("m1",)
    transport: Any = None
    """What calls are sent over; None: what `handler` answers."""
    replay: KeyedStore | None = None
    """Where earlier reasoning is kept; None: nowhere."""

    def __post_init__(self) -> None:
        self.transport = self.transport or FakeTransport(self.handler)
        keyring = Keyring({KEY_VARIABLE: KEY})
        entry = ProviderEntry(
            id="p",
            preset=self.preset or _preset(self.dialect),
            base_url=self.base_url,
            api_key_env=KEY_VARIABLE,
            models=self.models,
            headers=dict(self.headers),
        )
        settings = Settings(providers=(entry,))
        directory = ProviderDirectory.of(settings, self.transport, keyring, clock=time.monotonic)
        self.services = make_services(
            directory,
            self.transport,
            keyring,
            limits=self.limits,
            log=_Rows(self.rows),
            clock=self.clock,
            failover=NO_PAUSES,
            replay=None if self.replay is None else ReplayKeeper(self.replay, clock=self.clock),
        )
        self.app = Gateway(self.services, GatewaySettings(max_body_bytes=64_000_000, keep_alive_seconds=0))

    def ask(self, client: str, *, stream: bool, headers: Mapping[str, str] | None = None, **asked: Any) -> Answer:
        """Ask in a client's dialect, and return the whole answer."""
        path = path_for(client, "m1", stream=stream)
        return self.post(path, body_for(client, "m1", stream=stream, **asked), headers)

    def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
        """Send one request."""
        pieces: list[bytes] = []
        status, found = asyncio.run(self._post(path, body, headers or {}, pieces.append))
        return Answer(status, found, b"".join(pieces))

    async def _post(
        self, path: str, body: Any, headers: Mapping[str, str], take: Callable[[bytes], None]
    ) -> tuple[int, dict[str, str]]:
        parts = urlsplit(path)
        given = {"host": "127.0.0.1:8080", "content-type": "application/json", **headers}
        scope = {
            "type": "http",
            "method": "POST",
            "path": parts.path,
            "query_string": parts.query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8080),
        }
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        coming = [{"type": "http.request", "body": raw, "more_body": False}]
        head: dict[str, Any] = {}

        async def receive() -> Any:
            if coming:
                return coming.pop()
            await asyncio.Event().wait()
            return None

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                head.update(message)
            else:
                if not self.drops:
                    take(message.get("body", b""))

        await self.app(scope, receive, send)
        found = {name.decode(): value.decode("latin-1") for name, value in head.get("headers", ())}
        return head["status"], found


def _preset(dialect: str) -> str:
    """Return a provider of the dialect of which nothing else is known, where there is one."""
    rows = [row for row in builtin().providers if row.dialect == dialect]
    return next((row.id for row in rows if row.id.endswith("-compatible")), rows[0].id)


class _Rows:
    def __init__(self, rows: list[LogRow]) -> None:
        self._rows = rows

    def write(self, row: LogRow) -> None:
        self._rows.append(row)


def content_type(dialect: str, *, stream: bool) -> str:
    """Return the content type of a dialect's replies."""
    return CONTENT_TYPES.get(dialect, "text/event-stream") if stream else "application/json"


def reply(
    dialect: str, chunks: Sequence[bytes], *, stream: bool, status: int = 200, headers: Mapping[str, str] | None = None
) -> FakeReply:
    """Return a reply of a provider."""
    return FakeReply(
        status=status,
        headers={"content-type": content_type(dialect, stream=stream), **(headers or {})},
        chunks=list(chunks),
    )
