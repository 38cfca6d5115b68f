"""What a gateway keeps of earlier calls changes nothing: it sends, answers and logs what a gateway does that has just been started.

The calls are of several conversations at once, in three dialects, to providers of three: repeated, in other words, with other fields, and
with further turns.
"""

from __future__ import annotations

import functools
import gc
import http.client
import json
import multiprocessing
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.stores.log.reader import LogReader
from bardo.server.serving import BackgroundServer
from bardo.simulators import Running
from bardo.surfaces.gateway.main import gateway_of
from support.any_model import Simulator
from support.gateway import entry
from support.patience import PATIENCE
from support.sampling import NIGHTLY

_CALLS = 120 if NIGHTLY else 30
_PROVIDERS = {
    "deepseek": ("deepseek-chat", "deepseek-reasoner"),
    "vllm": ("Qwen/Qwen3-8B",),
    "anthropic": ("claude-sonnet-4-5",),
    "gemini": ("gemini-2.5-flash",),
}
_WORDS = ("Hello.", "H\u00e9llo \u2603 \U0001f600", 'a "quoted"\\ line\nand <think>', "word " * 600, '{"a": 1}')
_HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"x-bardo-reasoning": "tags"},
    {"user-agent": "claude-cli/2.0"},
    {"anthropic-beta": "interleaved-thinking-2025-05-14"},
)
_FIELDS: tuple[dict[str, Any], ...] = (
    {"temperature": 1},
    {"stop_sequences": ["END"], "stop": ["END"]},
    {"max_tokens": 3000},
    {"reasoning_effort": "high", "thinking": {"type": "enabled", "budget_tokens": 2000}},
    {"metadata": {"user_id": "u1"}},
    {"unheard_of": 1},
)
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_TALKS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello."}]}),
    (
        "/v1/chat/completions",
        {
            "tools": [{"type": "function", "function": {"name": "weather", "parameters": _SCHEMA}}],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "And Rome?"},
                {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "I look.",
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "weather", "arguments": '{"city":"Rome"}'},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "warm"},
            ],
        },
    ),
    (
        "/v1/messages",
        {
            "max_tokens": 4000,
            "system": "Be brief.",
            "tools": [{"name": "weather", "input_schema": _SCHEMA}],
            "messages": [
                {"role": "user", "content": "And Rome?"},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome"}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "warm"}]},
            ],
        },
    ),
    ("/v1/messages", {"max_tokens": 4000, "messages": [{"role": "user", "content": "Hello."}]}),
    ("/v1/responses", {"input": [{"role": "user", "content": "Hello."}], "store": False}),
)


class _Call(NamedTuple):
    provider: str
    path: str
    body: bytes
    headers: dict[str, str]


class _Outcome(NamedTuple):
    """The reply of a call and what was sent for it, without what is made anew for each: ids and times."""

    request_id: str
    reply: tuple[int, list[tuple[str, str]], bytes]
    sent: list[tuple[str, dict[str, str], bytes]]


def _calls(chance: random.Random) -> Iterator[_Call]:
    talks = [(path, deepcopy(body), chance.choice(list(_PROVIDERS))) for path, body in _TALKS]
    while True:
        place = chance.randrange(len(talks))
        path, body, provider = talks[place]
        body = _changed(body, chance)
        if chance.random() < 0.1:
            provider = chance.choice(list(_PROVIDERS))
        if chance.random() < 0.5:
            talks[place] = path, body, provider
        model = f"{provider}/{chance.choice(_PROVIDERS[provider])}"
        asked = {**body, "model": model, "stream": chance.random() < 0.3}
        headers = chance.choice(_HEADERS) if chance.random() < 0.3 else {}
        yield _Call(provider, path, json.dumps(asked, ensure_ascii=chance.random() < 0.5).encode(), headers)


