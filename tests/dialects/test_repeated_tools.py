"""Tools that came before are found by their bytes: what is read of a request and what is sent for it is as if none were kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.dialects.shared import repeated_items, repeated_tools
from bardo.dialects.shared.json_values import decode_object
from bardo.dialects.shared.repeated_items import RepeatedItems
from bardo.dialects.shared.repeated_tools import MOST_BYTES, MOST_BYTES_KEPT, REPEATED_TOOLS, RepeatedTools
from bardo.values.errors import BardoError, InvalidRequest
from bardo.values.request import Request, Tool
from bardo.values.wire import Arrival
from dialects.test_same_bytes import BODIES
from recordings import folders, rows

PROVIDERS = ("deepseek", "vllm", "openai-responses", "anthropic", "gemini", "cohere", "ollama", "bedrock")
DIALECTS = {"v1/messages": "anthropic_messages", "responses": "openai_responses", "enerateContent": "gemini"}


def _bodies() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the dialect, the model and the body of requests with tools, each kind of tools once."""
    seen = set[tuple[str, bytes]]()
    for name, body in BODIES.items():
        yield name, "m", body
    for folder in folders():
        for one in rows(folder):
            asked, path = one.meta.get("request_body"), one.meta.get("api_path", "")
            if isinstance(asked, dict) and asked.get("tools"):
                name = next((name for part, name in DIALECTS.items() if part in path), "openai_chat")
                key = name, msgspec.json.encode(asked["tools"])
                if key not in seen:
                    seen.add(key)
                    yield name, one.meta.get("model") or "m", asked


def _outcome(name: str, model: str, raw: bytes) -> tuple[Any, ...]:
    """Return the request, and what is sent for it to providers of all dialects."""
    try:
        request = dialect(name).decode_request(raw, Arrival(model=model))
    except InvalidRequest as problem:
        return (problem.message,)
    return request, *(_sent(request, provider) for provider in PROVIDERS)


def _sent(request: Request, provider: str) -> Any:
    row = builtin().provider(provider)
    assert row is not None
    plain = request if request.dialect == row.dialect else dialect(request.dialect).as_functions(request)
    try:
        return dialect(row.dialect).encode_request(plain, row)
    except BardoError as problem:
        return problem.message


def test_what_is_read_and_sent_is_as_if_no_tools_were_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [*_bodies()]
    raw = [msgspec.json.encode(body) for _, _, body in bodies]
    monkeypatch.setattr(repeated_tools, "LEAST_BYTES", 1 << 40)
    anew = [_outcome(name, model, one) for (name, model, _), one in zip(bodies, raw, strict=True)]
    monkeypatch.setattr(repeated_tools, "LEAST_BYTES", 1)
    monkeypatch.setattr(repeated_items, "LEAST_BYTES", 1)
    shared = 0
    for _ in range(2):
        for (name, model, _), one, expected in zip(bodies, raw, anew, strict=True):
            assert _outcome(name, model, one) == expected, (name, model)
            shared += decode_object(one).get("tools") is decode_object(one).get("tools")
    assert shared >= len(bodies)


TOOLS = [{"type": "function", "function": {"name": f"f{place}", "description": "d" * 200}} for place in range(8)]
FIELD = f'"tools": {json.dumps(TOOLS)}'


@pytest.mark.parametrize(
    "body",
    [
        f'{{"model": "m", {FIELD}}}',
        f'{{{FIELD}, "model": "m"}}',
        f'{{"inner": {{{FIELD}}}}}',
        f'{{"inner": {{{FIELD}}}, "tools": 1}}',
        f'{{"inner": {{{FIELD}}}, {FIELD}}}',
        f"{{{FIELD}, {FIELD}}}",
        f'{{{FIELD}, "tools": []}}',
        f'{{"tools": [], {FIELD}}}',
        f'{{"a \\{FIELD}}}',
        f'{{"a \\{FIELD}, {FIELD}}}',
        f'{{"x": "tools", {FIELD}}}',
        f'{{{FIELD.replace("true", "1")}, "text": "\\"tools\\": ["}}',
    ],
    ids=lambda body: body.replace(FIELD, "…")[:60],
)
def test_a_body_says_what_it_says(body: str) -> None:
    decode_object(f'{{"model": "m", {FIELD}}}'.encode())
    assert decode_object(body.encode()) == json.loads(body)


