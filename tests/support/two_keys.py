"""A gateway that asks for keys, as `bardo serve` runs it, with the keys of two callers, over an upstream that answers as a test says."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from bardo.adapters.config.settings import parse_settings
from bardo.server.serving import BackgroundServer
from bardo.surfaces.gateway.main import ConfiguredGateway
from support.patience import PATIENCE, read_line

KEYS = {
    "a": "sk-of-the-caller-a-0123456789",
    "b": "sk-of-the-caller-b-0123456789",
    "operator": "sk-of-the-operator-01234567",
}
_VARIABLES = {f"KEY_OF_{name.upper()}": key for name, key in KEYS.items()} | {
    "UPSTREAM_KEY": "sk-upstream-0123456789abcdef"
}
Body = dict[str, Any]
_MADE = ("date", "x-request-id", "request-id", "x-bardo-request-id", "content-length", "x-bardo-latency-ms")


class Given(NamedTuple):
    """What the upstream answers: a status, a body as it is sent, and headers beside the content type."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class Arrived(NamedTuple):
    """One request that reached the upstream."""

    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class Outcome(NamedTuple):
    """What a client got, and what the upstream got for it, without what is made anew for each call."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    sent: tuple[tuple[str, tuple[tuple[str, str], ...], bytes], ...]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def bodies(self) -> list[Any]:
        """The bodies that the upstream got."""
        return [json.loads(raw) for _, _, raw in self.sent]


Answer = Callable[[Arrived], Given | bytes]
"""What the upstream does with a request: a reply, or the bytes that it writes before it closes the connection."""


@dataclass
class TwoKeys:
    """The running gateway. `answer` is what the upstream does with each request."""

    address: str
    gateway: ConfiguredGateway
    """It; not there where it runs in a process of its own."""
    answer: Answer
    arrived: list[Arrived] = field(default_factory=list)

    def ask(self, who: str, path: str, body: Body | bytes, headers: Mapping[str, str] | None = None) -> Outcome:
        """Send a request with the key of a caller, read the whole reply, and return it with what was sent for it."""
        before = len(self.arrived)
        status, given, text = self.call(who, "POST", path, body, headers)
        kept = tuple(sorted((name, _same(value)) for name, value in given.items() if name not in _MADE))
        sent = tuple((one.path, _same_headers(one.headers), one.raw) for one in self.arrived[before:])
        return Outcome(status, kept, _same(text.decode("utf-8", "replace")).encode(), sent)

    def call(
        self,
        who: str,
        method: str,
        path: str,
        body: Body | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request, and return status, headers and body."""
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        own = {"authorization": f"Bearer {KEYS[who]}", "content-type": "application/json", **(headers or {})}
        with closing(http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=PATIENCE)) as connection:
            connection.request(method, path, raw, own)
            reply = connection.getresponse()
            return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()


def _same(text: str) -> str:
    """Return a text with the same ids and times in it, whenever it was made."""
    text = re.sub(r'"(created|created_at|completed_at|latency_ms|cost_usd)": ?[0-9.]+', r'"\1":0', text)
    return re.sub(r"\b(chatcmpl|msg|resp|rs|req|fc|call|bardo)[-_][0-9a-zA-Z_-]{6,}", r"\1_", text)


def _same_headers(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in headers.items() if name not in ("host", "content-length")))


@contextmanager
def two_keys(folder: Path, providers: Mapping[str, str], answer: Answer, *, toml: str = "") -> Iterator[TwoKeys]:
    """Run the gateway; `providers` are presets by the ids that they get."""
    with _upstream(answer) as (upstream, held):
        settings = parse_settings(_toml(upstream, providers, toml))
        gateway = ConfiguredGateway(settings, {**_VARIABLES, "XDG_DATA_HOME": str(folder)})
        with BackgroundServer(gateway.application) as server:
            held.address, held.gateway = server.address, gateway
            yield held


