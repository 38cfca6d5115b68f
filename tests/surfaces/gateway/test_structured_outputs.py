"""A schema in any client's own field gives an answer in it from any provider, by whichever mode that provider has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from bardo.simulators import Fault, Script, Turn
from bardo.structured import checker
from support.any_model import Simulator
from support.gateway import House, house
from support.talk import CLIENTS, Answer, ask
from support.typed import AGAIN, BAD, GOOD, PLACE, SCRIPT, STUBBORN, THOUGHT, bardo_of, shape_for, text_of
from surfaces.gateway.cells import whole_and_streamed

# A provider and a model for each way to ask: the schema itself, JSON without one, a tool that may be called, words alone.
MODES = {
    "openai_responses/gpt-5": "schema_enforced",
    "anthropic/claude-sonnet-4-5": "schema_enforced",
    "gemini/gemini-2.5-flash": "schema_enforced",
    "vllm/qwen3-8b": "schema_enforced",
    "deepseek/deepseek-chat": "prompt_guided",
    "anthropic/claude-3-5-haiku-latest": "tool_use_workaround",
    "minimax/MiniMax-M2": "tool_use_workaround",
    "venice/some-model": "prompt_guided",
}
HELD = tuple(model for model, mode in MODES.items() if mode != "schema_enforced")
SIMULATORS = ("openai_responses", "anthropic", "gemini", "vllm", "deepseek", "minimax", "venice")
INCLUDED: dict[str, Any] = {"include": ["structured"]}

each_client = pytest.mark.parametrize("client", CLIENTS)
each_model = pytest.mark.parametrize("model", MODES)
each_held_model = pytest.mark.parametrize("model", HELD)


@pytest.fixture(scope="module")
def typed() -> Iterator[House]:
    with house([Simulator(name, script=SCRIPT) for name in SIMULATORS]) as running:
        yield running


def asked(
    house: House, client: str, model: str, question: str, *, stream: bool, schema: Any = PLACE, **more: Any
) -> Answer:
    shape = shape_for(client, schema)
    return ask(house.address, client, model, stream=stream, question=question, **{"bardo": INCLUDED, **shape, **more})


@each_client
@each_model
@whole_and_streamed
def test_the_answer_is_json_in_the_schema_and_says_how_it_was_got(
    typed: House, client: str, model: str, stream: bool
) -> None:
    answer = asked(typed, client, model, "good", stream=stream)
    assert answer.status == 200
    assert json.loads(text_of(client, answer, stream=stream)) == GOOD
    told = bardo_of(answer, stream=stream)["structured"]
    assert (told["mode"], told["attempts"], told["error"]) == (MODES[model], 1, None)
    assert told["mode_downgraded"] is (MODES[model] != "schema_enforced")


@each_client
@each_held_model
@whole_and_streamed
def test_a_bad_answer_is_asked_for_again_and_all_tokens_are_counted(
    typed: House, client: str, model: str, stream: bool
) -> None:
    provider = model.partition("/")[0]
    before = len(typed.arrived(provider))
    answer = asked(typed, client, model, "bad then good", stream=stream)
    assert answer.status == 200
    assert json.loads(text_of(client, answer, stream=stream)) == GOOD
    assert bardo_of(answer, stream=stream)["structured"]["attempts"] == 2
    first, second = typed.arrived(provider)[before:]
    assert AGAIN not in first.raw.decode()
    assert AGAIN in second.raw.decode()
    assert "/size" in second.raw.decode()
    row = typed.log.row(answer.headers["x-bardo-request-id"])
    assert (row.outcome, row.attempts) == ("ok", 2)
    raws = row.usage_raw["attempts"]
    assert len(raws) == 2
    alone = typed.log.row(asked(typed, client, model, "good", stream=stream).headers["x-bardo-request-id"])
    assert row.output_tokens is not None
    assert alone.output_tokens is not None
    assert row.output_tokens > alone.output_tokens


@each_client
@pytest.mark.parametrize("model", ["openai_responses/gpt-5", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"])
def test_whole_replies_are_asked_for_again_in_the_native_mode_too(typed: House, client: str, model: str) -> None:
    answer = asked(typed, client, model, "bad then good", stream=False)
    assert json.loads(text_of(client, answer, stream=False)) == GOOD
    told = bardo_of(answer, stream=False)["structured"]
    assert (told["mode"], told["attempts"]) == ("schema_enforced", 2)


@each_client
@pytest.mark.parametrize("model", ["deepseek/deepseek-chat", "venice/some-model"])
@whole_and_streamed
def test_what_stands_around_the_json_is_left_out(typed: House, client: str, model: str, stream: bool) -> None:
    answer = asked(typed, client, model, "fenced", stream=stream)
    assert json.loads(text_of(client, answer, stream=stream)) == GOOD


@each_client
@each_held_model
@whole_and_streamed
def test_thinking_is_shown_beside_a_typed_answer(typed: House, client: str, model: str, stream: bool) -> None:
    bardo = {"include": ["reasoning_chain"]}
    answer = asked(typed, client, model, "good", stream=stream, thinks=True, bardo=bardo, **_thinking(client))
    assert answer.status == 200
    assert THOUGHT in bardo_of(answer, stream=stream)["reasoning_chain"]["content"]
    assert json.loads(text_of(client, answer, stream=stream)) == GOOD


def _thinking(client: str) -> dict[str, Any]:
    """Gemini's thinking stands in the same object as the shape of the answer."""
    if client != "gemini":
        return {}
    config = shape_for(client, PLACE)["generationConfig"]
    return {"generationConfig": {**config, "thinkingConfig": {"includeThoughts": True}}}


