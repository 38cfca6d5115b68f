"""No secret of an operator or of a client is in anything that bardo writes: replies, output, logs, databases, journals.

A real gateway is served, its providers repeat the keys that they were sent in every way they can, and all that was written is searched.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from support.patience import PATIENCE
from surfaces.cli.support import PROGRAM, line_with

SECRETS = {
    "FIRST_KEY": "sk-canary-first-0123456789abcdef",
    "SECOND_KEY": "sk-canary-second-fedcba9876543210",
    "TEAM_KEY": "team-canary-key-00112233445566778899",
    "TAVILY_API_KEY": "tvly-canary-a1b2c3d4e5f6a7b8c9d0",
    "WALLET_KEY": "0x" + "4c0883a69102937d6231471b5dbb6204fe512961708279feb1be6ae5538da033",
}
CONFIGURED = """
[gateway]
port = 0
[log]
content = true
path = "{folder}/log.db"
[state]
url = "{folder}/state.db"
[reasoning]
introspect = false
[search]
service = "tavily"
base_url = "{upstream}/search"
[payments]
wallet_key_env = "WALLET_KEY"
[[keys]]
id = "team"
key_env = "TEAM_KEY"
usd_per_day = 5.0
[[providers]]
id = "first"
preset = "openai-chat"
base_url = "{upstream}/v1"
api_key_env = ["FIRST_KEY", "SECOND_KEY"]
models = ["whole", "refused", "unpaid", "limited", "broken", "page", "search", "stream"]
"""


class Repeating(BaseHTTPRequestHandler):
    """A provider that repeats what it was sent, as the model asks."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        key = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        if self.path.startswith("/search"):
            self._answer(
                200, {"results": [{"url": "https://a.example", "title": key, "content": f"your key is {key}"}]}
            )
            return
        shown = f"the key {key}, in base64 {base64.b64encode(key.encode()).decode()}, was refused"
        error = {"error": {"message": shown, "type": "invalid", "code": key, "param": key}}
        statuses = {"refused": 401, "unpaid": 402, "limited": 429, "broken": 500}
        if body["model"] in statuses:
            self._answer(statuses[body["model"]], error, {"x-request-id": key, "payment-required": key})
        elif body["model"] == "page":
            self._answer(200, f"<html>{shown}</html>", kind="text/html")
        elif body.get("stream"):
            self._answer(200, f"data: {json.dumps(error)}\n\n", kind="text/event-stream")
        else:
            # What a model says is its own word, and stays as it is.
            self._answer(200, {**self._completion(body, "Hello."), "system_fingerprint": key, "x_debug": {"sent": key}})

    def _completion(self, body: dict[str, Any], shown: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": shown}
        searched = any(turn["role"] == "tool" for turn in body["messages"])
        if body["model"] == "search" and not searched:
            function = {"name": "web_search", "arguments": '{"query": "keys"}'}
            message = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}

    def _answer(
        self, status: int, value: Any, headers: dict[str, str] | None = None, kind: str = "application/json"
    ) -> None:
        raw = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        for name, field in {"content-type": kind, "content-length": str(len(raw)), **(headers or {})}.items():
            self.send_header(name, field)
        self.end_headers()
        self.wfile.write(raw)


@contextmanager
def upstream() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Repeating)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Place:
    """Where the gateway runs: what it wrote on the way is collected in `written`."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self.written: dict[str, bytes] = {}
        self.file = folder / "bardo.toml"
        self.file.write_text(CONFIGURED.format(folder=folder, upstream=address))
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
        self.environment = {**os.environ, **home, **SECRETS}

    def command(self, *arguments: str) -> str:
        """Run a command as a program, and keep what it wrote."""
        done = subprocess.run(
            [*PROGRAM, *arguments, "--config", str(self.file)],
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            env=self.environment,
            stdin=subprocess.DEVNULL,
        )
        self.written[" ".join(arguments)] = done.stdout + done.stderr
        return done.stdout.decode()

    def ask(self, address: str, path: str, body: dict[str, Any] | None, key: str) -> None:
        """Send a request, and keep what came back."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        request = urllib.request.Request(address + path, data, headers)
        name = f"{path} {body and body['model']} {body and body.get('stream')}"
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                self.written[name] = str(answer.headers).encode() + answer.read()
        except urllib.error.HTTPError as problem:
            self.written[name] = str(problem.headers).encode() + problem.read()

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield every file that is left."""
        for file in self.folder.rglob("*"):
            if file.is_file() and file != self.file:
                yield str(file.relative_to(self.folder)), file.read_bytes()


def requests() -> Iterator[tuple[str, dict[str, Any]]]:
    turns = [{"role": "user", "content": "hello"}]
    for model in ("whole", "refused", "unpaid", "limited", "broken", "page", "stream"):
        for stream in (False, True):
            yield "/v1/chat/completions", {"model": model, "messages": turns, "stream": stream}
            yield "/v1/messages", {"model": model, "messages": turns, "max_tokens": 10, "stream": stream}
    tool = {"type": "web_search_20250305", "name": "web_search"}
    yield "/v1/messages", {"model": "search", "messages": turns, "max_tokens": 10, "tools": [tool]}


def forms(secret: str) -> list[bytes]:
    """Return a secret as it may be written: as it is, in base64, as an address quotes it."""
    bare = secret.removeprefix("0x")
    in_base64 = base64.b64encode(secret.encode()).rstrip(b"=")[:-1]
    return [secret.encode(), bare.encode(), in_base64, quote(secret, safe="").encode()]


COMMANDS = (
    "doctor",
    "doctor --json",
    "explain --model first/whole --json",
    "models --json",
    "keys list --json",
    "costs --json",
    "log --json",
    "catalog show first/whole",
)


@pytest.mark.skipif(os.name != "posix", reason="the gateway is ended by a signal")
def test_nothing_that_is_written_holds_a_secret(folder: Path) -> None:
    with upstream() as address:
        place = Place(folder, address)
        made = json.loads(place.command("keys", "create", "agents", "--usd-per-day", "5", "--json"))
        key = made["key"]
        del place.written["keys create agents --usd-per-day 5 --json"]
        serving = [*PROGRAM, "serve", "--config", str(place.file)]
        with subprocess.Popen(
            serving, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=place.environment
        ) as process:
            try:
                gateway = line_with(process.stderr, "bardo listens on").split()[3]
                for number, (path, body) in enumerate(requests()):
                    place.ask(gateway, path, body, (key, SECRETS["TEAM_KEY"])[number % 2])
                place.ask(gateway, "/v1/chat/completions", {"model": "whole"}, key)
                place.ask(gateway, "/v1/models", None, f"{key}wrong")
                for path in ("/v1/bardo/usage", "/v1/bardo/health", "/v1/models"):
                    place.ask(gateway, path, None, key)
            finally:
                process.terminate()
                out, err = process.communicate(timeout=PATIENCE)
        place.written |= {"stdout": out, "stderr": err}
        for command in COMMANDS:
            assert place.command(*command.split()) or place.written[command]
    written = {**place.written, **dict(place.files())}
    assert {"log.db", "state.db"} <= written.keys()
    assert any(b"hello" in raw for name, raw in written.items() if name.startswith("log.db")), "content was to be kept"
    for name, secret in {**SECRETS, "client key": key}.items():
        holding = [where for where, raw in written.items() if any(form in raw for form in forms(secret))]
        assert not holding, f"{name} stands in {holding}"
