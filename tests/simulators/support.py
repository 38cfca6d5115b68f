"""Ask a simulator in its own dialect: with or without a socket, the same request."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from bardo.simulators import Incoming, Running
from bardo.simulators.delivery import Send
from bardo.simulators.exchange import read_incoming
from support.any_model import Simulator
from support.patience import PATIENCE

QUESTION = "What is 27 * 43?"
WEATHER = "What is the weather in Paris?"
SCHEMA: dict[str, object] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

OWN_PATHS = {
    "anthropic": "/messages",
    "azure": "/responses",
    "gemini_interactions": "/interactions",
    "openai_responses": "/responses",
}
# Clouds with the dialect of another preset.
LIKE = {"azure": "openai_responses", "vertex": "gemini", "vertex_anthropic": "anthropic"}

Body = dict[str, object]


def dialect_of(preset: str) -> str:
    """Give the dialect a preset speaks."""
    return Simulator(preset).provider.dialect


def headers_for(preset: str, key: str = "k") -> dict[str, str]:
    """Give the headers a client of this provider sends."""
    if preset == "anthropic":
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}
    if preset in ("gemini", "gemini_interactions"):
        return {"x-goog-api-key": key}
    return {"authorization": f"Bearer {key}"}


def path_for(preset: str, model: str, *, streamed: bool) -> str:
    """Give the path a model is asked at."""
    base = Simulator(preset).provider.base_path
    if preset in ("cohere", "ollama_native"):
        return f"{base}/chat"
    if preset in ("gemini", "vertex"):
        method = "streamGenerateContent?alt=sse" if streamed else "generateContent"
        return f"{base}/models/{model}:{method}"
    if preset == "vertex_anthropic":
        return f"{base}/models/{model}:{'streamRawPredict' if streamed else 'rawPredict'}"
    if preset == "bedrock":
        return f"/model/{quote(model, safe='')}/{'converse-stream' if streamed else 'converse'}"
    if preset == "watsonx":
        return f"{base}/text/{'generation_stream' if streamed else 'generation'}?version=2024-05-31"
    return base + OWN_PATHS.get(preset, "/chat/completions")


def body_for(
    preset: str, *, model: str = "any-model", streamed: bool = False, tools: bool = False, question: str = QUESTION
) -> Body:
    """Give a request that shows as much reasoning as the provider ever shows."""
    asked = {"role": "user", "content": question}
    if preset == "vertex_anthropic":
        body: Body = body_for("anthropic", streamed=streamed, tools=tools, question=question)
        return {"anthropic_version": "vertex-2023-10-16", **{name: body[name] for name in body if name != "model"}}
    preset = LIKE.get(preset, preset)
    if preset == "gemini":
        body = {"contents": [{"role": "user", "parts": [{"text": question}]}]}
        body["generationConfig"] = {"thinkingConfig": {"includeThoughts": True}}
        function = {"name": "weather", "description": "Tell the weather", "parameters": SCHEMA}
        return {**body, "tools": [{"functionDeclarations": [function]}]} if tools else body
    if preset == "bedrock":
        spec = {"name": "weather", "inputSchema": {"json": SCHEMA}}
        body = {"messages": [{"role": "user", "content": [{"text": question}]}]}
        return {**body, "toolConfig": {"tools": [{"toolSpec": spec}]}} if tools else body
    if preset == "watsonx":
        return {"model_id": model, "input": question}
    body = {"model": model, "stream": streamed}
    if preset == "gemini_interactions":
        body |= {"input": question, "generation_config": {"thinking_summaries": "auto"}}
        return body | ({"tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}]} if tools else {})
    if preset == "openai_responses":
        body |= {"input": question, "reasoning": {"summary": "auto"}}
        return body | ({"tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}]} if tools else {})
    if preset == "anthropic":
        body |= {"max_tokens": 4096, "messages": [asked]}
        return body | ({"tools": [{"name": "weather", "input_schema": SCHEMA}]} if tools else {})
    body |= {"messages": [asked]}
    if streamed and preset not in ("cohere", "ollama_native"):
        body["stream_options"] = {"include_usage": True}
    tool = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
    return body | ({"tools": [tool]} if tools else {})


def incoming(preset: str, body: Body, *, model: str = "any-model", streamed: bool = False) -> Incoming:
    """Give the request as the server sees it."""
    path = path_for(preset, model, streamed=streamed)
    return read_incoming("POST", path, headers_for(preset), json.dumps(body).encode())


def answered(simulator: Simulator, *, streamed: bool = False, tools: bool = False, model: str = "any-model") -> bytes:
    """Give the body of a reply, without a socket."""
    preset = simulator.provider.name
    question = WEATHER if tools else QUESTION
    body = body_for(preset, model=model, streamed=streamed, tools=tools, question=question)
    actions = simulator.actions(incoming(preset, body, model=model, streamed=streamed))
    return b"".join(action.data for action in actions if isinstance(action, Send))


def events_of(stream: bytes) -> list[tuple[str, Body]]:
    """Give the named JSON events of a stream, leaving out comments and `[DONE]`; JSON lines have no names."""
    if stream.startswith(b"{"):
        return [("", json.loads(line)) for line in stream.splitlines()]
    found: list[tuple[str, Body]] = []
    for frame in stream.replace(b"\r\n", b"\n").split(b"\n\n"):
        lines = frame.decode().split("\n")
        name = next((line[7:] for line in lines if line.startswith("event: ")), "")
        data = "".join(line[6:] for line in lines if line.startswith("data: "))
        if data and data != "[DONE]":
            found.append((name, json.loads(data)))
    return found


def post(
    server: Running,
    preset: str,
    body: object,
    *,
    streamed: bool = False,
    model: str = "any-model",
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, str], bytes]:
    """Ask over a socket; gives status, headers and body."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {**headers_for(preset), **(headers or {})}
    path = path_for(preset, model, streamed=streamed)
    return request(server, "POST", path, raw, sent)


def request(
    server: Running, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Send one request on a connection of its own."""
    connection = http.client.HTTPConnection(urlsplit(server.root).netloc, timeout=PATIENCE)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


@cache
def recordings_folder() -> Path:
    """Give the folder of real replies, or skip the test."""
    folder = Path(os.environ.get("BARDO_RECORDINGS") or Path(__file__).parents[3] / "shared" / "recordings")
    if not (folder / "index.jsonl").is_file():
        pytest.skip("no recordings here")
    return folder


@cache
def recorded(dialect: str) -> list[tuple[Body, bytes]]:
    """Give the index rows and bytes of the good replies of one folder."""
    folder = recordings_folder()
    rows = map(json.loads, (folder / "index.jsonl").read_text().splitlines())
    return [(row, (folder / row["file"]).read_bytes()) for row in rows if row["dialect"] == dialect and _is_good(row)]


def _is_good(row: Body) -> bool:
    what = row["what"]
    assert isinstance(what, list)
    return row["http_status"] == 200 and "error" not in str(row["file"]) and "error" not in what


def key_paths(value: object, path: str = "") -> Iterator[str]:
    """Give the path of every key; what is in a list has `[]` in its path."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield f"{path}.{name}"
            yield from key_paths(item, f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from key_paths(item, f"{path}[]")