@each_client
@pytest.mark.parametrize("model", ["deepseek/deepseek-chat", "minimax/MiniMax-M2", "openai_responses/gpt-5"])
@whole_and_streamed
def test_a_call_of_the_callers_own_tool_is_no_answer_to_judge(
    typed: House, client: str, model: str, stream: bool
) -> None:
    answer = asked(typed, client, model, "call", stream=stream, tools=True)
    assert answer.status == 200
    assert "weather" in answer.text
    assert "Paris" in answer.text
    assert "respond_" not in text_of(client, answer, stream=stream)
    assert bardo_of(answer, stream=stream).get("structured") is None


@pytest.fixture(scope="module")
def stubborn() -> Iterator[House]:
    with house([Simulator(name, script=STUBBORN) for name in SIMULATORS]) as running:
        yield running


@each_client
@each_model
def test_an_answer_that_stays_bad_is_an_error_with_its_path_and_all_that_was_said(
    stubborn: House, client: str, model: str
) -> None:
    answer = asked(stubborn, client, model, "good", stream=False)
    assert (answer.status, answer.headers["x-bardo-error"]) == (502, "invalid")
    assert answer.headers["x-should-retry"] == "false"
    assert "/size" in str(answer.json["error"])
    structured = answer.json["bardo"]["structured"]
    assert structured["failures"][0]["path"] == "/size"
    assert json.loads(structured["text"]) == BAD
    row = stubborn.log.row(answer.headers["x-bardo-request-id"])
    assert (row.outcome, row.attempts, row.error_class) == ("error", 2, "UnusableAnswer")


# How each dialect says that a reply has ended well: the first sign is for no other end.
ENDS_WELL = {
    "openai_chat": ('"finish_reason":"stop"', "[DONE]"),
    "openai_responses": ("response.completed",),
    "anthropic_messages": ('"stop_reason":"end_turn"', "message_stop"),
    "gemini": ('"finishReason":"STOP"',),
}


def ends_well(client: str, answer: Answer) -> bool:
    plain = answer.text.replace('": "', '":"')
    return any(sign in plain for sign in ENDS_WELL[client])


@each_client
@each_model
@pytest.mark.parametrize("included", [True, False], ids=["translated", "as it came"])
def test_a_stream_says_what_came_and_ends_with_the_error(
    stubborn: House, client: str, model: str, included: bool
) -> None:
    answer = asked(stubborn, client, model, "good", stream=True, bardo=INCLUDED if included else {})
    assert answer.status == 200
    text = text_of(client, answer, stream=True)
    row = stubborn.log.row(answer.headers["x-bardo-request-id"])
    # Gemini's last frame holds the rest of its text and the end of the reply.
    assert json.loads(text) == BAD if not (row.passed_through and client == "gemini") else BAD["city"] in text + "Paris"
    assert "/size" in answer.text
    assert not ends_well(client, answer)
    assert (row.outcome, row.attempts) == ("broken", 2 if MODES[model] != "schema_enforced" else 1)


