"""Ask a gateway without a library in between: one request, in any client dialect, and what came back as bytes."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from support.patience import PATIENCE

CLIENTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini")
FURTHER_CLIENTS = (
    "ollama",
    "ollama_generate",
    "bedrock_converse",
    "bedrock_invoke",
    "cohere",
    "gemini_interactions",
)
ALL_CLIENTS = (*CLIENTS, *FURTHER_CLIENTS)
QUESTION = "What is 27 * 43?"
WEATHER = "What is the weather in Paris?"
THOUGHT = "First 27 * 40 = 1080."
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@dataclass(frozen=True)
class Answer:
    """A whole answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def events(self) -> list[tuple[str, Any]]:
        """The events of a stream: name and JSON value, or the text where it is none."""
        found = []
        for frame in self.text.replace("\r\n", "\n").split("\n\n"):
            lines = frame.split("\n")
            name = next((line[7:] for line in lines if line.startswith("event: ")), "")
            data = "".join(line[6:] for line in lines if line.startswith("data: "))
            if data:
                found.append((name, json.loads(data) if data.startswith("{") else data))
        return found

    @property
    def payloads(self) -> list[Any]:
        return [payload for _, payload in self.events]


def path_for(client: str, model: str, *, stream: bool = False) -> str:
    """Return where a client asks."""
    if client == "gemini":
        return f"/v1beta/models/{model}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
    if client in _BEDROCK_OPERATIONS:
        return f"/model/{quote(unquote(model), safe='')}/{_BEDROCK_OPERATIONS[client][stream]}"
    return {
        "openai_chat": "/v1/chat/completions",
        "openai_responses": "/v1/responses",
        "anthropic_messages": "/v1/messages",
        "ollama": "/api/chat",
        "ollama_generate": "/api/generate",
        "cohere": "/v2/chat",
        "gemini_interactions": "/v1beta/interactions",
    }[client]


_BEDROCK_OPERATIONS = {
    "bedrock_converse": ("converse", "converse-stream"),
    "bedrock_invoke": ("invoke", "invoke-with-response-stream"),
}


def body_for(
    client: str,
    model: str,
    *,
    stream: bool = False,
    question: str = QUESTION,
    thinks: bool = False,
    tools: bool = False,
    **further: Any,
) -> dict[str, Any]:
    """Return what a client asks."""
    turns = [{"role": "user", "content": question}]
    body: dict[str, Any]
    match client:
        case "openai_chat":
            body = {"model": model, "messages": turns, "stream": stream}
            body |= {"reasoning_effort": "low"} if thinks else {}
            function = {"name": "weather", "parameters": SCHEMA}
            body |= {"tools": [{"type": "function", "function": function}]} if tools else {}
        case "openai_responses":
            body = {"model": model, "input": question, "stream": stream}
            body |= {"reasoning": {"effort": "low", "summary": "auto"}} if thinks else {}
            body |= {"tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}]} if tools else {}
        case "anthropic_messages":
            body = {"model": model, "messages": turns, "stream": stream, "max_tokens": 8000}
            body |= {"thinking": {"type": "enabled", "budget_tokens": 2048}} if thinks else {}
            body |= {"tools": [{"name": "weather", "input_schema": SCHEMA}]} if tools else {}
        case _ if client in FURTHER_CLIENTS:
            body = _further_body(client, model, stream=stream, question=question, thinks=thinks, tools=tools)
        case _:
            body = {"contents": [{"role": "user", "parts": [{"text": question}]}]}
            body |= {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}} if thinks else {}
            function = {"name": "weather", "parameters": SCHEMA}
            body |= {"tools": [{"functionDeclarations": [function]}]} if tools else {}
    return {**body, **further}


def _further_body(client: str, model: str, *, stream: bool, question: str, thinks: bool, tools: bool) -> dict[str, Any]:
    turns = [{"role": "user", "content": question}]
    function = {"name": "weather", "parameters": SCHEMA}
    thinking = {"type": "enabled", "budget_tokens": 2048}
    body: dict[str, Any]
    match client:
        case "ollama":
            body = {"model": model, "messages": turns, "stream": stream}
            body |= {"think": "low"} if thinks else {}
            body |= {"tools": [{"type": "function", "function": function}]} if tools else {}
        case "ollama_generate":
            assert not tools, "a completion has no tools"
            body = {"model": model, "prompt": question, "stream": stream, **({"think": "low"} if thinks else {})}
        case "cohere":
            body = {"model": model, "messages": turns, "stream": stream}
            body |= {"thinking": {"type": "enabled"}} if thinks else {}
            body |= {"tools": [{"type": "function", "function": function}]} if tools else {}
        case "gemini_interactions":
            body = {"model": model, "input": question, "stream": stream}
            config = {"thinking_level": "low", "thinking_summaries": "auto"}
            body |= {"generation_config": config} if thinks else {}
            body |= {"tools": [{"type": "function", **function}]} if tools else {}
        case "bedrock_converse":
            body = {"messages": [{"role": "user", "content": [{"text": question}]}]}
            body |= {"additionalModelRequestFields": {"thinking": thinking}} if thinks else {}
            spec = {"name": "weather", "inputSchema": {"json": SCHEMA}}
            body |= {"toolConfig": {"tools": [{"toolSpec": spec}]}} if tools else {}
        case _:
            body = {"anthropic_version": "bedrock-2023-05-31", "messages": turns, "max_tokens": 8000}
            body |= {"thinking": thinking} if thinks else {}
            body |= {"tools": [{"name": "weather", "input_schema": SCHEMA}]} if tools else {}
    return body


def ask(
    address: str,
    client: str,
    model: str,
    *,
    stream: bool = False,
    headers: Mapping[str, str] | None = None,
    **asked: Any,
) -> Answer:
    """Ask in a client's dialect."""
    body = body_for(client, model, stream=stream, **asked)
    return request(address, "POST", path_for(client, model, stream=stream), body, headers)


def request(address: str, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
    """Send one request on a connection of its own; bytes are sent as they are."""
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE)
    try:
        connection.request(method, path, raw, {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, response.read())
    finally:
        connection.close()


class Caller:
    """A client on a bare socket, which can leave whenever it likes."""

    def __init__(self, address: str, path: str, body: Any, *, key: str = "") -> None:
        parts = urlsplit(address)
        raw = json.dumps(body).encode()
        own = f"authorization: Bearer {key}\r\n" if key else ""
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n{own}content-length: {len(raw)}\r\n\r\n"
        self._socket = socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=PATIENCE)
        self._socket.sendall(head.encode() + raw)
        self.heard = bytearray()

    def hear(self, wanted: bytes) -> None:
        """Read until something has been said."""
        looked_at = 0
        while self.heard.find(wanted, looked_at) < 0:
            looked_at = max(0, len(self.heard) - len(wanted))
            piece = self._socket.recv(1 << 20)
            assert piece, "the gateway closed the connection"
            self.heard += piece

    def leave(self) -> None:
        """Hang up."""
        self._socket.close()

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()
