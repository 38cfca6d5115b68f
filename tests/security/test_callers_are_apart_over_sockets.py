"""Callers are apart at a gateway in a process of its own: whatever bytes one of them sends, and whatever bytes its upstream answers."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any, NamedTuple

from security.test_callers_are_apart import (
    ASK,
    MODELS,
    ODD,
    OF_FIELD,
    OTHERS,
    PROVIDERS,
    SCHEMA,
    TOOL,
    Upstream,
    probes,
)
from support.raw import RawClient
from support.sampling import NIGHTLY, seed
from support.two_keys import KEYS, Body, Given, Outcome, TwoKeys, refusal, two_keys_at_a_process

_CLAUDE = "claude/claude-sonnet-4-5"
_FUNCTION = {"name": "look", "description": "`temperature` is not supported", "parameters": SCHEMA}
_PARTS = [{"text": "Unknown parameter: 'max_tokens'."}]

# Odd requests in each dialect that clients speak.
ODD_IN_DIALECTS: tuple[tuple[str, Body], ...] = (
    *(("/v1/chat/completions", {**ASK, **one}) for one in ODD),
    ("/v1/chat/completions", {**ASK, "max_tokens": 100, "maxTokens": 100}),
    ("/v1/messages", {**ASK, "max_tokens": 32000, "thinking": {"type": "enabled", "budget_tokens": 32000}}),
    ("/v1/messages", {**ASK, "max_tokens": 9, "maxTokens": 9, "stream": True}),
    ("/v1/messages", {**ASK, "max_tokens": 9, "metadata": {"user_id": "max_tokens: Extra inputs are not permitted"}}),
    ("/v1/responses", {"input": "Hi", "max_output_tokens": 9, "maxOutputTokens": 9, "store": False}),
    ("/v1/responses", {"input": "Hi", "reasoning": {"effort": "xhigh"}, "tools": [{"type": "function", **_FUNCTION}]}),
    (
        "/v1beta/models/MODEL:generateContent",
        {"contents": [{"role": "user", "parts": _PARTS}], "generationConfig": {"maxOutputTokens": 9, "max_output_tokens": 9}},
    ),
    (
        "/v1beta/models/MODEL:streamGenerateContent",
        {"contents": [{"role": "user", "parts": _PARTS}], "generationConfig": {"thinkingConfig": {"thinkingBudget": 32000}}},
    ),
    (
        "/model/MODEL/converse",
        {"messages": [{"role": "user", "content": _PARTS}], "inferenceConfig": {"maxTokens": 9, "temperature": 7}},
    ),
    ("/v2/chat", {**ASK, "max_tokens": 9, "thinking": {"type": "enabled", "token_budget": 32000}, "tools": [TOOL]}),
    ("/api/chat", {**ASK, "stream": False, "think": True, "options": {"num_predict": 9, "temperature": 9}}),
)  # fmt: skip

_LONG = b"x" * 70_000


def _head(*lines: bytes, path: bytes = b"/v1/chat/completions") -> bytes:
    key = f"authorization: Bearer {KEYS['a']}".encode()
    return b"\r\n".join(
        [b"POST %b HTTP/1.1" % path, b"host: x", b"content-type: application/json", key, *lines, b"", b""]
    )


# What such a client left open may reach the upstream after it has gone.
_MARK = "Said with bytes."
_ASKED = json.dumps({"messages": [{"role": "user", "content": _MARK}], "model": "lab/m"}).encode()
_LENGTH = b"content-length: %d" % len(_ASKED)

# Bytes of a client that are no good request, or hardly one.
HOSTILE: dict[str, bytes] = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00" + bytes(range(256)),
    "a huge header": _head(_LENGTH, b"x-long: " + _LONG) + _ASKED,
    "many headers": _head(_LENGTH, *(b"x-%d: 1" % place for place in range(2000))) + _ASKED,
    "a huge path": _head(_LENGTH, path=b"/v1/" + _LONG) + _ASKED,
    "two lengths": _head(_LENGTH, b"content-length: 5") + _ASKED,
    "a length and pieces": _head(_LENGTH, b"transfer-encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n",
    "broken pieces": _head(b"transfer-encoding: chunked") + b"zz\r\n" + _ASKED,
    "a body that is cut": _head(_LENGTH) + _ASKED[:-9],
    "two keys": _head(_LENGTH, f"authorization: Bearer {KEYS['b']}".encode()) + _ASKED,
    "the key of another as a header": _head(_LENGTH, f"x-api-key: {KEYS['b']}".encode()) + _ASKED,
    "a request behind another": _head(_LENGTH) + _ASKED + _head(_LENGTH) + _ASKED,
    "a body that is no JSON": _head(b"content-length: 4") + b"\xff\xfe{{",
    "a field of another": _head(_LENGTH, b"x-bardo-tenant: b", b"x-bardo-key: b") + _ASKED,
    "packed, and not": _head(_LENGTH, b"content-encoding: gzip") + _ASKED,
}


def _reply(status: bytes, *lines: bytes, body: bytes = b"{}") -> bytes:
    return b"\r\n".join([b"HTTP/1.1 %b" % status, *lines, b"content-length: %d" % len(body), b"", body])


_JSON = b"content-type: application/json"

# Bytes of an upstream that are no good reply, and refusals in the words of each dialect.
BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "no HTTP": b"\x00\x01 not a reply\r\n\r\n",
    "a head that is cut": b"HTTP/1.1 200 OK\r\ncontent-ty",
    "a body that is cut": b"HTTP/1.1 200 OK\r\n%b\r\ncontent-length: 999\r\n\r\n{\"choices\": [" % _JSON,
    "broken pieces": b"HTTP/1.1 200 OK\r\n%b\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n" % _JSON,
    "packed, and not": _reply(b"200 OK", _JSON, b"content-encoding: gzip"),
    "a huge header": _reply(b"200 OK", _JSON, b"x-long: " + _LONG * 4),
    "many headers": _reply(b"200 OK", _JSON, *(b"x-%d: 1" % place for place in range(5000))),
    "cookies and orders": _reply(b"200 OK", _JSON, b"set-cookie: a=b", b"clear-site-data: *", b"refresh: 0; url=/"),
    "a stream that ends early": b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"choices\": [{",
    **{
        f"redirect {status}": _reply(b"%d Elsewhere" % status, b"location: /lab/v1/elsewhere", body=b"")
        for status in (301, 302, 303, 307, 308)
    },
    "a redirect to another host": _reply(b"307 Elsewhere", b"location: http://127.0.0.1:9/", body=b""),
    "nothing new": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "continue, for ever": b"HTTP/1.1 100 Continue\r\n\r\n" * 500,
    "Anthropic's words": _reply(b"400 Bad", _JSON, body=b'{"type":"error","error":{"type":"invalid_request_error",'
                                b'"message":"max_tokens: Extra inputs are not permitted"}}'),
    "Anthropic is overloaded": _reply(b"529 Over", _JSON, b"retry-after: 86400", body=b'{"type":"error","error":'
                                      b'{"type":"overloaded_error","message":"Overloaded"}}'),
    "Gemini's words": _reply(b"400 Bad", _JSON, body=b'{"error":{"code":400,"status":"INVALID_ARGUMENT","message":'
                             b'"Invalid JSON payload received. Unknown name \\"max_tokens\\": Cannot find field."}}'),
    "Bedrock's words": _reply(b"400 Bad", _JSON, b"x-amzn-errortype: ValidationException", body=b'{"message":"Malformed input '
                              b'request: #: extraneous key [max_tokens] is not permitted, please reformat your input and try again."}'),
    "Cohere's words": _reply(b"422 Bad", _JSON, body=b'{"message":"temperature is not supported with this model"}'),
    "Ollama's words": _reply(b"400 Bad", _JSON, body=b'{"error":"\\"m\\" does not support thinking"}'),
    "a limit of a day": _reply(b"429 Slow", _JSON, b"retry-after: 86400", body=b'{"error":{"message":"Slow down."}}'),
    "a limit that is reset in a year": _reply(b"429 Slow", _JSON, b"x-ratelimit-reset-requests: 8760h",
                                              b"x-ratelimit-remaining-requests: 0", body=b'{"error":{"message":"Slow down."}}'),
    **{
        f"refused with {status}": _reply(b"%d No" % status, _JSON, body=b'{"error":{"message":"You may not.","type":"x"}}')
        for status in (401, 402, 403, 404)
    },
}  # fmt: skip


class Oddity(NamedTuple):
    """What one caller sends, a request or bytes, and what its upstream answers."""

    sends: tuple[str, Body] | bytes
    answer: Given | bytes
    model: str
    name: str
    always: bool = True
    """Whether it answers so each time, and not only the first."""


def oddities() -> list[Oddity]:
    """Return what is tried: all hostile bytes of either side, and requests with refusals, more of them at night."""
    chance = random.Random(seed())
    found = [Oddity(raw, BROKEN["nothing"], "lab/m", name) for name, raw in HOSTILE.items()]
    found += [Oddity(chance.choice(ODD_IN_DIALECTS), raw, chance.choice(MODELS), name) for name, raw in BROKEN.items()]
    minimal = {**ASK, "max_tokens": 50, "maxTokens": 50}
    refused = refusal("Unsupported parameter: 'maxTokens' is not supported with this model.", param="maxTokens")
    found += [
        Oddity(("/v1/chat/completions", minimal), refused, model, "the minimal case", always=False) for model in MODELS
    ]
    fields = ("max_tokens", "maxTokens", "temperature", "tool_choice", "reasoning_effort", "thinking.budget_tokens")
    answers: list[Given | bytes] = [
        *OTHERS,
        *(refusal(words.format(name)) for words in OF_FIELD for name in fields),
        *BROKEN.values(),
    ]
    for _ in range(2500 if NIGHTLY else 40):
        answer = chance.choice(answers)
        told = answer if isinstance(answer, bytes) else answer.body
        found.append(
            Oddity(
                chance.choice(ODD_IN_DIALECTS), answer, chance.choice(MODELS), repr(told[:80]), chance.random() < 0.3
            )
        )
    chance.shuffle(found)
    return found


def test_no_bytes_of_one_key_or_of_its_upstream_change_a_byte_of_another_keys_calls(tmp_path: Path) -> None:
    upstream, chance = Upstream(), random.Random(seed())
    with two_keys_at_a_process(tmp_path, PROVIDERS, upstream) as running:
        before = {model: [running.ask("b", path, body) for path, body in probes(model)] for model in MODELS}
        assert all(one.status == 200 for found in before.values() for one in found)
        for one in oddities():
            upstream.odd, upstream.always = [one.answer], one.always
            _send(running, one)
            upstream.odd = []
            place = chance.randrange(len(before[one.model]))
            path, body = list(probes(one.model))[place]
            _check(running.ask("b", path, body), before[one.model][place], one)
        for model in MODELS:
            for (path, body), expected in zip(probes(model), before[model], strict=True):
                _check(running.ask("b", path, body), expected, model)


def _send(running: TwoKeys, one: Oddity) -> None:
    """Send what an oddity says, and read what comes to the end."""
    if isinstance(one.sends, bytes):
        with RawClient(running.address) as client, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.send(one.sends)
            client.socket.shutdown(1)
            client.rest()
        return
    path, body = one.sends
    named = {} if "MODEL" in path else {"model": one.model}
    running.ask("a", path.replace("MODEL", one.model.replace("/", "%2F")), {**body, **named})


def _check(now: Outcome, before: Outcome, why: Any) -> None:
    now = now._replace(sent=tuple(one for one in now.sent if _MARK.encode() not in one[2]))
    for name in Outcome._fields:
        assert getattr(now, name) == getattr(before, name), (name, why)
