"""A refusal is read by the provider's own words: what the caller wrote is none of them, and a relation is told from a refused field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.planning.refusals import ProviderWords, RefusedField, has_field, refused_field, without_fields
from bardo.values.errors import UpstreamRefused
from bardo.values.wire import WireRequest

Body = dict[str, Any]
ASK: Body = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
SAID = "Unknown parameter: 'temperature'."


def words_of(message: str, body: Body | bytes, **fields: Any) -> tuple[ProviderWords, UpstreamRefused]:
    refusal = UpstreamRefused(message, status=400, **fields)
    return ProviderWords(refusal, body if isinstance(body, bytes) else msgspec.json.encode(body)), refusal


def found(message: str, body: Body | bytes, **fields: Any) -> RefusedField | None:
    return refused_field(*words_of(message, body, **fields))


def test_the_providers_own_words_name_a_field_that_is_never_taken() -> None:
    assert found(SAID, {**ASK, "temperature": 1}) == RefusedField("temperature", "", True)


QUOTING = {
    "in quotes": f"Invalid 'user': '{SAID}' is too long.",
    "in other quotes": f'user: "{SAID}" is not an id',
    "after a colon": f"Bad value of user: {SAID}",
    "on a line of its own": f"The user is wrong\n{SAID}",
    "cut off": "Invalid 'user': 'Unknown parameter: 'temperature'",
}


@pytest.mark.parametrize("message", QUOTING.values(), ids=QUOTING)
@pytest.mark.parametrize("place", ["user", "metadata", "messages"])
def test_a_text_of_the_callers_is_not_taken_for_the_providers_words(message: str, place: str) -> None:
    text = f"I got: {SAID} Why?"
    placed: Body = {"user": text, "metadata": {"a": [text]}, "messages": [{"role": "user", "content": text}]}
    body = {**ASK, "temperature": 1, place: placed[place]}
    assert found(message, body) is None
    assert found(message, msgspec.json.encode(body).replace(b"U", b"\\u0055")) is None
    assert found(message, {**ASK, "temperature": 1}) is not None


def test_what_a_list_of_errors_quotes_as_input_is_the_callers() -> None:
    one = {"type": "string_type", "loc": ["body", "user"], "msg": "Input should be a string", "input": SAID}
    assert found(msgspec.json.encode([one]).decode(), {**ASK, "temperature": 1, "user": [SAID]}) == RefusedField(
        "user", "", False
    )
    assert found("", {**ASK, "temperature": 1}, detail={"detail": [{"msg": "no", "input": SAID}]}) is None


def test_a_place_in_a_list_of_errors_is_the_providers() -> None:
    one = {"type": "extra_forbidden", "loc": ["body", "top_k"], "msg": "Extra inputs are not permitted", "input": 5}
    for message, detail in ((msgspec.json.encode([one]).decode(), None), ("wrong", {"detail": [one]})):
        assert found(message, {**ASK, "top_k": 5}, detail=detail) == RefusedField("top_k", "", True)


TWINS = {
    "OpenAI": "Unrecognized request argument supplied: maxTokens",
    "OpenAI, newer": "Unknown parameter: 'maxTokens'.",
    "Groq": "property 'maxTokens' is unsupported",
    "Anthropic": "maxTokens: Extra inputs are not permitted",
    "xAI": "Argument not supported on this model: maxTokens",
    "Go": 'json: unknown field "maxTokens"',
}


@pytest.mark.parametrize("message", TWINS.values(), ids=TWINS)
def test_a_field_is_found_by_its_exact_name_beside_its_twin(message: str) -> None:
    body = {**ASK, "max_tokens": 50, "maxTokens": 50, "MAX_TOKENS": 50}
    named = found(message, body)
    assert named is not None
    assert named.path == "maxTokens"
    wire, taken, _ = without_fields(WireRequest(path="", body=msgspec.json.encode(body)), [named])
    assert taken == {"maxTokens": 50}
    assert msgspec.json.decode(wire.body) == {**ASK, "max_tokens": 50, "MAX_TOKENS": 50}


def test_another_spelling_is_another_field_unless_the_providers_row_says_that_it_writes_so() -> None:
    assert found("Unknown parameter: 'topK'.", {**ASK, "top_k": 5}) is None
    assert found("Unknown parameter: 'top_k'.", {**ASK, "topK": 5}) is None
    assert found("Argument not supported on this model: topK", {**ASK, "top_k": 5}) == RefusedField("top_k", "", True)


def test_a_name_that_stands_in_two_objects_names_neither() -> None:
    inner = {"one": {"depth": 1}, "two": {"depth": 2}}
    assert found("Unknown parameter: 'depth'.", {**ASK, **inner}) is None
    named = found("Unknown parameter: 'two.depth'.", {**ASK, **inner})
    assert named is not None
    assert named.path == "two.depth"
    named = found("Unknown parameter: 'depth'.", {**ASK, "one": {"depth": 1}})
    assert named is not None
    assert named.path == "one.depth"


def test_a_field_below_one_that_is_called_like_the_body_is_meant_itself() -> None:
    named = found("property 'body.depth' is unsupported", {**ASK, "body": {"depth": 1}, "depth": 2})
    assert named is not None
    assert named.path == "body.depth"


RELATIONS = {
    "OpenAI: tools beside effort": "Function tools with reasoning_effort are not supported for gpt-5.5 in /v1/chat/completions.",
    "OpenAI: temperature beside effort": "'temperature' is not supported when 'reasoning_effort' is set.",
    "OpenAI: sampling": "Unsupported parameter: 'temperature' is not supported with reasoning effort other than none.",
    "Anthropic: both": "`temperature` and `top_p` cannot both be specified: `temperature` is not supported together with it",
    "Anthropic: thinking": "`temperature` is not allowed unless thinking is disabled",
    "Gemini: not with": 'unknown name "temperature": not with thinkingConfig',
    "Mistral: requires": "Unsupported parameter: temperature requires top_p to be 1",
    "Groq: exceeds": "property 'temperature' is unsupported: it exceeds the limit",
    "DeepSeek: in combination": "does not support parameter temperature in combination with logprobs",
    "vLLM: is set but": "temperature is set but use_beam_search is not",
    "names another field": "Unknown parameter: 'temperature'. See seed.",
    "names another's value": "Unknown parameter: 'temperature' (4711)",
}


@pytest.mark.parametrize("message", RELATIONS.values(), ids=RELATIONS)
def test_a_refusal_about_a_relation_teaches_nothing(message: str) -> None:
    body = {**ASK, "temperature": 1, "top_p": 0.5, "reasoning_effort": "high", "seed": 4711, "logprobs": True}
    named = found(message, body)
    assert named is None or not named.for_good
    assert words_of(message, body)[0].is_about_relation({"temperature"})


def test_a_refusal_without_words_of_its_own_teaches_nothing() -> None:
    words, _ = words_of(SAID, {**ASK, "user": f"I got: {SAID}"})
    assert words.text == "…"
    assert words_of("", ASK)[0].is_about_relation()


ALONE = [
    "Unsupported parameter: 'temperature' is not supported with this model.",
    "Model grok-4 does not support parameter temperature.",
    "`temperature` is deprecated for this model.",
    "temperature: Extra inputs are not permitted",
]


@pytest.mark.parametrize("message", ALONE)
def test_a_refusal_of_a_field_alone_may_teach(message: str) -> None:
    named = found(message, {**ASK, "temperature": 1, "seed": 1, "stop": ["a"]})
    assert named == RefusedField("temperature", "", True)


KEPT = ["max_tokens", "max_completion_tokens", "tool_choice", "num_predict", "maxOutputTokens"]


@pytest.mark.parametrize("name", KEPT)
def test_limits_and_the_choice_of_a_tool_are_left_out_of_one_request_and_never_of_later_ones(name: str) -> None:
    assert found(f"Unknown parameter: '{name}'.", {**ASK, name: 5}) == RefusedField(name, "", False)


def test_a_limit_that_has_another_name_keeps_its_value_and_may_be_learned() -> None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    assert found(said, {**ASK, "max_tokens": 5}) == RefusedField("max_tokens", "max_completion_tokens", True)


def test_a_name_that_is_also_a_value_teaches_nothing() -> None:
    assert found(SAID, {**ASK, "temperature": 1, "stop": ["temperature"]}) == RefusedField("temperature", "", False)


def test_a_request_that_is_too_long_to_look_through_is_taken_for_quoted() -> None:
    escaped = msgspec.json.encode({**ASK, "temperature": 1, "text": "x" * 5_000_000}).replace(b"xx", b"\\u0078x", 1)
    assert found(SAID, escaped) is None


def test_no_more_is_looked_through_than_a_bound_and_the_rest_counts_as_quoted() -> None:
    words, _ = words_of("x", {**ASK, "text": "x" * 40_000_000})
    asked = [words.quotes(f"Unknown parameter number {number}") for number in range(5)]
    assert asked == [False, False, False, True, True]


PATHS = {
    "at": ({"a": 1}, "a", True),
    "not at": ({"b": "a"}, "a", False),
    "within": ({"a": {"b": 1}}, "a.b", True),
    "within another": ({"c": {"b": 1}}, "a.b", False),
    "in a list": ({"messages": [{"x": 1}, {"name": 2}]}, "messages[].name", True),
    "not in a list": ({"messages": [{"x": "name"}]}, "messages[].name", False),
    "in what is no list": ({"messages": {"name": 1}}, "messages[].name", False),
}


@pytest.mark.parametrize(("body", "path", "there"), PATHS.values(), ids=PATHS)
def test_a_field_is_there_by_its_whole_path(body: Body, path: str, there: bool) -> None:
    assert has_field(msgspec.json.encode(body), path) is there


def test_what_is_left_of_a_body_is_as_it_was() -> None:
    body = {**ASK, "o": {"a": 1}, "p": {"a": 1, "b": [1.50, "é", None]}, "q": None}
    wire = WireRequest(path="", body=msgspec.json.encode(body))
    left, taken, lost = without_fields(
        wire, [RefusedField("o.a"), RefusedField("p.a"), RefusedField("q"), RefusedField("r")]
    )
    assert msgspec.json.decode(left.body) == {**ASK, "p": {"b": [1.5, "é", None]}}
    assert taken == {"o.a": 1, "p.a": 1, "q": None}
    assert [one.what for one in lost] == ["o.a", "p.a", "q"]
    assert without_fields(wire, [RefusedField("r")]) == (wire, {}, ())