@each_client
@each_model
@whole_and_streamed
def test_a_number_that_the_limit_cut_is_no_answer(client: str, model: str, stream: bool, cut: House) -> None:
    answer = asked(cut, client, model, "good", stream=stream)
    assert answer.status == 200
    assert text_of(client, answer, stream=stream) == CUT
    assert ENDS_WELL[client][0] not in answer.text.replace('": "', '":"')
    assert bardo_of(answer, stream=stream)["structured"]["error"] == "truncated"
    row = cut.log.row(answer.headers["x-bardo-request-id"])
    assert (row.outcome, row.attempts) == ("ok", 1)


CUT = '{"city": "Paris", "size": 12'


@pytest.fixture(scope="module")
def cut() -> Iterator[House]:
    script = Script((Turn(reasoning=THOUGHT, text=CUT, finish="length"),))
    with house([Simulator(name, script=script) for name in SIMULATORS]) as running:
        yield running


@each_client
@each_model
@whole_and_streamed
def test_prose_is_an_error_where_nothing_is_required(client: str, model: str, stream: bool, prose: House) -> None:
    schema = {**PLACE, "required": []}
    answer = asked(prose, client, model, "good", stream=stream, schema=schema)
    assert (answer.status, answer.headers.get("x-bardo-error")) == ((200, None) if stream else (502, "no_json"))
    assert "no JSON" in answer.text
    assert not stream or not ends_well(client, answer)
    # A failure says how it was asked for, as a success does (SO9).
    told = bardo_of(answer, stream=stream)["structured"]
    assert (told["error"], told["attempts"]) == ("no_json", 2)
    assert told["mode"] in ("schema_enforced", "tool_use_workaround", "prompt_guided")


@pytest.fixture(scope="module")
def prose() -> Iterator[House]:
    script = Script((Turn(reasoning=THOUGHT, text="I cannot say, see [1]."),))
    with house([Simulator(name, script=script) for name in SIMULATORS]) as running:
        yield running


@each_client
@each_model
def test_declared_defaults_stand_in_with_a_warning(stubborn: House, client: str, model: str) -> None:
    schema = {**PLACE, "properties": {**PLACE["properties"], "size": {"type": "integer", "default": 7}}}
    answer = asked(stubborn, client, model, "good", stream=False, schema=schema)
    assert answer.status == 200
    assert json.loads(text_of(client, answer, stream=False)) == {"city": "Paris", "size": 7}
    assert "answer.defaults" in answer.headers["x-bardo-degraded"].split(", ")
    assert bardo_of(answer, stream=False)["structured"]["defaulted"] == ["/size"]


@pytest.mark.parametrize("retries", [0, 2])
def test_one_call_may_say_how_often_is_asked_again(stubborn: House, retries: int) -> None:
    options = {"structured": {"retries": retries}, **INCLUDED}
    answer = asked(stubborn, "openai_chat", "deepseek/deepseek-chat", "good", stream=False, bardo=options)
    row = stubborn.log.row(answer.headers["x-bardo-request-id"])
    assert row.attempts == retries + 1


def test_one_call_may_name_the_best_mode_it_allows(typed: House) -> None:
    options = {"structured": {"mode": "prompt_guided"}, **INCLUDED}
    answer = asked(typed, "openai_chat", "openai_responses/gpt-5", "fenced", stream=False, bardo=options)
    assert json.loads(text_of("openai_chat", answer, stream=False)) == GOOD
    assert bardo_of(answer, stream=False)["structured"]["mode"] == "prompt_guided"


@pytest.mark.parametrize("options", [{"mode": "best"}, {"retries": 9}, {"retry": 1}, 3])
def test_a_wrong_option_is_refused_and_named(typed: House, options: Any) -> None:
    bardo = {"structured": options}
    answer = asked(typed, "openai_chat", "deepseek/deepseek-chat", "good", stream=False, bardo=bardo)
    assert answer.status == 400
    assert "bardo.structured" in answer.json["error"]["message"]


