"""A second model is asked whether it agrees with an answer: `verify` of a workload, of a call, and of a header."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bardo.simulators import Fault, Script, Turn
from bardo.simulators.turns import ToolCall, Usage
from support.any_model import Simulator
from support.gateway import House, Watched, house
from support.keyed_gateway import PRICE, keyed_gateway
from support.patience import PATIENCE
from support.sdk import anthropic_client, openai_client
from support.talk import Caller, ask

JUDGE = "anthropic/claude-haiku-4-5"
TABLE = f"""
[workloads.careful]
model = "deepseek/deepseek-r1"
verify = "{JUDGE}"
"""
MESSAGES: list[Any] = [{"role": "user", "content": "What is 27 * 43?"}]
AGREES = '{"agrees": true, "why": "27 * 43 is 1161."}'
DISAGREES = '{"agrees": false, "why": "27 * 43 is 1161, not 1000."}'


def answerer(text: str = "It is 1000.", **fields: Any) -> Simulator:
    turn = Turn(text=text, usage=Usage(input_tokens=1000, answer_tokens=100), **fields)
    return Simulator("deepseek", script=Script(turns=(turn,)), models=["deepseek-r1"])


def judge(text: str = DISAGREES, **fields: Any) -> Simulator:
    turn = Turn(text=text, usage=Usage(input_tokens=500, answer_tokens=20), **fields)
    return Simulator("anthropic", script=Script(turns=(turn,)), models=["claude-haiku-4-5"])


@pytest.fixture(scope="module")
def doubted() -> Iterator[House]:
    with house([answerer(), judge()], toml=TABLE) as it:
        yield it


@pytest.fixture(scope="module")
def confirmed() -> Iterator[House]:
    with house([answerer("1161"), judge(AGREES)], toml=TABLE) as it:
        yield it


def told(it: House, model: str = "bardo/careful", **asked: Any) -> tuple[dict[str, Any], str, str]:
    """Return the `bardo` object of a whole reply to OpenAI's client, its text, and what its header says was degraded."""
    with closing(openai_client(it.address)) as client:
        raw = client.chat.completions.with_raw_response.create(model=model, messages=MESSAGES, **asked)
        body = json.loads(raw.text)
        return body["bardo"], body["choices"][0]["message"]["content"], raw.headers.get("x-bardo-degraded", "")


def test_a_disagreement_is_told_and_the_answer_stands(doubted: House) -> None:
    bardo, text, header = told(doubted)
    assert text == "It is 1000."
    verdict = bardo["verification"]
    assert (verdict["model"], verdict["agrees"], verdict["why"]) == (JUDGE, False, "27 * 43 is 1161, not 1000.")
    assert "verification" in header.split(", ")
    lost = next(one for one in bardo["degraded"] if one["what"] == "verification")
    assert (lost["asked"], lost["sent"], lost["why"]) == (JUDGE, "disagrees", "27 * 43 is 1161, not 1000.")


def test_the_second_call_has_its_own_row_and_its_cost_is_in_no_other_figure(doubted: House) -> None:
    bardo, _, _ = told(doubted)
    first, second = doubted.log.row(bardo["request_id"]), doubted.log.row(bardo["verification"]["request_id"])
    assert (first.provider, second.provider) == ("deepseek", "anthropic")
    # 1000 tokens at $0.55 and 100 at $2.19 per million; 500 at $1 and 20 at $5.
    assert first.cost_nanos == bardo["cost"]["nanos"] == 769_000
    assert second.cost_nanos == bardo["verification"]["cost"]["nanos"] == 600_000
    assert len(bardo["attempts"]) == 1
    assert "verification" in [one["what"] for one in first.degraded]


def test_the_second_model_is_given_the_question_and_the_answer(doubted: House) -> None:
    told(doubted)
    asked = json.loads(doubted.last("anthropic")["messages"][0]["content"])
    assert asked == {"conversation": [{"role": "user", "text": "What is 27 * 43?"}], "answer": "It is 1000."}