def _changed(body: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Return the body of the next request of a conversation, or the same again."""
    body = deepcopy(body)
    said: list[Any] = body.get("messages") or body["input"]
    what = chance.random()
    if what < 0.3:
        return body
    if what < 0.7 and isinstance(said[-1]["content"], str):
        said[-1]["content"] = chance.choice(_WORDS)
    elif what < 0.85:
        return {**body, **chance.choice(_FIELDS)}
    else:
        said += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": chance.choice(_WORDS)}]
    return body


@contextmanager
def _gateway(servers: Mapping[str, Running], simulators: list[Simulator], log: Path) -> Iterator[str]:
    settings = parse_settings(f"log.path = '{log}'\nreplay.store = ''\nreasoning.introspect = false")
    own = tuple(entry(one, servers[one.provider.name].base_url) for one in simulators)
    gateway = gateway_of(msgspec.structs.replace(settings, providers=own), {"BARDO_TEST_KEY": "sk-test"})
    with BackgroundServer(gateway) as server:
        yield server.address.removeprefix("http://")


def _forget() -> None:
    """Clear what functions of bardo keep of earlier calls. For a process of its own: other tests hold some of it."""
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper) and str(getattr(one, "__module__", "")).startswith("bardo."):
            one.cache_clear()


def _asked(address: str, call: _Call, servers: Mapping[str, Running]) -> _Outcome:
    arrived = servers[call.provider].requests
    before = len(arrived)
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    with closing(connection):
        connection.request("POST", call.path, call.body, {"content-type": "application/json", **call.headers})
        reply = connection.getresponse()
        body = reply.read()
    headers = [(name.lower(), _same(value.encode()).decode()) for name, value in reply.getheaders()]
    kept = [(name, value) for name, value in headers if name not in _MADE_HEADERS]
    sent = [(one.path, _same_headers(one.headers), _same(one.raw)) for one in arrived[before:] if one.method == "POST"]
    return _Outcome(reply.headers["x-request-id"], (reply.status, kept, _same(body)), sent)


_MADE_HEADERS = ("date", "x-request-id", "request-id", "x-bardo-request-id", "content-length")


def _same_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in ("host", "content-length")}


def _same(text: bytes) -> bytes:
    """Return a text with the same ids, times and estimates of the prompt in it, whenever it was made."""
    text = re.sub(rb'"(created|created_at|completed_at|input_tokens)": ?[0-9.]+', rb'"\1":0', text)
    text = re.sub(rb'"(data|signature|encrypted_content|thoughtSignature)":"[^"]*"', rb'"\1":""', text)
    names: dict[bytes, bytes] = {}
    return re.sub(rb'(?<=[iI]d":")[^"]+', lambda found: names.setdefault(found[0], b"%d" % len(names)), text)


def _rows(log: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a log by their requests, without what tells when and where the call was."""
    with closing(LogReader(log)) as reader:
        rows = reader.recent(10 * _CALLS)
    return {
        row.request_id: {name: value for name, value in _fields(row) if not _MADE_FIELDS.search(name)} for row in rows
    }


_MADE_FIELDS = re.compile(r"^id$|_id$|_at$|_ms$|seconds|latency|attempt_records|digest|conversation|input_tokens")


def _fields(row: Any) -> list[tuple[str, Any]]:
    return [(name, repr(value)) for name, value in msgspec.structs.asdict(row).items()]


# Some minutes on a machine that does much else.
@pytest.mark.timeout(1200)
def test_a_gateway_that_has_seen_many_calls_does_what_a_new_one_does(tmp_path: Path) -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        process.submit(_compare, tmp_path).result()


def _compare(folder: Path) -> None:
    calls = list(islice(_calls(random.Random(4)), _CALLS))
    simulators = [Simulator(name) for name in _PROVIDERS]
    old, new = list[_Outcome](), list[_Outcome]()
    with ExitStack() as stack:
        servers = {one.provider.name: stack.enter_context(one.running()) for one in simulators}
        with _gateway(servers, simulators, folder / "old.db") as address:
            old += [_asked(address, call, servers) for call in calls]
        for call in calls:
            _forget()
            with _gateway(servers, simulators, folder / "new.db") as address:
                new.append(_asked(address, call, servers))
    old_rows, new_rows = _rows(folder / "old.db"), _rows(folder / "new.db")
    assert len(old_rows) == len(new_rows) == _CALLS
    for call, before, anew in zip(calls, old, new, strict=True):
        assert before.reply == anew.reply, (call, before.reply, anew.reply)
        assert before.sent == anew.sent, (call, before.sent, anew.sent)
        assert old_rows[before.request_id] == new_rows[anew.request_id], call
    assert Counter(one.reply[0] for one in new)[200] > _CALLS / 3
