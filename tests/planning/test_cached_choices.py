"""A call is planned at the endpoint that would be chosen anew, for the same reasons: over all recorded requests, in any order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.exchange import CachedChoices, attempts, endpoint_targets, first_attempt, kinds_of
from bardo.planning.knowledge import Knowledge, MissingEndpoint
from bardo.planning.planner import Decision, attempt_of
from bardo.planning.route import Provider, Target
from bardo.services.facts.model_facts import ModelFacts
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, InvalidRequest, UpstreamRefused
from bardo.values.request import Request
from bardo.values.wire import Arrival
from recordings import folders, rows
from support import exchanges

# Each with models that think and one that does not.
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


Outcome = tuple[Any, ...]


def _outcome(request: Request, at: Target, knowledge: Knowledge) -> Outcome:
    try:
        attempt = first_attempt(request, [at], knowledge=knowledge)
    except BardoError as problem:
        return type(problem), problem.message
    # What undoes the rewrites of a schema holds functions, which are equal to none.
    answer = attempt.answer and (attempt.answer.plan.schema, attempt.answer.plan.rewrites, attempt.answer.request)
    return msgspec.structs.replace(attempt, answer=None), answer


def _alone(facts: ModelFacts, at: Target) -> Knowledge:
    """Return what is known, without any plan."""
    return Knowledge(today=facts.today(), facts=facts.knowledge([at]).facts)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("preset", ROUTES)
def test_the_choice_is_the_one_made_anew_for_every_recorded_request_in_any_order(preset: str) -> None:
    facts = ModelFacts()
    asked = [(request, target(preset, model)) for request in _recorded() for model in ROUTES[preset]]
    if not asked:
        pytest.skip("there are no recordings here")
    anew = [_outcome(request, at, _alone(facts, at)) for request, at in asked]
    order = [*range(len(asked))]
    for arranged in (order, order[::-1], random.Random(5).sample(order, len(order))):
        for place in arranged:
            request, at = asked[place]
            assert _outcome(request, at, facts.knowledge([at])) == anew[place], (request.dialect, at.model)


class Counted:
    """Counts the attempts that are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0

        def counting(decision: Decision) -> Attempt:
            self.made += 1
            return attempt_of(decision)

        monkeypatch.setattr("bardo.planning.exchange.attempt_of", counting)


def _plans(monkeypatch: pytest.MonkeyPatch, requests: list[Request], at: Target) -> list[int]:
    """Return at how many endpoints each request was planned."""
    counted, facts, found = Counted(monkeypatch), ModelFacts(), []
    for request in requests:
        before = counted.made
        first_attempt(request, [at], knowledge=facts.knowledge([at]))
        found.append(counted.made - before)
    return found


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


@pytest.mark.parametrize(
    ("fields", "again", "plans"),
    [
        ({}, {"messages": [{"role": "user", "content": "Another."}]}, 1),
        ({"tools": TOOLS}, {"tools": TOOLS}, 1),
        ({"tools": TOOLS, "messages": CALLS}, {"tools": TOOLS, "messages": CALLS}, 1),
        ({}, {"tools": TOOLS}, 2),
        ({}, {"temperature": 0.5}, 2),
        ({}, {"messages": CALLS}, 2),
        ({"messages": [{"role": "user", "content": PICTURE}]}, {"messages": [{"role": "user", "content": PICTURE}]}, 2),
        ({}, {"response_format": {"type": "json_object"}}, 2),
    ],
)
def test_a_call_like_an_earlier_one_is_planned_at_one_endpoint(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], again: dict[str, Any], plans: int
) -> None:
    assert _plans(monkeypatch, [chat(**fields), chat(**again)], target("openai", "gpt-5")) == [2, plans]


def test_nothing_is_looked_for_where_the_first_endpoint_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Request) -> None:
        raise AssertionError

    monkeypatch.setattr("bardo.planning.exchange.kinds_of", refuse)
    assert _plans(monkeypatch, [chat(), chat()], target("openai", "gpt-4.1")) == [1, 1]


def test_an_endpoint_that_turns_out_to_be_missing_is_not_taken_again() -> None:
    facts, at = ModelFacts(), target("openai", "gpt-5")
    exchange = attempts(chat(), [at], knowledge=facts.knowledge([at]))
    first = next(exchange)
    _, (lesson,) = exchanges.answer(exchange, UpstreamRefused("", provider="openai", status=404))
    assert isinstance(lesson, MissingEndpoint)
    exchanges.learn(facts, lesson, chat())
    other = first_attempt(chat(), [at], knowledge=facts.knowledge([at], request=chat()))
    assert other.target.provider.row.dialect != first.target.provider.row.dialect


def test_a_call_that_loses_something_else_than_an_earlier_one_is_planned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    at, known = target("openai", "gpt-5"), ModelFacts()
    knowledge = known.knowledge([at])
    first_attempt(chat(), [at], knowledge=knowledge)
    kept = CachedChoices(chat(), endpoint_targets(at, "openai_chat"), knowledge, may_forward=True)
    found = kept.find()
    assert found is not None
    kept.keep(found.dialect, found.why, (Degradation("more"),))
    counted = Counted(monkeypatch)
    first_attempt(chat(), [at], knowledge=knowledge)
    assert counted.made == 3


def test_what_may_decide_by_itself_has_no_kind() -> None:
    assert kinds_of(chat()) is not None
    for fields in (
        {"messages": [{"role": "user", "content": PICTURE}]},
        {"response_format": {"type": "json_object"}},
    ):
        assert kinds_of(chat(**fields)) is None
