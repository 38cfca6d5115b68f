"""A plan that is kept by the shape of its request is the plan that would be made anew: over all recorded requests, in any order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from bardo import reuse
from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.knowledge import Knowledge
from bardo.planning.planner import plan
from bardo.planning.request_shapes import CONTENT, LONGEST_SHAPE, shape_of
from bardo.planning.route import Provider, Target
from bardo.services.facts.model_facts import ModelFacts
from bardo.values.errors import BardoError, InvalidRequest
from bardo.values.request import ReasoningPolicy, Request
from bardo.values.wire import Arrival
from recordings import Recording, folders, rows, sampled

PRESETS = ("deepseek", "vllm", "openai-chat", "openai-responses", "anthropic", "gemini", "cohere", "ollama")
_DIALECTS = {
    "v1/messages": "anthropic_messages",
    "responses": "openai_responses",
    "enerateContent": "gemini",
    "interactions": "gemini_interactions",
    "v2/chat": "cohere",
    "api/chat": "ollama",
    "converse": "bedrock_converse",
}


def target(preset: str, model: str) -> Target:
    row = builtin().provider(preset)
    assert row is not None
    return Target(provider=Provider(id=preset, row=row, base_url="http://host/v1/"), model=model)


def chat(**fields: Any) -> Request:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello."}], **fields}
    return dialect("openai_chat").decode_request(msgspec.json.encode(body), Arrival())


def _request_of(recording: Recording) -> Request | None:
    body, path = recording.meta.get("request_body"), recording.meta.get("api_path", "")
    name = next((name for part, name in _DIALECTS.items() if part in path), "openai_chat")
    if not isinstance(body, dict):
        return None
    try:
        arrival = Arrival(model=recording.meta.get("model") or "m", stream=recording.stream)
        return dialect(name).decode_request(msgspec.json.encode(body), arrival)
    except InvalidRequest:
        return None


def _asked() -> list[tuple[Request, Target]]:
    replies = sampled([one for name in folders() for one in rows(name)], 0.3, law="kept plans")
    found = [request for one in replies if (request := _request_of(one)) is not None]
    return [(request, target(preset, request.model)) for request in found for preset in PRESETS]


Outcome = tuple[Any, ...]


def _outcome(request: Request, at: Target, knowledge: Knowledge) -> Outcome:
    try:
        attempt = plan(request, at, knowledge=knowledge)
    except BardoError as problem:
        return type(problem), problem.message
    # What undoes the rewrites of a schema holds functions, which are equal to none.
    answer = attempt.answer and (attempt.answer.plan.schema, attempt.answer.plan.rewrites, attempt.answer.request)
    return msgspec.structs.replace(attempt, answer=None), answer


def test_a_kept_plan_is_the_plan_made_anew_for_every_recorded_request_in_any_order() -> None:
    asked, facts = _asked(), ModelFacts()
    assert len(asked) > 100
    anew = [_outcome(one, at, _alone(facts, at)) for one, at in asked]
    order = [*range(len(asked))]
    for arranged in (order, order[::-1], random.Random(7).sample(order, len(order))):
        for place in arranged:
            request, at = asked[place]
            kept = _outcome(request, at, facts.knowledge([at]))
            assert kept == anew[place], (request.dialect, at.provider.id, request.model)


def _alone(facts: ModelFacts, at: Target) -> Knowledge:
    """Return what is known, without any plan."""
    return Knowledge(today=facts.today(), facts=facts.knowledge([at]).facts)


@pytest.mark.usefixtures("reused")
def test_requests_that_differ_in_their_content_only_have_one_plan() -> None:
    facts, at = ModelFacts(), target("deepseek", "m")
    for words in ("one", "two", "three"):
        attempt = plan(chat(messages=[{"role": "user", "content": words}]), at, knowledge=facts.knowledge([at]))
        assert words.encode() in attempt.wire.body
    assert len(facts.knowledge([at]).plans) == 1


def test_what_was_learned_is_heeded_at_once() -> None:
    facts, at = ModelFacts(), target("vllm", "qwen3")
    before = plan(chat(), at, knowledge=facts.knowledge([at]))
    facts.learn_start(at, before.off, "separated")
    after = plan(chat(), at, knowledge=facts.knowledge([at]))
    assert (before.formats.undecided, after.formats.undecided) == (True, False)


def test_another_row_of_the_provider_makes_another_plan() -> None:
    facts, at = ModelFacts(), target("vllm", "qwen3")
    plain = plan(chat(), at, knowledge=facts.knowledge([at]))
    row = msgspec.structs.replace(at.provider.row, id="other", dialect="ollama")
    moved = msgspec.structs.replace(at, provider=msgspec.structs.replace(at.provider, row=row))
    assert plan(chat(), moved, knowledge=facts.knowledge([moved])).wire != plain.wire


def test_dictionaries_that_a_caller_changes_later_do_not_change_a_kept_plan() -> None:
    facts, at = ModelFacts(), target("deepseek", "m")
    extra = {"chat_template_kwargs": {"thinking": True}}
    request = msgspec.structs.replace(chat(), body=None, body_bytes=b"", extra=extra)
    before = plan(request, at, knowledge=facts.knowledge([at])).wire
    extra["chat_template_kwargs"]["thinking"] = False
    again = msgspec.structs.replace(request, extra={"chat_template_kwargs": {"thinking": True}})
    assert plan(again, at, knowledge=facts.knowledge([at])).wire == before


@pytest.mark.usefixtures("reused")
def test_plans_are_bounded_in_size() -> None:
    facts, at = ModelFacts(), target("deepseek", "m")
    reuse.limit(200_000)
    for number in range(100):
        plan(chat(seed=number), at, knowledge=facts.knowledge([at]))
        assert reuse.held_bytes() <= 200_000
    assert 1 < len(facts.knowledge([at]).plans) < 50
    assert shape_of(chat(user="x" * LONGEST_SHAPE)) is None
    assert shape_of(chat(seed=2**70)) is None


def _variants() -> Iterator[tuple[str, Request]]:
    plain = chat()
    yield "model", msgspec.structs.replace(plain, model="other")
    yield "tools", chat(tools=[{"type": "function", "function": {"name": "f"}}])
    yield "reasoning", msgspec.structs.replace(plain, reasoning=ReasoningPolicy(mode="off"))
    yield "stream", chat(stream=True)
    yield "a number's kind", chat(temperature=1.0)
    yield "a number", chat(temperature=1)
    yield "extra", chat(user="u")
    yield "options", chat(bardo={"include": ["receipt"]})
    yield "a form", chat(response_format={"type": "json_object"})


def test_every_field_that_is_no_content_is_part_of_the_shape() -> None:
    shapes = {name: shape_of(request) for name, request in _variants()}
    assert len({shape_of(chat()), *shapes.values()}) == len(shapes) + 1
    assert set(Request.__struct_fields__) >= CONTENT


@pytest.mark.parametrize("words", ["Hello.", "x" * 100_000])
def test_the_shape_holds_no_content(words: str) -> None:
    assert shape_of(chat(messages=[{"role": "user", "content": words}])) == shape_of(chat())
