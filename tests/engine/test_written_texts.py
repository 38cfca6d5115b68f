"""Texts that are written into a kept body give the body that is written for them: of every provider, for clients of several dialects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.engine.written_texts import written_texts
from bardo.services.facts.model_facts import ModelFacts
from bardo.values.request import Request
from bardo.values.wire import Arrival, WireRequest
from engine.test_plan_cache import chat, target
from engine.test_repeated_attempts import _outcome, _repeated

WORDS = (
    "Hello.",
    "x",
    " \n",
    " padded\t\n",
    'He said "no" \\ and </a> & left.',
    "\u00e9\u2028\x00\x1f\U0001f600",
    "<think>hm</think> 4",
    '{"a": [1]}',
    "data:image/png;base64,AAAA",
    "0: <a",
    "long " * 6000,
)
TURNS: dict[str, list[str]] = {
    "a question": ["user"],
    "a prompt": ["system", "user"],
    "two questions": ["user", "user"],
    "two prompts": ["system", "system", "user"],
    "a late prompt": ["user", "system", "user"],
}


def _asked(client: str, roles: list[str], words: list[str]) -> Request:
    """Return the request of a client of a dialect, with a text in each role."""
    turns = [{"role": role, "content": said} for role, said in zip(roles, words, strict=True)]
    arrival = Arrival(model="m", stream=False)
    body: dict[str, Any] = {"model": "m", "max_tokens": 9, "temperature": 0.5, "messages": turns}
    match client:
        case "anthropic_messages":
            body |= {"messages": [turn for turn in turns if turn["role"] == "user"]}
            body |= {"system": turns[0]["content"]} if roles[0] == "system" else {}
        case "openai_responses":
            body = {"model": "m", "input": turns, "store": False}
        case "gemini":
            body = {"contents": [{"role": "user", "parts": [{"text": one["content"]}]} for one in turns]}
    return dialect(client).decode_request(msgspec.json.encode(body), arrival)


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages", "openai_responses", "gemini"])
def test_it_is_the_body_that_is_written_anew_for_every_provider(client: str) -> None:
    found = 0
    for row in builtin().providers:
        at, facts = target(row.id, "m"), ModelFacts()
        for roles in TURNS.values():
            for place, said in enumerate(WORDS):
                others = [WORDS[(place * 5 + more) % len(WORDS)] for more in range(1, len(roles))]
                request = _asked(client, roles, [said, *others])
                attempt = _repeated(request, at, facts)
                if attempt is not None:
                    assert attempt == _outcome(request, at, facts, may_forward=True), (row.id, roles, said)
                    found += 1
    assert found > 700


def test_a_body_of_another_form_is_written_in_its_own() -> None:
    facts, at = ModelFacts(), target("vllm", "m")
    forms: list[dict[str, Any]] = [
        {"messages": [{"role": "user", "content": "a"}]},
        {"messages": [{"content": "a", "role": "user"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]},
        {"messages": [{"role": "developer", "content": "a"}]},
        {"messages": [{"role": "user", "content": "a"}], "stream_options": {"include_usage": True, "x": 1}},
        {"messages": [{"role": "user", "content": "a"}], "stream_options": {"x": 1, "include_usage": True}},
        {"messages": [{"role": "user", "content": "a"}], "stop": ["b"]},
        {"messages": [{"role": "user", "content": "a"}], "metadata": {"a": {"b": 1, "c": 2}}},
        {"messages": [{"role": "user", "content": "a"}], "metadata": {"a": {"c": 2, "b": 1}}},
    ]
    found = 0
    for fields in [*forms, *reversed(forms), *forms]:
        request = chat(**fields)
        attempt = _repeated(request, at, facts, may_forward=False)
        if attempt is not None:
            assert attempt == _outcome(request, at, facts, may_forward=False), fields
            found += 1
    assert found > 8


def test_a_dialect_that_trims_or_joins_texts_has_no_kept_body() -> None:
    request = chat(messages=[{"role": "system", "content": "a"}, {"role": "user", "content": "b"}])

    def write(one: Request, *, joint: str, trims: bool) -> WireRequest:
        texts = [message.text.strip() if trims else message.text for message in one.messages]
        return WireRequest(path="", body=msgspec.json.encode({"text": joint.join(texts) if joint else texts}))

    for joint, trims in (("\n", False), ("", True)):
        wire = write(request, joint=joint, trims=trims)
        assert written_texts(request, wire, lambda one, j=joint, t=trims: write(one, joint=j, trims=t)) is None  # type: ignore[misc]
    kept = written_texts(request, write(request, joint="", trims=False), lambda one: write(one, joint="", trims=False))
    assert kept is not None
    assert kept.body(request) == b'{"text":["a","b"]}'


def test_a_field_of_a_client_that_is_called_as_messages_of_others_is_none() -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "a"}]}], "messages": [1]}
    request = dialect("gemini").decode_request(msgspec.json.encode(body), Arrival(model="m", stream=False))
    facts, at = ModelFacts(), target("vllm", "m")
    assert _repeated(request, at, facts) is None
    assert _repeated(request, at, facts) == _outcome(request, at, facts, may_forward=True)