@contextmanager
def two_keys_at_a_process(
    folder: Path, providers: Mapping[str, str], answer: Answer, *, toml: str = ""
) -> Iterator[TwoKeys]:
    """Run the gateway as `bardo serve` in a process of its own."""
    with _upstream(answer) as (upstream, held):
        config = folder / "bardo.toml"
        config.write_text(_toml(upstream, providers, toml), encoding="utf-8")
        with subprocess.Popen(
            [sys.executable, "-m", "bardo", "serve", "--port", "0", "--config", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **_VARIABLES, "XDG_DATA_HOME": str(folder), "XDG_STATE_HOME": str(folder)},
        ) as process:
            try:
                while "listens on " not in (line := read_line(process.stderr)):
                    assert line, "the gateway did not start"
                held.address = line.split("listens on ")[1].split()[0]
                # What it writes later would fill the pipe.
                reader = threading.Thread(target=lambda: [*(process.stderr or ())])
                reader.start()
                yield held
            finally:
                process.kill()
            reader.join()


def _toml(upstream: str, providers: Mapping[str, str], toml: str) -> str:
    tables = "".join(
        f'[[providers]]\nid = "{name}"\npreset = "{preset}"\napi_key_env = "UPSTREAM_KEY"\nbase_url = "{upstream}/{name}/v1"\n'
        for name, preset in providers.items()
    )
    keys = "".join(
        f'[[keys]]\nid = "{name}"\nkey_env = "KEY_OF_{name.upper()}"\n{"operator = true" if name == "operator" else ""}\n'
        for name in KEYS
    )
    return f"[reasoning]\nintrospect = false\n[refresh]\nhours = 0\n[failover]\nretries = 0\n{toml}\n{tables}{keys}"


@contextmanager
def _upstream(answer: Answer) -> Iterator[tuple[str, TwoKeys]]:
    held = TwoKeys("", None, answer)  # type: ignore[arg-type]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body in one write: the other side would wait 40 ms for the second.
        wbufsize = -1

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            arrived = Arrived(self.path, {name.lower(): value for name, value in self.headers.items()}, raw)
            held.arrived.append(arrived)
            given = held.answer(arrived)
            if isinstance(given, bytes):
                self.close_connection = True
                self.wfile.write(given)
                return
            self.send_response(given.status)
            for name, value in {"content-type": "application/json", **given.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(given.body)))
            self.end_headers()
            self.wfile.write(given.body)

        def do_GET(self) -> None:
            """Answer who asks for models with none, and whoever follows a redirect as a request that arrived."""
            if self.path.endswith("/models"):
                self.send_error(404)
            else:
                self.do_POST()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", held
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


CHAT = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hi."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 2},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11},
}


def well(arrived: Arrived) -> Given:
    """Answer a request of any of three dialects."""
    body = RESPONSE if arrived.path.endswith("/responses") else MESSAGE if arrived.path.endswith("/messages") else CHAT
    try:
        streamed = bool(arrived.body.get("stream"))
    except ValueError:
        streamed = False
    if not streamed:
        return Given(200, json.dumps(body).encode())
    return Given(200, _frames(body), {"content-type": "text/event-stream"})


def _frames(body: Mapping[str, Any]) -> bytes:
    if body is CHAT:
        chunk = {**CHAT, "object": "chat.completion.chunk", "usage": None}
        said = {
            **chunk,
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi."}, "finish_reason": None}],
        }
        ended = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": CHAT["usage"]}
        return b"".join(b"data: %s\n\n" % json.dumps(one).encode() for one in (said, ended)) + b"data: [DONE]\n\n"
    if body is MESSAGE:
        events: list[Body] = [
            {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"},
        ]
    else:
        events = [
            {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
            {"type": "response.completed", "response": RESPONSE},
        ]
    return b"".join(b"event: %s\ndata: %s\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in events)


def refusal(message: str, status: int = 400, **fields: Any) -> Given:
    """Return a refusal in OpenAI's form."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None, **fields}
    return Given(status, json.dumps({"error": error}).encode())