@each_client
@pytest.mark.parametrize("model", ["deepseek/deepseek-chat", "openai_responses/gpt-5"])
def test_a_reply_that_was_cut_is_delivered_as_its_dialect_says(typed: House, client: str, model: str) -> None:
    options = {"structured": {"retries": 0}, **INCLUDED}
    answer = asked(typed, client, model, "cut", stream=False, bardo=options)
    assert answer.status == 200
    assert text_of(client, answer, stream=False) == '{"city": "Par'
    assert bardo_of(answer, stream=False)["structured"]["error"] == "truncated"


@each_client
@whole_and_streamed
def test_a_refusal_is_no_error_and_is_not_asked_for_again(typed: House, client: str, stream: bool) -> None:
    answer = asked(typed, client, "deepseek/deepseek-chat", "refuse", stream=stream)
    assert answer.status == 200
    assert "cannot help" in answer.text or stream
    told = bardo_of(answer, stream=stream)["structured"]
    assert (told["error"], told["attempts"]) == ("refusal", 1)


@each_client
@whole_and_streamed
def test_another_provider_is_asked_in_its_own_mode(client: str, stream: bool) -> None:
    broken = Simulator("openai_chat", fault=Fault("status", status=500))
    sound = Simulator("deepseek", script=SCRIPT)
    with house([broken, sound], each={"models": ("deepseek-chat",)}) as running:
        answer = asked(running, client, "deepseek-chat", "good", stream=stream)
        assert json.loads(text_of(client, answer, stream=stream)) == GOOD
        assert bardo_of(answer, stream=stream)["structured"]["mode"] == "prompt_guided"
        assert running.last("openai_chat")["response_format"]["type"] == "json_schema"
        assert running.last("deepseek")["response_format"] == {"type": "json_object"}


@each_client
@pytest.mark.parametrize("model", ["deepseek/deepseek-chat", "openai_responses/gpt-5", "minimax/MiniMax-M2"])
def test_partial_answers_are_events_of_their_own_where_they_are_asked_for(
    typed: House, client: str, model: str
) -> None:
    bardo = {"include": ["partials"]}
    answer = asked(typed, client, model, "good", stream=True, bardo=bardo)
    found = [body.get("bardo", body) for body in answer.payloads if isinstance(body, dict)]
    partials = [one["partial"] for one in found if "partial" in one]
    assert partials[-1] == GOOD
    assert all(set(one) <= set(later) for one, later in pairwise(partials))
    assert json.loads(text_of(client, answer, stream=True)) == GOOD


@whole_and_streamed
@pytest.mark.parametrize(
    ("client", "model"),
    [("openai_responses", "openai_responses/gpt-5"), ("anthropic_messages", "anthropic/claude-sonnet-4-5")],
)
def test_who_speaks_the_providers_language_gets_its_own_frames(
    typed: House, client: str, model: str, stream: bool
) -> None:
    answer = asked(typed, client, model, "good", stream=stream, bardo={})
    assert json.loads(text_of(client, answer, stream=stream)) == GOOD
    assert typed.log.row(answer.headers["x-bardo-request-id"]).passed_through


BAD_SCHEMAS: dict[str, Any] = {
    "no schema": {"type": "nonsense"},
    "another document": {"$ref": "https://example.org/schema.json"},
    "endless recursion": {
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}},
        "$ref": "#/$defs/b",
    },
}


@pytest.mark.parametrize("schema", BAD_SCHEMAS.values(), ids=BAD_SCHEMAS)
def test_what_is_no_schema_is_refused_before_anybody_is_asked(typed: House, schema: dict[str, Any]) -> None:
    before = len(typed.arrived("deepseek"))
    answer = asked(typed, "openai_chat", "deepseek/deepseek-chat", "good", stream=False, schema=schema)
    assert (answer.status, answer.json["error"]["param"]) == (400, "schema")
    assert len(typed.arrived("deepseek")) == before


def test_a_thousand_members_and_a_costly_pattern_are_answered(typed: House) -> None:
    wide = {f"m{number}": {"type": "string"} for number in range(1000)}
    costly = {"type": "string", "pattern": "^(a+)+$"}
    schema = {"type": "object", "properties": {**PLACE["properties"], **wide, "slow": costly}, "required": ["city"]}
    answer = asked(typed, "openai_chat", "deepseek/deepseek-chat", "good", stream=False, schema=schema)
    assert answer.status == 200
    assert checker(schema).accepts(json.loads(text_of("openai_chat", answer, stream=False)))
