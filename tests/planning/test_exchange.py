"""One request's attempts, without a socket: what is sent to whom, and when another provider gets its turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.exchange import attempts, first_attempt
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.services.facts.model_facts import ModelFacts
from bardo.values.errors import (
    BardoError,
    BrokenStream,
    ConfigError,
    InvalidRequest,
    MalformedReply,
    MissingKey,
    Unreachable,
    Unsupported,
    UpstreamRefused,
    UpstreamTimeout,
)
from bardo.values.request import BardoOptions, Request
from bardo.values.wire import Arrival
from support import exchanges

pytestmark = pytest.mark.each_python


def target(preset: str, model: str = "m") -> Target:
    row = builtin().provider(preset)
    assert row is not None
    return Target(provider=Provider(id=preset, row=row, base_url="http://host/v1/"), model=model)


def chat(**fields: Any) -> Request:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello."}], **fields}
    return dialect("openai_chat").decode_request(msgspec.json.encode(body), Arrival())


def body_of(attempt: Attempt) -> Any:
    return msgspec.json.decode(attempt.wire.body)


THREE = [target("deepseek"), target("vllm"), target("anthropic")]


def tried(answer: Callable[[Attempt], BardoError | None]) -> list[str]:
    """Return whom a course of attempts reaches when each is answered so."""
    course = attempts(chat(), THREE)
    reached = []
    attempt = exchanges.begin(course)
    while True:
        reached.append(attempt.target.provider.id)
        try:
            attempt, _ = exchanges.answer(course, answer(attempt))
        except StopIteration:
            return reached


def test_an_answered_attempt_is_the_last() -> None:
    assert tried(lambda attempt: None) == ["deepseek"]


@pytest.mark.parametrize(
    "failure",
    [
        Unreachable("x"),
        UpstreamTimeout("x"),
        MalformedReply("x"),
        BrokenStream("x"),
        MissingKey("x"),
        *(
            UpstreamRefused("x", status=status)
            for status in (401, 402, 403, 404, 408, 409, 425, 429, 500, 502, 503, 504, 529)
        ),
    ],
    ids=lambda failure: f"{failure.code}-{failure.status}",
)
def test_a_failure_another_provider_may_mend_goes_on(failure: BardoError) -> None:
    assert tried(lambda attempt: failure) == ["deepseek", "vllm", "anthropic"]


@pytest.mark.parametrize(
    "failure",
    [
        ConfigError("x"),
        InvalidRequest("x"),
        *(UpstreamRefused("x", status=status) for status in (400, 413, 422)),
    ],
    ids=lambda failure: f"{failure.code}-{failure.status}",
)
def test_a_failure_it_cannot_mend_ends_the_course(failure: BardoError) -> None:
    assert tried(lambda attempt: failure) == ["deepseek"]


def test_a_target_that_cannot_express_the_request_is_passed_over() -> None:
    llama = target("bedrock-invoke", "meta.llama3-1-8b-instruct-v1:0")
    taken = first_attempt(chat(), [llama, target("deepseek")])
    assert taken.target.provider.id == "deepseek"
    assert [lost.asked for lost in taken.degraded] == ["bedrock-invoke/meta.llama3-1-8b-instruct-v1:0"]
    with pytest.raises(Unsupported):
        first_attempt(chat(), [llama])


def test_each_provider_that_failed_is_told() -> None:
    course = attempts(chat(), THREE)
    assert exchanges.begin(course).degraded == ()
    exchanges.answer(course, Unreachable("down"))
    third, _ = exchanges.answer(course, UpstreamRefused("full", status=429))
    told = [(one.what, one.asked, one.sent, one.why) for one in third.degraded if one.what == "provider"]
    assert told == [("provider", "deepseek", "anthropic", "down"), ("provider", "vllm", "anthropic", "full")]


def test_the_address_is_the_base_and_the_dialects_path() -> None:
    assert plan(chat(), target("deepseek")).url == "http://host/v1/chat/completions"
    assert plan(chat(), target("anthropic")).url == "http://host/v1/messages"
    assert plan(chat(), target("gemini", "gemini-x")).url == "http://host/v1/models/gemini-x:generateContent"


def test_the_providers_own_model_name_is_sent() -> None:
    assert body_of(plan(chat(), target("deepseek", "deepseek-v4")))["model"] == "deepseek-v4"
    assert body_of(plan(chat(), target("vllm", "Qwen/Q")))["model"] == "Qwen/Q"


def test_the_same_dialect_is_forwarded_as_the_client_wrote_it() -> None:
    attempt = plan(chat(unheard_of={"deep": [1]}, temperature=0.3, user="u"), target("deepseek"))
    assert attempt.forward
    assert body_of(attempt) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello."}],
        "unheard_of": {"deep": [1]},
        "temperature": 0.3,
        "user": "u",
    }
    assert attempt.degraded == ()


def test_bardos_own_field_stays_here() -> None:
    attempt = plan(chat(bardo={"reasoning": "include"}), target("deepseek"))
    assert attempt.forward
    assert "bardo" not in body_of(attempt)


@pytest.mark.parametrize("preset", ["groq", "vllm", "mistral", "xai", "openrouter", "openai-compatible"])
def test_a_reply_in_a_form_of_its_own_is_not_forwarded(preset: str) -> None:
    assert not plan(chat(), target(preset)).forward


@pytest.mark.parametrize(
    "options", [BardoOptions(include=("receipt",)), BardoOptions(omit_reasoning=True)], ids=["include", "omit"]
)
def test_a_wish_ends_forwarding(options: BardoOptions) -> None:
    request = msgspec.structs.replace(chat(), options=options)
    assert not plan(request, target("deepseek")).forward


def test_a_client_with_another_framing_gets_no_frames_forwarded() -> None:
    assert not plan(chat(stream=True), target("deepseek"), may_forward=False).forward
    assert not first_attempt(chat(stream=True), THREE, may_forward=False).forward


def test_a_request_without_a_body_is_encoded() -> None:
    request = msgspec.structs.replace(chat(), body=None, dialect="")
    attempt = plan(request, target("deepseek"))
    assert not attempt.forward
    assert body_of(attempt)["messages"] == [{"role": "user", "content": "Hello."}]


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}])
def test_usage_is_asked_for_and_withheld_where_the_client_did_not_ask(options: dict[str, bool] | None) -> None:
    attempt = plan(chat(stream=True, stream_options=options), target("deepseek"))
    assert attempt.withhold_usage
    assert body_of(attempt)["stream_options"]["include_usage"] is True


def test_usage_the_client_asked_for_is_not_withheld() -> None:
    asked = {"include_usage": True, "include_obfuscation": False}
    attempt = plan(chat(stream=True, stream_options=asked), target("deepseek"))
    assert not attempt.withhold_usage
    assert body_of(attempt)["stream_options"] == asked


def test_what_a_refusal_taught_is_told_with_the_attempt_that_proves_it() -> None:
    course = attempts(chat(reasoning_effort="high"), [target("openai-chat", "gpt-5.2")])
    exchanges.begin(course)
    refusal = UpstreamRefused("Unsupported value: 'high'. Supported values are: 'low' and 'medium'.", status=400)
    again, lessons = exchanges.answer(course, refusal)
    assert [type(lesson).__name__ for lesson in lessons] == ["RefusedThinking"]
    assert "high" not in again.wire.body.decode()


@pytest.mark.parametrize(
    "said",
    [
        "Unsupported value: 'high'. Supported values are: 'low' and 'medium' when tools are given.",
        "Unsupported value: 'high' together with seed. Supported values are: 'low'.",
        "Unsupported value: 'high'. Supported values are: 'low'. See parallel_tool_calls.",
    ],
)
def test_a_level_that_is_refused_because_of_something_else_is_lowered_and_teaches_nothing(said: str) -> None:
    asked = chat(reasoning_effort="high", seed=1, parallel_tool_calls=False)
    course = attempts(asked, [target("openai-chat", "gpt-5.2")])
    exchanges.begin(course)
    again, lessons = exchanges.answer(course, UpstreamRefused(said, status=400))
    assert body_of(again)["reasoning_effort"] != "high"
    assert lessons == []


REFUSALS = [
    ("top_k", "Unsupported parameter: 'top_k' is not supported with this model.", "top_k", True),
    ("top_k", "Unrecognized request argument supplied: top_k", None, True),
    ("top_k", "property 'top_k' is unsupported", None, True),
    ("top_k", "body.top_k: property 'body.top_k' is unsupported", "body.top_k", True),
    ("top_k", "Unknown parameter: 'request.body.top_k'.", None, True),
    ("top_k", '[{"type":"extra_forbidden","loc":["body","top_k"],"msg":"Extra inputs are not permitted"}]', None, True),
    ("top_k", "Extra inputs are not permitted, field: 'top_k', value: 64", None, True),
    ("top_k", "top_k: Extra inputs are not permitted", None, True),
    ("top_k", 'json: unknown field "top_k"', None, True),
    ("top_k", "Argument not supported on this model: topK", None, True),
    ("logit_bias", "`logit_bias` is not supported with this model", None, True),
    ("temperature", "Unsupported value: 'temperature' does not support 0.2 with this model.", "temperature", False),
    ("chat_template_kwargs", "chat_template_kwargs is not supported", None, True),
]
OPTIONAL = {"top_k": 64, "temperature": 0.2, "logit_bias": {"1": 2}, "chat_template_kwargs": {"documents": [1]}}


@pytest.mark.parametrize(("field", "message", "param", "for_good"), REFUSALS)
def test_a_field_that_a_refusal_names_is_left_out_once_and_reported(
    field: str, message: str, param: str | None, for_good: bool
) -> None:
    course = attempts(chat(**OPTIONAL), [target("openai-compatible")])
    first = exchanges.begin(course)
    assert field in body_of(first)
    again, lessons = exchanges.answer(course, UpstreamRefused(message, status=400, param=param))
    assert exchanges.begin(attempts(chat(**OPTIONAL), [target("openai-compatible")])).teaches == ()
    assert body_of(again) == {name: value for name, value in body_of(first).items() if name != field}
    assert [(one.what, one.why) for one in again.degraded if one not in first.degraded] == [
        (field, "the provider refuses this field")
    ]
    assert bool(lessons) is for_good
    with pytest.raises(StopIteration):
        exchanges.answer(course, UpstreamRefused(message.replace(field, "temperature"), status=400))


def test_an_output_limit_goes_by_the_name_that_the_refusal_gives() -> None:
    course = attempts(chat(max_tokens=9), [target("openai-compatible")])
    exchanges.begin(course)
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    again, _ = exchanges.answer(course, UpstreamRefused(said, status=400, param="max_tokens"))
    assert (body_of(again).get("max_completion_tokens"), "max_tokens" in body_of(again)) == (9, False)


KEPT = [
    "Unknown parameter: 'messages'.",
    "Unsupported parameter: 'tools'.",
    "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
    "Unknown parameter: 'not_sent'.",
]


@pytest.mark.parametrize("message", KEPT)
def test_a_refusal_that_names_nothing_a_request_can_do_without_goes_to_the_caller(message: str) -> None:
    course = attempts(chat(temperature=3, tools=[]), [target("openai-compatible")])
    exchanges.begin(course)
    with pytest.raises(StopIteration):
        exchanges.answer(course, UpstreamRefused(message, status=400))


def test_what_a_target_never_takes_is_left_out_of_the_next_call() -> None:
    one, asked = target("openai-compatible"), chat(top_k=5)
    course = attempts(asked, [one])
    exchanges.begin(course)
    _, (lesson,) = exchanges.answer(course, UpstreamRefused("Unknown parameter: 'top_k'.", status=400))
    facts = ModelFacts()
    exchanges.learn(facts, lesson, asked)
    later = first_attempt(asked, [one], knowledge=facts.knowledge([one], request=asked))
    assert "top_k" not in body_of(later)
    assert [difference.what for difference in later.degraded] == ["top_k"]
