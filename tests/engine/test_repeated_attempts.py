"""An attempt that is taken over from an earlier call is the one that would be planned: over all recorded requests, in any order."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from bardo.engine.attempt import Attempt
from bardo.engine.exchange import first_attempt
from bardo.engine.repeated_attempts import CallPlan, _roles_of
from bardo.engine.route import Target
from bardo.reasoning.replay import NOTHING
from bardo.services.facts.model_facts import ModelFacts
from bardo.values.blocks import TextBlock
from bardo.values.errors import BardoError
from bardo.values.request import Message, Request
from engine.test_plan_cache import _alone, _asked, chat, target

WORDS = ("Hello.", "", " \n", "H\u00e9llo", "x" * 20_000)


def _outcome(request: Request, at: Target, facts: ModelFacts, *, may_forward: bool) -> Any:
    """Return the attempt that is planned with nothing known of other calls, or why there is none."""
    try:
        attempt = first_attempt(request, [at], knowledge=_alone(facts, at), may_forward=may_forward)
    except BardoError as problem:
        return type(problem), problem.message
    return attempt if attempt.answer is None else msgspec.structs.replace(attempt, answer=None)


def _repeated(request: Request, at: Target, facts: ModelFacts, *, may_forward: bool = True) -> Attempt | None:
    """Return the attempt of an earlier call, or plan it for the next."""
    knowledge = facts.knowledge([at])
    repeated = CallPlan(request, [at], knowledge, NOTHING, may_forward=may_forward, route=None)
    found = repeated.find()
    if found is None:
        try:
            repeated.keep(first_attempt(request, [at], knowledge=knowledge, may_forward=may_forward))
        except BardoError:
            return None
    return found


def _in_other_words(request: Request, words: str) -> Request:
    """Return the request with other words in each of its messages, and in its body."""
    messages = tuple(Message(one.role, (TextBlock(words),)) for one in request.messages)
    body = request.body
    if body is not None and isinstance(body.get("messages"), list):
        body = {**body, "messages": [{"role": one.role, "content": words} for one in messages]}
    try:
        written = b"" if body is None else msgspec.json.encode(body)
    except UnicodeEncodeError:
        body, written = None, b""
    return msgspec.structs.replace(request, messages=messages, body=body, body_bytes=written)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("may_forward", [True, False], ids=["may be forwarded", "may not"])
def test_it_is_the_attempt_that_is_planned_for_every_recorded_request_in_any_order(may_forward: bool) -> None:
    facts, found, places = ModelFacts(), 0, dict[str, Target]()
    asked = [(one, places.setdefault(str(at), at)) for one, at in _asked()]
    plain = [(one, at) for one, at in asked if _roles_of(one) is not None]
    asked += [(_in_other_words(request, words), at) for words in WORDS for request, at in plain[::5]]
    anew = [_outcome(one, at, facts, may_forward=may_forward) for one, at in asked]
    order = [*range(len(asked))]
    for arranged in (order, random.Random(7).sample(order, len(order))):
        for place in arranged:
            request, at = asked[place]
            attempt = _repeated(request, at, facts, may_forward=may_forward)
            if attempt is not None:
                assert attempt == anew[place], (request.dialect, at.provider.id, request.model)
                found += 1
    assert found > 200


def test_only_the_words_are_new_of_a_call_like_an_earlier_one() -> None:
    facts, at = ModelFacts(), target("deepseek", "deepseek-chat")
    first = chat(model="deepseek-chat")
    assert _repeated(first, at, facts) is None
    other = chat(model="deepseek-chat", messages=[{"role": "user", "content": "Something else."}])
    attempt = _repeated(other, at, facts)
    assert attempt is not None
    assert attempt.wire.body == other.body_bytes
    assert attempt.request is other


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [{"role": "developer", "content": "Be brief."}]},
        {"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]},
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"response_format": {"type": "json_object"}},
        {"max_completion_tokens": 5},
        {"seed": 1},
        {"stream": True},
    ],
    ids=lambda fields: ", ".join(fields),
)
def test_another_kind_of_call_is_planned(fields: dict[str, Any]) -> None:
    facts, at = ModelFacts(), target("deepseek", "m")
    _repeated(chat(), at, facts)
    assert _repeated(chat(**fields), at, facts) is None


def test_what_was_learned_since_is_heeded() -> None:
    facts, at = ModelFacts(), target("deepseek", "m")
    _repeated(chat(), at, facts)
    assert _repeated(chat(), at, facts) is not None
    facts.learn_start(at, False, "separated")
    assert _repeated(chat(), at, facts) is None
    assert _repeated(chat(), at, facts) is not None


def test_another_target_of_the_same_name_is_planned_for() -> None:
    facts, at = ModelFacts(), target("deepseek", "m")
    _repeated(chat(), at, facts)
    changed = msgspec.structs.replace(at, provider=msgspec.structs.replace(at.provider, base_url="http://other/"))
    assert _repeated(chat(), changed, facts) is None
