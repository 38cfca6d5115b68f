"""How a Chat reply with calls ends: with stop only where a function was forced by its name, as OpenAI's does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bardo.adapters.net.client import HttpTransport
from bardo.operators.conform.checked_server import CheckedServer
from bardo.operators.conform.checks import WIRES, Checker, CheckOptions

CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}


class _Server(BaseHTTPRequestHandler):
    """Answers with a call while a tool has no result; `ends` has the finish reasons of forced and of other calls."""

    ends: tuple[str, str]

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        except ValueError:
            self.send_error(400)
            return
        asked = [one["function"]["name"] for one in body.get("tools", ())]
        is_answered = any(message["role"] == "tool" for message in body["messages"] if isinstance(message, dict))
        message: dict[str, Any] = {"role": "assistant", "content": "18 degrees"}
        finish = "stop"
        if asked and not is_answered:
            call = {**CALL, "function": {**CALL["function"], "name": asked[0]}}  # type: ignore[dict-item]
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            finish = self.ends[body["tool_choice"] == "auto"]
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "x", "created": 1, "model": "m", "usage": usage}
        whole = {
            **head,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        }
        answer = json.dumps(whole).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    handler = type("Handler", (_Server,), {"ends": request.param})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("address", "loop"),
    [
        (("stop", "tool_calls"), "kept"),
        (("tool_calls", "tool_calls"), "kept"),
        (("tool_calls", "stop"), "broken"),
        (("length", "length"), "kept"),
        (("content_filter", "tool_calls"), "kept"),
    ],
    indirect=["address"],
)
def test_only_a_forced_call_may_end_with_stop(address: str, loop: str, request: pytest.FixtureRequest) -> None:
    async def statuses() -> dict[str, str]:
        transport = HttpTransport()
        wire = WIRES["openai_chat"]()
        try:
            checker = Checker(CheckedServer(transport, address, {}), wire, CheckOptions(model="m", thinks=False))
            return {one.law: one.status async for one in checker.findings(("tools",))}
        finally:
            await transport.close()

    found = asyncio.run(statuses())
    assert found["tools.loop"] == loop, found
    is_filtered = "content_filter" in request.node.callspec.params["address"]
    assert found["tools.whole"] == ("broken" if is_filtered else "kept")
