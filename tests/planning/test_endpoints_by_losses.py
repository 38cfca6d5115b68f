"""A body is written only for the endpoints that may lose least, and the one that is taken is that which loses least of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from bardo.catalog.endpoint_choice import loss_counts
from bardo.catalog.load import builtin
from bardo.catalog.replay import builtin_replay
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.exchange import attempts, endpoint_targets, first_attempt
from bardo.planning.knowledge import MissingEndpoint
from bardo.planning.planner import Decision, Draft, attempt_of, decide, draft_of, lost_before_writing, with_history
from bardo.planning.refusals import RefusedField
from bardo.planning.route import Provider, Target
from bardo.reasoning.replay import NOTHING, Recalled, keys_in, turns_of
from bardo.reasoning.replay.memory import CallRecord, ReplyRecord, ThinkingRecord
from bardo.services.facts.model_facts import ModelFacts
from bardo.values.blocks import Opaque, ReasoningBlock
from bardo.values.errors import BardoError, InvalidRequest, Unsupported, UpstreamRefused
from bardo.values.request import Request
from bardo.values.wire import Arrival
from recordings import folders, rows
from support import exchanges

# Each with models that think and one that does not.
CHAT, RESPONSES = "openai_chat", "openai_responses"
ROUTES = {
    "openai": ("gpt-5", "gpt-4.1"),
    "openrouter": ("anthropic/claude-sonnet-4.5", "openai/gpt-4.1"),
    "xai": ("grok-4", "grok-3"),
}
_DIALECTS = {
    "v1/messages": "anthropic_messages",
    "responses": "openai_responses",
    "v2/chat": "cohere",
    "api/chat": "ollama",
}
_DIALECTS |= {"enerateContent": "gemini", "interactions": "gemini_interactions", "converse": "bedrock_converse"}


def target(preset: str, model: str) -> Target:
    row = builtin().provider(preset)
    assert row is not None
    return Target(provider=Provider(id=preset, row=row, base_url=row.base_url), model=model)


def chat(**fields: Any) -> Request:
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": "Hello."}], **fields}
    return dialect("openai_chat").decode_request(msgspec.json.encode(body), Arrival())


def _recorded() -> Iterator[Request]:
    for name in folders():
        for one in rows(name):
            body, path = one.meta.get("request_body"), one.meta.get("api_path", "")
            spoken = next((spoken for part, spoken in _DIALECTS.items() if part in path), "openai_chat")
            if not isinstance(body, dict):
                continue
            arrival = Arrival(model=one.meta.get("model") or "m", stream=one.stream)
            try:
                yield dialect(spoken).decode_request(msgspec.json.encode(body), arrival)
            except InvalidRequest:
                continue


CALLS: list[dict[str, Any]] = [
    {"role": "user", "content": "Look."},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "seen"},
]
PICTURE = [{"type": "image_url", "image_url": {"url": "https://host/cat.png"}}]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
FIELDS: list[dict[str, Any]] = [
    {},
    {"n": 2},
    {"seed": 1, "stop": ["x"]},
    {"tools": TOOLS, "messages": CALLS},
    {"reasoning_effort": "high", "max_tokens": 3000},
    {"reasoning_effort": "none", "logit_bias": {"1": 2}},
    {"messages": [{"role": "user", "content": PICTURE}]},
    {"response_format": {"type": "json_object"}},
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("preset", ROUTES)
def test_the_endpoint_that_is_taken_loses_least_of_all_that_take_the_call(preset: str) -> None:
    facts = ModelFacts()
    for request in (*[chat(**fields) for fields in FIELDS], *_recorded()):
        for model in ROUTES[preset]:
            at = target(preset, model)
            knowledge = facts.knowledge([at])
            written: list[Attempt] = []
            for endpoint in endpoint_targets(at, request.dialect):
                try:
                    decision = decide(with_history(draft_of(request, endpoint, knowledge), NOTHING))
                    written.append(attempt_of(decision))
                except BardoError:
                    continue
                assert loss_counts(lost_before_writing(decision)) <= loss_counts(written[-1].degraded)
            try:
                taken = first_attempt(request, [at], knowledge=knowledge)
            except Unsupported:
                assert not written
                continue
            except BardoError:
                continue
            best = min(written, key=lambda one: loss_counts(one.degraded))
            assert (taken.wire, taken.degraded) == (best.wire, best.degraded), (request.dialect, model)


def _written(monkeypatch: pytest.MonkeyPatch, request: Request, at: Target) -> tuple[list[str], str]:
    """Return the dialects for which a request was written, and why one of them was taken."""
    dialects: list[str] = []

    def counting(decision: Decision) -> Attempt:
        dialects.append(decision.draft.target.provider.row.dialect)
        return attempt_of(decision)

    monkeypatch.setattr("bardo.planning.exchange.attempt_of", counting)
    choice = first_attempt(request, [at], knowledge=ModelFacts().knowledge([at])).endpoint
    return dialects, "" if choice is None else choice.why


@pytest.mark.parametrize(
    ("preset", "model", "fields", "dialects", "why"),
    [
        ("openai", "gpt-4.1", {}, [CHAT], "nothing is lost there; it is the client's own dialect"),
        ("openai", "gpt-5", {}, [RESPONSES], "openai_chat would lose reasoning"),
        ("openai", "gpt-5", {"n": 2}, [RESPONSES, CHAT], "openai_responses would lose n"),
        (
            "openai",
            "gpt-5",
            {"seed": 1, "tools": TOOLS, "messages": CALLS},
            [CHAT],
            "openai_responses would lose seed",
        ),
        (
            "openrouter",
            "anthropic/claude-sonnet-4.5",
            {"reasoning_effort": "high", "max_tokens": 3000, "tools": TOOLS, "messages": CALLS},
            [CHAT],
            "no other loses less; it is the client's own dialect",
        ),
    ],
    ids=[
        "loses-nothing",
        "other-is-known-to-lose",
        "writing-loses-more",
        "other-is-known-to-lose-more",
        "both-lose-as-much",
    ],
)
def test_nothing_is_written_for_an_endpoint_that_is_known_to_lose_no_less(
    monkeypatch: pytest.MonkeyPatch, preset: str, model: str, fields: dict[str, Any], dialects: list[str], why: str
) -> None:
    assert _written(monkeypatch, chat(**fields), target(preset, model)) == (dialects, why)


@pytest.mark.parametrize(
    ("model", "fields", "is_kept", "dialects"),
    [
        ("gpt-4.1", {}, False, [CHAT]),
        ("gpt-5", {"seed": 1}, False, [CHAT]),
        ("gpt-4.1", {}, True, [CHAT, RESPONSES]),
        ("gpt-5", {}, True, [CHAT, RESPONSES]),
    ],
    ids=["loses-nothing", "other-is-known-to-lose-more", "other-reads-it", "other-reads-it-and-loses-less"],
)
def test_earlier_thinking_is_put_back_at_the_endpoint_that_is_taken_and_not_looked_for_at_worse_ones(
    monkeypatch: pytest.MonkeyPatch, model: str, fields: dict[str, Any], is_kept: bool, dialects: list[str]
) -> None:
    at, looked = target("openai", model), list[str]()

    def put_back(draft: Draft, recalled: Recalled) -> Draft:
        looked.append(draft.target.provider.row.dialect)
        return with_history(draft, recalled)

    monkeypatch.setattr("bardo.planning.exchange.with_history", put_back)
    call = {"id": "call_bTn6IHHXk5dddgjHFA8CdHka", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    turns = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "Seen."},
    ]
    request = chat(messages=turns, **fields)
    state = Opaque("encrypted", "gAAAA" + "x" * 40, "openai-responses-v1")
    origin = builtin_replay().reader("openai", at.provider.row, model, "").origin("")
    thought = ThinkingRecord(ReasoningBlock(format="openai-responses-v1", opaque=(state,)))
    kept = ReplyRecord(origin, (thought, CallRecord(str(call["id"]))))
    keys = turns_of(request)
    recalled = Recalled(found=dict.fromkeys(keys_in(keys), kept), turns=keys) if is_kept else NOTHING
    attempt = next(attempts(request, [at], recalled=recalled))
    assert attempt.target.provider.row.dialect == dialects[-1]
    assert looked == dialects
    assert (state.data.encode() in attempt.wire.body) is is_kept


def test_what_a_refusal_or_a_kept_budget_may_change_is_not_known_before() -> None:
    at = endpoint_targets(target("openai", "gpt-5"), CHAT)[0]
    knowledge = ModelFacts().knowledge([at])
    decision = decide(draft_of(chat(), at, knowledge))
    assert [one.what for one in lost_before_writing(decision)] == ["reasoning"]
    kept = msgspec.structs.replace(decision.draft, knowledge=msgspec.structs.replace(knowledge, kept_budgets=""))
    refused = msgspec.structs.replace(decision.draft, refused_fields=(RefusedField("n"),))
    for draft in (kept, refused):
        assert lost_before_writing(msgspec.structs.replace(decision, draft=draft)) == ()


def test_an_endpoint_that_turns_out_to_be_missing_is_not_taken_again() -> None:
    facts, at = ModelFacts(), target("openai", "gpt-5")
    exchange = attempts(chat(), [at], knowledge=facts.knowledge([at]))
    first = next(exchange)
    _, (lesson,) = exchanges.answer(exchange, UpstreamRefused("", provider="openai", status=404))
    assert isinstance(lesson, MissingEndpoint)
    exchanges.learn(facts, lesson, chat())
    other = first_attempt(chat(), [at], knowledge=facts.knowledge([at], request=chat()))
    assert other.target.provider.row.dialect != first.target.provider.row.dialect
