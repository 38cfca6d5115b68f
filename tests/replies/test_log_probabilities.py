"""Log probabilities reach the client in its own dialect's form, and are asked for in the provider's."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import bardo
from bardo.dialects import dialect
from bardo.replies.translation_stages import ForeignContent, logprobs_between
from bardo.streams.stage import Chain
from bardo.values.events import BlockFields, ContentChunk, Degraded, Event, Finish, ReplyFields, ReplyStart
from bardo.values.fold import fold
from bardo.values.request import Request

CHAT, RESPONSES, GEMINI, OLLAMA = "openai_chat", "openai_responses", "gemini", "ollama"
ENTRIES = [
    {"token": "Größe", "logprob": -0.1, "bytes": [*"Größe".encode()], "top_logprobs": [
        {"token": "Größe", "logprob": -0.1, "bytes": [*"Größe".encode()]},
        {"token": "A", "logprob": -2.5, "bytes": [65]},
    ]},
    {"token": "!", "logprob": 0.0, "bytes": [33], "top_logprobs": []},
]  # fmt: skip
CANDIDATES = {
    "topCandidates": [
        {"candidates": [{"token": "Größe", "logProbability": -0.1}, {"token": "A", "logProbability": -2.5}]},
        {"candidates": []},
    ],
    "chosenCandidates": [{"token": "Größe", "logProbability": -0.1}, {"token": "!", "logProbability": 0.0}],
}
GIVEN: dict[str, Event] = {
    CHAT: ReplyFields(CHAT, {"logprobs.content": ENTRIES}, 0),
    RESPONSES: BlockFields(1, RESPONSES, {"logprobs": ENTRIES}),
    GEMINI: ReplyFields(GEMINI, {"logprobsResult": CANDIDATES}, 0),
    OLLAMA: ReplyFields(OLLAMA, {"logprobs": ENTRIES}),
}


def translated(source: str, client: str, *events: Event) -> list[Event]:
    chain: Chain[Event] = Chain([*logprobs_between(source, client), ForeignContent(client)])
    return [given for event in events for given in chain.feed(event)] + list(chain.finish())


@pytest.mark.parametrize("client", GIVEN)
@pytest.mark.parametrize("source", GIVEN)
def test_each_dialect_gets_them_in_its_own_form(source: str, client: str) -> None:
    text = ContentChunk(1, "Größe!")
    assert translated(source, client, text, GIVEN[source], Finish("stop")) == [text, GIVEN[client], Finish("stop")]


@pytest.mark.parametrize(
    "value",
    [[], 5, {"chosenCandidates": 3}, {"chosenCandidates": [5]}, {"chosenCandidates": [{"token": 5}]}],
    ids=str,
)
def test_what_has_another_form_is_reported_or_says_nothing(value: Any) -> None:
    given = ReplyFields(GEMINI, {"logprobsResult": value}, 0)
    found = [event.degradation.what for event in translated(GEMINI, CHAT, given) if isinstance(event, Degraded)]
    assert found == (["logprobsResult"] if value else [])


PIECES = [
    {"text": "Grö", "token_ids": [4, 5], "logprobs": [-0.1, -0.2]},
    {"text": "ße", "token_ids": [6], "logprobs": [-0.3]},
]
COHERE = "cohere"


@pytest.mark.parametrize("client", GIVEN)
def test_pieces_of_cohere_are_entries_of_other_dialects(client: str) -> None:
    text = ContentChunk(1, "Größe")
    given: list[Event] = [text, ReplyFields(COHERE, {"logprobs": PIECES}), Finish("stop")]
    found = translated(client, CHAT, *translated(COHERE, client, *given))
    [fields] = [event.fields for event in found if isinstance(event, ReplyFields)]
    entries = fields["logprobs.content"]
    assert [(one["token"], round(one["logprob"], 6)) for one in entries] == [("Grö", -0.3), ("ße", -0.3)]


@pytest.mark.parametrize("source", GIVEN)
def test_a_client_of_cohere_gets_pieces(source: str) -> None:
    found = translated(source, COHERE, ContentChunk(1, "Größe!"), GIVEN[source], Finish("stop"))
    pieces = [{"text": "Größe", "token_ids": [], "logprobs": [-0.1]}, {"text": "!", "token_ids": [], "logprobs": [0.0]}]
    assert ReplyFields(COHERE, {"logprobs": pieces}) in found


@pytest.mark.parametrize("value", [[5], [{"text": 5, "logprobs": []}], [{"text": "a", "logprobs": ["x"]}], 5], ids=str)
def test_pieces_of_another_form_are_reported(value: Any) -> None:
    found = translated(COHERE, CHAT, ReplyFields(COHERE, {"logprobs": value}))
    assert [event.degradation.what for event in found if isinstance(event, Degraded)] == ["logprobs"]


def test_they_are_asked_of_cohere_and_alternatives_are_reported() -> None:
    for source, asked in ASKED.items():
        found = bardo.explain({**asked, "model": "command-a-03-2025"}, dialect=source, provider="cohere")
        assert found.body["logprobs"] is True, source
        [lost] = found.degraded
        assert "logprobs" in f"{lost.what} {lost.asked}", source


def test_a_part_of_a_character_has_no_bytes_and_certainty_is_zero() -> None:
    given = ReplyFields(GEMINI, {"logprobsResult": {"chosenCandidates": [{"token": "\ufffd"}]}}, 0)
    entry = {"token": "\ufffd", "logprob": 0.0, "bytes": None, "top_logprobs": []}
    assert translated(GEMINI, CHAT, given) == [ReplyFields(CHAT, {"logprobs.content": [entry]}, 0)]


def test_fields_beside_them_stay_and_each_choice_has_its_own() -> None:
    given = ReplyFields(GEMINI, {"logprobsResult": CANDIDATES, "tokenCount": 3}, 1)
    found = [event for event in translated(GEMINI, OLLAMA, given) if isinstance(event, Degraded)]
    assert [event.degradation.what for event in found] == ["tokenCount"]
    pieces: list[Event] = [
        ContentChunk(0, "a"),
        ContentChunk(4, "b", choice=1),
        ReplyFields(CHAT, {"logprobs.content": ENTRIES}, 1),
    ]
    ends: list[Event] = [Finish("stop"), Finish("stop", choice=1)]
    found_at = [event for event in translated(CHAT, RESPONSES, *pieces, *ends) if isinstance(event, BlockFields)]
    assert found_at == [BlockFields(4, RESPONSES, {"logprobs": ENTRIES}, choice=1)]


@pytest.mark.parametrize("source", [CHAT, OLLAMA, GEMINI])
def test_a_whole_reply_for_a_responses_client_holds_them(source: str) -> None:
    given: list[Event] = [ReplyStart(), ContentChunk(1, "Größe!"), GIVEN[source], Finish("stop")]
    reply = fold(translated(source, RESPONSES, *given))
    written = msgspec.json.decode(dialect(RESPONSES).encode_response(reply, Request(model="m", messages=())))
    assert written["output"][0]["content"][0]["logprobs"] == ENTRIES


ASKED: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "Hi"}], "logprobs": True, "top_logprobs": 3},
    RESPONSES: {"input": "Hi", "include": ["message.output_text.logprobs"], "top_logprobs": 3},
    GEMINI: {"contents": [{"parts": [{"text": "Hi"}]}], "generationConfig": {"responseLogprobs": True, "logprobs": 3}},
}
SNAKE = {"contents": [{"parts": [{"text": "Hi"}]}], "generation_config": {"response_logprobs": True, "logprobs": 3}}


@pytest.mark.parametrize(("source", "asked"), [*ASKED.items(), (GEMINI, SNAKE)], ids=[*ASKED, "snake case"])
@pytest.mark.parametrize("provider", ["openai", "openai-chat", "gemini"])
def test_they_are_asked_for_in_the_providers_form(provider: str, source: str, asked: dict[str, Any]) -> None:
    model = "gemini-2.5-flash" if provider == "gemini" else "gpt-4.1"
    found = bardo.explain({**asked, "model": model}, dialect=source, provider=provider)
    assert found.degraded == ()
    wanted = found.body
    config = wanted.get("generationConfig") or wanted.get("generation_config") or {}
    assert 3 in (wanted.get("top_logprobs"), config.get("logprobs"))
    switched = wanted.get("logprobs") or config.get("responseLogprobs") or config.get("response_logprobs")
    assert switched or wanted["include"] == ["message.output_text.logprobs"]


@pytest.mark.parametrize("source", ASKED)
def test_models_that_refuse_them_while_they_think_do_not_get_them(source: str) -> None:
    effort: dict[str, dict[str, Any]] = {
        CHAT: {"reasoning_effort": "low"},
        RESPONSES: {"reasoning": {"effort": "low"}},
        GEMINI: {"generationConfig": {**ASKED[GEMINI]["generationConfig"], "thinkingConfig": {"thinkingLevel": "low"}}},
    }
    asked = {**ASKED[source], **effort[source], "model": "gpt-5.4"}
    found = bardo.explain(asked, dialect=source, provider="openai")
    assert {one.what for one in found.degraded} == {"logprobs", "top_logprobs"}
    assert "top_logprobs" not in found.body
    assert "message.output_text.logprobs" not in found.body.get("include", ())
