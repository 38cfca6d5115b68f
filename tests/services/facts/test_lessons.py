"""What a refusal taught is of one caller, has a scope, a date and an end, and ends where it turns out to be wrong."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.planning.attempt import Attempt
from bardo.planning.knowledge import Lesson, MissingEndpoint, RefusedForm, RejectedField, request_shape
from bardo.planning.planner import plan
from bardo.planning.refusals import RefusedField
from bardo.planning.route import Provider, Target
from bardo.services.facts.model_facts import ModelFacts
from bardo.values.blocks import TextBlock
from bardo.values.request import BardoOptions, Message, OutputFormat, ReasoningPolicy, Request, Tool, ToolChoice
from bardo.values.wire import WireRequest
from support import exchanges

HOUR = 3600.0
ASKED = Request(model="m", messages=(Message("user", (TextBlock("Hello."),)),))


def target(model: str = "m", preset: str = "openai-compatible", name: str = "lab") -> Target:
    row = builtin().provider(preset)
    assert row is not None
    return Target(provider=Provider(id=name, row=row, base_url="http://host/v1"), model=model)


def top_k(at: Target | None = None) -> RejectedField:
    return RejectedField(at or target(), RefusedField("top_k", "", True), "Unknown parameter: 'top_k'.")


class Known:
    """The facts of a gateway, and the time there."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.facts = ModelFacts(clock=lambda: self.now)

    def learn(self, lesson: Lesson | None = None, request: Request = ASKED, tenant: str = "a") -> None:
        exchanges.learn(self.facts, lesson or top_k(), request, tenant)

    def fields(self, request: Request = ASKED, tenant: str = "a", at: Target | None = None) -> list[str]:
        """Return what is left out of a caller's request."""
        at = at or target()
        return [one.path for one in self.facts.knowledge([at], tenant, request).of(at).refused_fields]

    def answered(self, body: dict[str, Any], at: Target | None = None, tenant: str = "a", **more: Any) -> None:
        wire = WireRequest(path="", body=msgspec.json.encode(body))
        self.facts.note_answered(Attempt(target=at or target(), wire=wire, **more), tenant, ASKED)


def test_a_lesson_holds_for_an_hour() -> None:
    known = Known()
    known.learn()
    known.now += HOUR - 1
    assert known.fields() == ["top_k"]
    known.now += 1
    assert known.fields() == []
    assert known.facts.lessons.all() == []


def test_each_proof_after_its_end_doubles_it_up_to_a_day() -> None:
    known, lasted = Known(), []
    for _ in range(7):
        known.learn()
        (lesson,) = known.facts.lessons.all()
        lasted.append((lesson.until - lesson.since) / HOUR)
        known.now = lesson.until
    assert lasted == [1, 2, 4, 8, 16, 24, 24]
    known.now += 25 * HOUR
    known.learn()
    (lesson,) = known.facts.lessons.all()
    assert lesson.until - known.now == HOUR


def test_calls_that_were_under_way_together_prove_it_once() -> None:
    known = Known()
    for _ in range(9):
        known.learn()
    (lesson,) = known.facts.lessons.all()
    assert (lesson.proofs, lesson.until - known.now) == (1, HOUR)


SCOPES: dict[str, dict[str, Any]] = {
    "another key": {"tenant": "b"},
    "another model": {"at": target("other")},
    "another provider": {"at": target(name="elsewhere")},
    "another dialect there": {"at": target(preset="anthropic")},
    "streamed": {"request": msgspec.structs.replace(ASKED, stream=True)},
    "with tools": {"request": msgspec.structs.replace(ASKED, tools=(Tool(name="t"),))},
    "with a tool choice": {"request": msgspec.structs.replace(ASKED, tool_choice=ToolChoice(mode="required"))},
    "with thinking": {"request": msgspec.structs.replace(ASKED, reasoning=ReasoningPolicy(mode="auto"))},
    "with a schema": {"request": msgspec.structs.replace(ASKED, output_format=OutputFormat(mode="json_object"))},
}


@pytest.mark.parametrize("elsewhere", SCOPES.values(), ids=SCOPES)
def test_a_lesson_holds_for_its_caller_its_endpoint_its_model_and_its_shape_alone(elsewhere: dict[str, Any]) -> None:
    known = Known()
    known.learn()
    assert known.fields(**elsewhere) == []
    assert known.fields(msgspec.structs.replace(ASKED, max_output_tokens=5)) == ["top_k"]


