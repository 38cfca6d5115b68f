"""The other ends for `long_bodies.py`, each a process of its own: an upstream of wide replies, or a client that always asks for health."""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

MILLION = 1_000_000
_PIECE = (
    b'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word "}}]}\n\n' * 500
)


def _fields() -> dict[str, str]:
    return {f"key{place}": "value" for place in range(MILLION)}


def _chat(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hi.", **message}, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **fields}


def _message(content: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    return {**head, "content": content, "usage": {"input_tokens": 1, "output_tokens": 1}, **fields}


REPLIES: dict[str, Callable[[], dict[str, Any]]] = {
    "short": lambda: _chat({}),
    "fields": lambda: _chat({}, metadata=_fields()),
    "arguments": lambda: _chat(
        {"tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": json.dumps(_fields())}}]}
    ),
    "text": lambda: _chat({"content": "some words \n" * 2_000_000}),
    "input": lambda: _message([{"type": "tool_use", "id": "t", "name": "f", "input": _fields()}]),
    "parts": lambda: {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}],
        "usageMetadata": {"x": _fields()},
    },
}
"""Whole replies by the names of the models that give them."""


class _Upstream(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    made: ClassVar[dict[str, bytes]] = {}

    def do_POST(self) -> None:
        left, beginning = int(self.headers.get("content-length") or 0), b""
        while left:
            piece = self.rfile.read(min(left, 1 << 16))
            beginning, left = beginning or piece, left - len(piece)
        # The model stands at the beginning of a body, and for Gemini in the path.
        found = beginning[:300].decode("utf-8", "replace") + self.path
        if "endless" in found:
            self._endless()
            return
        name = next((name for name in REPLIES if f"m-{name}" in found), "short")
        body = self.made.get(name) or self.made.setdefault(name, json.dumps(REPLIES[name]()).encode())
        self._head("application/json", ("content-length", str(len(body))))
        self.wfile.write(body)

    def _endless(self) -> None:
        self._head("text/event-stream", ("connection", "close"))
        self.close_connection = True
        try:
            while True:
                self.wfile.write(_PIECE)
        except OSError:
            return  # Who asked has gone.

    def _head(self, kind: str, *headers: tuple[str, str]) -> None:
        self.send_response(200)
        for name, value in (("content-type", kind), *headers):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _serve() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Upstream)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()


def _probe(port: int) -> None:
    """Ask for health again and again; answer each line with the longest time since the last, and the 99th percentile, in ms."""
    times: list[float] = []

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while True:
            began = time.perf_counter()
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            times.append(time.perf_counter() - began)

    threading.Thread(target=ask, daemon=True).start()
    for _ in sys.stdin:
        taken, times[:] = sorted(times), []
        longest, late = (taken[-1], taken[len(taken) * 99 // 100]) if taken else (0.0, 0.0)
        print(f"{longest * 1000:.2f} {late * 1000:.2f}", flush=True)


if __name__ == "__main__":
    _probe(int(sys.argv[2])) if sys.argv[1] == "probe" else _serve()