@pytest.mark.parametrize("rest", [", ", "]}", "x}", "}{", ", 1}", ', "deep": ' + "[" * 300 + "]" * 300 + "}"])
def test_what_is_wrong_with_a_body_is_told_of_it_as_it_came(rest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decode_object(f'{{"model": "m", {FIELD}}}'.encode())
    body = f'{{"model": "m", {FIELD}{rest}'.encode()
    with pytest.raises(InvalidRequest) as kept:
        decode_object(body)
    monkeypatch.setattr(repeated_tools, "LEAST_BYTES", 1 << 40)
    with pytest.raises(InvalidRequest) as anew:
        decode_object(body)
    assert kept.value.message == anew.value.message


def test_true_and_one_are_not_the_same_tools() -> None:
    first, second = (
        {"type": "function", "function": {"name": "f", "description": "d" * 2400, "parameters": {"const": value}}}
        for value in (True, 1)
    )
    for tool in (first, second, first):
        read = decode_object(msgspec.json.encode({"tools": [tool]}))
        assert msgspec.json.encode(read["tools"]) == msgspec.json.encode([tool])


def test_tools_that_cannot_be_read_are_refused_each_time() -> None:
    wrong = msgspec.json.encode({"model": "m", "messages": [], "tools": [*TOOLS, {"type": "function"}]})
    for _ in range(3):
        with pytest.raises(InvalidRequest, match=r"tools\[8\]"):
            dialect("openai_chat").decode_request(wrong, Arrival())


def test_what_is_lost_of_tools_is_reported_each_time() -> None:
    tools = [{**TOOLS[0], "cache_control": {"type": "ephemeral"}, "defer_loading": True}, *TOOLS[1:]]
    raw = msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": "q"}], "tools": tools})
    sent = [_sent(dialect("openai_chat").decode_request(raw, Arrival()), "cohere") for _ in range(3)]
    assert [one.what for one in sent[0].degraded] == ["cache_control", "defer_loading"]
    assert sent[0] == sent[1] == sent[2]


def _decode(kept: RepeatedTools, body: bytes) -> Any:
    return RepeatedItems(tools=kept).decode(body, msgspec.json.decode)


def test_what_is_kept_is_bounded() -> None:
    kept = RepeatedTools()
    for number in range(40):
        _decode(kept, msgspec.json.encode({"tools": [{"name": f"f{number}", "x": "y" * 100_000}]}))
        assert len(kept) <= MOST_BYTES_KEPT // 100_000
    before = len(kept)
    _decode(kept, msgspec.json.encode({"tools": [{"x": "y" * MOST_BYTES}]}))
    assert len(kept) == before <= MOST_BYTES_KEPT // 100_000


def test_tools_that_were_forgotten_are_read_again() -> None:
    kept = RepeatedTools()
    first = _decode(kept, msgspec.json.encode({"tools": [{"x": "y" * 2_100}]}))["tools"]
    read = kept.read(first, "d", lambda _: (Tool(name="f"),))
    assert kept.of(read) is not None
    for number in range(12):
        _decode(kept, msgspec.json.encode({"tools": [{"x": "y" * 100_000}, number]}))
    assert kept.of(read) is None
    assert kept.read(first, "d", lambda _: ()) == ()


def test_the_tools_of_this_process_are_shared() -> None:
    raw = msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": "q"}], "tools": TOOLS})
    first, second = (dialect("openai_chat").decode_request(raw, Arrival()) for _ in range(2))
    assert first.tools is second.tools
    assert REPEATED_TOOLS.of(first.tools) is not None