def test_thinking_that_is_off_is_another_shape_than_thinking_whoever_asked_for_it() -> None:
    off = ReasoningPolicy(mode="off")
    asked = {
        request_shape(msgspec.structs.replace(ASKED, reasoning=one))
        for one in (None, off, ReasoningPolicy(mode="auto"))
    }
    assert len(asked) == 3
    by_option = msgspec.structs.replace(ASKED, options=BardoOptions(reasoning=off))
    by_budget = msgspec.structs.replace(ASKED, reasoning=ReasoningPolicy(mode="budget", budget=0))
    assert (
        request_shape(by_option)
        == request_shape(by_budget)
        == request_shape(msgspec.structs.replace(ASKED, reasoning=off))
    )


def test_nothing_is_learned_of_a_request_that_no_lesson_is_asked_for() -> None:
    known, at = Known(), target()
    known.learn()
    assert known.facts.knowledge([at], "a").of(at).refused_fields == ()
    assert known.facts.of(at).refused_fields == ()


@pytest.mark.parametrize("tenant", ["a", "b"])
def test_any_answer_to_a_request_with_the_field_ends_the_lesson(tenant: str) -> None:
    known = Known()
    known.learn()
    known.answered({"model": "m", "text": "top_k"}, tenant=tenant)
    known.answered({"model": "m", "top_k": 5}, at=target("other"), tenant=tenant)
    assert known.fields() == ["top_k"]
    known.answered({"model": "m", "top_k": 5}, tenant=tenant)
    assert known.fields() == []
    assert known.facts.lessons.all() == []


def test_an_answer_in_a_schema_by_a_form_that_was_refused_ends_that_lesson() -> None:
    known, at = Known(), target("m", "vllm")
    schema = OutputFormat(mode="json_schema", name="s", schema={"type": "object"})
    asked = msgspec.structs.replace(ASKED, output_format=schema)
    known.learn(RefusedForm(at, "json_schema"), asked)
    facts = known.facts.knowledge([at], "a", asked).of(at)
    assert facts.refused_forms == {"json_schema"}
    weaker = plan(asked, at, knowledge=known.facts.knowledge([at], "a", asked))
    known.facts.note_answered(weaker, "b", asked)
    assert known.facts.lessons.all()
    known.facts.note_answered(plan(asked, at), "b", asked)
    assert not known.facts.lessons.all()


def test_an_endpoint_that_answers_is_not_missing_for_any_model() -> None:
    known, at = Known(), target("one")
    known.learn(MissingEndpoint(at))
    other = target("two")
    assert known.facts.knowledge([other], "a", ASKED).of(other).missing
    assert not known.facts.knowledge([other], "b", ASKED).of(other).missing
    known.answered({"model": "two"}, at=other)
    assert not known.facts.knowledge([at], "a", ASKED).of(at).missing


def test_callers_who_were_taught_the_same_share_one_value() -> None:
    known, at = Known(), target()
    for tenant in ("a", "b"):
        known.learn(tenant=tenant)
    mine, yours, nobodys = (known.facts.knowledge([at], tenant, ASKED) for tenant in ("a", "b", "c"))
    assert mine is yours
    assert nobodys is not mine


def test_a_list_of_lessons_says_where_each_holds_until_when_and_why() -> None:
    known = Known()
    known.learn()
    known.now += 60
    known.learn(RejectedField(target(), RefusedField("max_tokens", "max_completion_tokens", True)), tenant="b")
    newest, first = known.facts.lessons.all()
    assert (first.kind, first.what, first.provider, first.model, first.dialect) == (
        "field",
        "top_k",
        "lab",
        "m",
        "openai_chat",
    )
    assert (first.shape, first.caller, first.since, first.until) == ("whole", "a", 1_000_000, 1_000_000 + HOUR)
    assert first.words == "Unknown parameter: 'top_k'."
    assert newest.what == "max_tokens, sent as max_completion_tokens"
    assert newest.id != first.id


def test_one_lesson_can_be_forgotten_and_all_can() -> None:
    known = Known()
    known.learn()
    known.learn(tenant="b")
    first, second = known.facts.lessons.all()
    assert known.facts.lessons.forget("no such lesson") == 0
    assert known.facts.lessons.forget(first.id) == 1
    assert known.facts.lessons.all() == [second]
    assert known.facts.lessons.forget() == 1
    assert not known.facts.lessons.kept


def test_the_memory_of_lessons_is_bounded_at_one_place_too() -> None:
    known = Known()
    for number in range(300):
        known.learn(RejectedField(target(), RefusedField(f"f{number}", "", True)))
    assert len(known.facts.lessons.all()) == 256
    assert len(known.fields()) == 256
    assert "f299" in known.fields()
