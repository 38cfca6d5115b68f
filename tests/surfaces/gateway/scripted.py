"""A gateway over providers whose replies are written in the test: what was sent to them is kept."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bardo.adapters.config.settings import GatewaySettings, ProviderEntry, Settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.server.serving import BackgroundServer
from bardo.services.facts.directory import ProviderDirectory
from bardo.surfaces.gateway.app import Gateway
from bardo.wiring import make_services
from support.patience import PATIENCE


class Scripted:
    """Gives one scripted reply after the other. A dict is a whole reply, a list of dicts a stream of events."""

    def __init__(self) -> None:
        self.replies: list[Any] = []
        self.bodies: list[dict[str, Any]] = []
        self.address = ""

    def answer(self, call: Call) -> FakeReply:
        """Return the next reply."""
        self.bodies.append(json.loads(call.body))
        reply = self.replies.pop(0)
        if isinstance(reply, dict):
            return FakeReply(headers={"content-type": "application/json"}, chunks=(json.dumps(reply).encode(),))
        return FakeReply(headers={"content-type": "text/event-stream"}, chunks=tuple(map(_frame, reply)))

    def post(self, path: str, body: dict[str, Any], key: str = "k") -> tuple[dict[str, str], bytes]:
        """Return the headers and the body of the gateway's answer to a request."""
        headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return {name.lower(): value for name, value in answer.headers.items()}, answer.read()
        except urllib.error.HTTPError as problem:
            raise AssertionError(problem.read().decode()) from problem


def _frame(event: Any) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    named = f"event: {event['type']}\n" if "type" in event else ""
    return f"{named}data: {json.dumps(event)}\n\n".encode()


@contextmanager
def scripted(
    presets: Sequence[str], replay: ReplayKeeper | None = None, *, played: Scripted | None = None
) -> Iterator[Scripted]:
    """Run a gateway over providers of these presets."""
    played = played or Scripted()
    transport = FakeTransport(played.answer)
    keyring = Keyring({"KEY": "secret-of-a-test"})
    entries = tuple(
        ProviderEntry(id=preset, preset=preset, base_url="http://127.0.0.1:9/v1", api_key_env="KEY", models=("*",))
        for preset in presets
    )
    directory = ProviderDirectory.of(Settings(providers=entries), transport, keyring, clock=time.monotonic)
    services = make_services(directory, transport, keyring, replay=replay)
    with BackgroundServer(Gateway(services, GatewaySettings(max_body_bytes=1_000_000), stop=transport.close)) as server:
        played.address = server.address
        yield played


def chat_reply(message: dict[str, Any], *, stream: bool) -> Any:
    """Return a Chat reply of one message, whole or as a stream."""
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    if not stream:
        choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": finish}
        return {**head, "choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
    pieces: list[dict[str, Any]] = [{"role": "assistant"}]
    pieces += [{name: value} for name, value in message.items() if name != "tool_calls"]
    calls = message.get("tool_calls", ())
    pieces += [{"tool_calls": [{"index": place, **call}]} for place, call in enumerate(calls)]
    chunks = [{**head, "choices": [{"index": 0, "delta": piece, "finish_reason": None}]} for piece in pieces]
    return [*chunks, {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}, "[DONE]"]


def chat_message(body: bytes, *, stream: bool) -> dict[str, Any]:
    """Return the message that a Chat client reads in an answer."""
    if not stream:
        message: dict[str, Any] = json.loads(body)["choices"][0]["message"]
        return message
    read: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [], "reasoning_details": []}
    for line in body.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            delta = choice["delta"]
            read["content"] += delta.get("content") or ""
            read["reasoning_details"] += delta.get("reasoning_details") or []
            for call in delta.get("tool_calls") or ():
                _join(read["tool_calls"], call)
    return {name: value for name, value in read.items() if value != []}


def _join(calls: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    while len(calls) <= piece["index"]:
        calls.append({"type": "function", "function": {"name": "", "arguments": ""}})
    call, function = calls[piece["index"]], piece.get("function") or {}
    call["id"] = call.get("id") or piece.get("id")
    call["function"]["name"] += function.get("name") or ""
    call["function"]["arguments"] += function.get("arguments") or ""