def test_an_agreement_degrades_nothing(confirmed: House) -> None:
    bardo, text, header = told(confirmed)
    assert (text, bardo["verification"]["agrees"]) == ("1161", True)
    assert "verification" not in header


@pytest.mark.parametrize(
    "asked", [{"extra_body": {"bardo": {"verify": JUDGE}}}, {"extra_headers": {"X-Bardo-Verify": JUDGE}}]
)
def test_a_call_may_ask_for_it(doubted: House, asked: dict[str, Any]) -> None:
    bardo, _, _ = told(doubted, "deepseek/deepseek-r1", **asked)
    assert bardo["verification"]["agrees"] is False


def test_who_does_not_ask_for_it_pays_for_one_call(doubted: House) -> None:
    before = len(doubted.arrived("anthropic"))
    asked = {"extra_body": {"bardo": {"include": ["receipt"]}}}
    bardo, _, _ = told(doubted, "deepseek/deepseek-r1", **asked)
    assert "verification" not in bardo
    assert len(doubted.arrived("anthropic")) == before


def test_the_last_event_of_openais_stream_has_the_verdict(doubted: House) -> None:
    with closing(openai_client(doubted.address)) as client:
        chunks = list(client.chat.completions.create(model="bardo/careful", messages=MESSAGES, stream=True))
    text = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    assert text == "It is 1000."
    bardo = [one.model_extra["bardo"] for one in chunks if one.model_extra and "bardo" in one.model_extra]
    assert bardo[-1]["verification"]["agrees"] is False
    assert "verification" in [one["what"] for one in bardo[-1]["degraded"]]


@pytest.mark.parametrize("stream", [False, True])
def test_anthropics_client_is_told_too(doubted: House, stream: bool) -> None:
    with closing(anthropic_client(doubted.address)) as client:
        if stream:
            with client.messages.stream(model="bardo/careful", messages=MESSAGES, max_tokens=200) as events:
                raw = [one.model_dump() for one in events]
                blocks = events.get_final_message().model_dump()["content"]
            found = [one["bardo"] for one in raw if one.get("bardo")]
            assert found[-1]["verification"]["agrees"] is False
        else:
            reply = client.messages.create(model="bardo/careful", messages=MESSAGES, max_tokens=200)
            assert (reply.model_extra or {})["bardo"]["verification"]["agrees"] is False
            blocks = reply.model_dump()["content"]
    assert [block["text"] for block in blocks if block["type"] == "text"] == ["It is 1000."]


@pytest.mark.parametrize(
    "second",
    [
        judge("I would say so."),
        judge('{"agrees": "perhaps"}'),
        judge("x", fault=Fault("status", status=500)),
        judge(""),
    ],
    ids=["words", "wrong type", "refused", "empty"],
)
def test_an_answer_stands_where_there_is_no_verdict(second: Simulator) -> None:
    with house([answerer(), second], toml=TABLE) as it:
        bardo, text, header = told(it)
    assert text == "It is 1000."
    assert bardo["verification"]["agrees"] is None
    assert bardo["verification"]["why"]
    assert "verification" in header.split(", ")


def test_an_unknown_second_model_is_told() -> None:
    with house([answerer()], toml=TABLE) as it:
        bardo, text, _ = told(it, "deepseek/deepseek-r1", extra_body={"bardo": {"verify": "nobody/m1"}})
    assert (text, bardo["verification"]["agrees"], bardo["verification"]["cost"]) == ("It is 1000.", None, None)
    assert "nobody" in bardo["verification"]["why"]


def test_a_model_is_not_asked_to_judge_itself() -> None:
    with house([answerer()]) as it:
        bardo, _, header = told(it, "deepseek/deepseek-r1", extra_body={"bardo": {"verify": "deepseek/deepseek-r1"}})
        assert len(it.arrived("deepseek")) == 1
    assert (bardo["verification"]["agrees"], bardo["verification"]["request_id"]) == (None, None)
    assert "itself" in bardo["verification"]["why"]
    assert "verification" in header


def test_a_turn_of_tool_calls_is_not_judged() -> None:
    tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]
    calls = (ToolCall("add", {}),)
    with house([answerer("", tool_calls=calls), judge()], toml=TABLE) as it:
        bardo, _, _ = told(it, tools=tools)
        assert bardo["verification"] is None
        assert it.arrived("anthropic") == []


def test_an_answer_that_a_better_model_replaces_is_not_judged() -> None:
    table = TABLE + 'escalate = ["openai_chat/gpt-4o"]\n'
    better = Simulator("openai_chat", script=Script(turns=(Turn(text="It is 1161."),)), models=["gpt-4o"])
    with house([answerer("I'm not sure; perhaps 1000."), better, judge(AGREES)], toml=table) as it:
        bardo, text, _ = told(it)
        assert len(it.arrived("anthropic")) == 1
    assert (text, bardo["verification"]["agrees"]) == ("It is 1161.", True)


def test_a_name_that_is_none_is_refused(doubted: House) -> None:
    with closing(openai_client(doubted.address)) as client, pytest.raises(Exception, match=r"bardo\.verify"):
        client.chat.completions.create(model="bardo/careful", messages=MESSAGES, extra_body={"bardo": {"verify": 7}})


def test_it_needs_no_second_place_and_no_second_request_of_a_key(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [answerer(), judge()], toml=TABLE + PRICE) as it:
        key = it.key(concurrency=1, requests_per_minute=1)
        with closing(openai_client(it.address).with_options(api_key=key)) as client:
            reply = client.chat.completions.create(model="bardo/careful", messages=MESSAGES)
    assert (reply.model_extra or {})["bardo"]["verification"]["agrees"] is False


def test_a_key_that_may_not_ask_the_second_model_gets_the_answer(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [answerer(), judge()], toml=TABLE + PRICE) as it:
        key = it.key(models=("deepseek/*",))
        with closing(openai_client(it.address).with_options(api_key=key)) as client:
            reply = client.chat.completions.create(model="bardo/careful", messages=MESSAGES)
    verdict = (reply.model_extra or {})["bardo"]["verification"]
    assert (reply.choices[0].message.content, verdict["agrees"]) == ("It is 1000.", None)
    assert "may not ask" in verdict["why"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_second_model_that_says_nothing_is_not_waited_for_without_end(monkeypatch: Any, stream: bool) -> None:
    monkeypatch.setattr("bardo.call.second_calls.MOST_SECONDS", 0.3)
    with house([answerer(), judge("x", fault=Fault("stall", after=0))], toml=TABLE) as it:
        answer = ask(it.address, "openai_chat", "bardo/careful", stream=stream)
    assert b"no verdict within" in answer.body
    assert b"It is " in answer.body


@pytest.mark.parametrize("stream", [True, False], ids=["a stream", "a whole reply"])
def test_a_client_that_leaves_while_its_answer_is_judged_ends_the_second_call(monkeypatch: Any, stream: bool) -> None:
    monkeypatch.setattr("bardo.call.second_calls.MOST_SECONDS", 4 * PATIENCE)
    second = Watched("anthropic", silent_first=True, models=["claude-haiku-4-5"])
    body = {"model": "bardo/careful", "messages": MESSAGES, "stream": stream}
    with house([answerer(), second], toml=TABLE) as it:
        with Caller(it.address, "/v1/chat/completions", body) as client:
            if stream:
                # The text does not wait for the verdict, what ends the stream does.
                client.hear(b'"00."')
            assert second.asked.wait(PATIENCE)
        assert second.over.wait(PATIENCE)
        outcomes = {row.provider: row.outcome for row in it.log.wait(lambda row: row.provider == "deepseek")}
        assert it.log.wait(lambda row: row.provider == "anthropic")[0].outcome == "cancelled"
        # Who has all of a stream's text has the answer.
        assert outcomes["deepseek"] == ("ok" if stream else "cancelled")
