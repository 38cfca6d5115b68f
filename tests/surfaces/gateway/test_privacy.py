"""Personal data never reaches a provider, and the client gets it back: official SDKs, streams cut after each character."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
from bardo.simulators import Script, ToolCall, Turn
from bardo.simulators.turns import Conversation
from support.any_model import Simulator
from support.further_sdks import FURTHER_SDKS
from support.gateway import House, house, model_of
from support.sdk import SDKS
from support.talk import ask
from support.typed import text_of
from surfaces.gateway.cells import whole_and_streamed

MAIL, CARD, PHONE = "jane.doe@example.org", "4111 1111 1111 1111", "+44 20 7946 0958"
SAID = f"Write to {MAIL} that {CARD} was used, or call {PHONE}; {MAIL} again."
MASKED = "Write to <EMAIL_1> that <CARD_1> was used, or call <PHONE_1>; <EMAIL_1> again."
TOML = """
[inference.pipeline]
profile = "own"
[inference.pipeline.profiles.own]
layers = ["privacy"]
"""
PROVIDERS = ("deepseek", "anthropic", "gemini", "openai_responses")
SIZES = (1, 5)
ALL_SDKS: dict[str, Any] = {**SDKS, **FURTHER_SDKS}


def echo(conversation: Conversation) -> Turn:
    """Say what was asked, in the thinking, the answer and, where there are tools, in a call."""
    question = conversation.question
    calls = (ToolCall("weather", {"city": question}),) if conversation.tools and not conversation.tool_results else ()
    if conversation.schema is not None:
        question = json.dumps({"city": question})
    return Turn(text=question, reasoning=question, tool_calls=calls)


def simulator(name: str = "deepseek", size: int = 1) -> Simulator:
    return Simulator(name, script=Script(otherwise=echo), delta_size=size)


def values_in(sent: Any) -> list[str]:
    return [value for value in (MAIL, CARD, PHONE) if value in json.dumps(sent, ensure_ascii=False)]


@pytest.fixture(scope="module", params=SIZES, ids=[f"pieces of {size}" for size in SIZES])
def town(request: pytest.FixtureRequest) -> Iterator[House]:
    """Run a gateway over providers that give back what they are asked, in pieces of some characters."""
    with house([simulator(name, request.param) for name in PROVIDERS], toml=TOML) as running:
        yield running


@pytest.fixture(scope="module")
def sdks(town: House) -> Iterator[dict[str, Any]]:
    """Return every official SDK, asking that gateway."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(closing(sdk(town.address))) for name, sdk in ALL_SDKS.items()}


@pytest.mark.sampled(30)
@whole_and_streamed
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", ALL_SDKS)
def test_a_client_gets_its_values_back_and_no_provider_sees_them(
    town: House, sdks: dict[str, Any], name: str, provider: str, stream: bool
) -> None:
    sdk = sdks[name]
    heard = sdk.ask(model_of(provider), sdk.said(SAID), stream=stream, tools=True)
    sent = town.last(provider)
    assert values_in(sent) == []
    assert MASKED in json.dumps(sent)
    assert heard.text == SAID
    assert heard.reasoning in ("", SAID)
    assert [call.arguments for call in heard.calls] == [{"city": SAID}]


@pytest.mark.parametrize("name", SDKS)
def test_later_turns_send_the_same_placeholders(town: House, sdks: dict[str, Any], name: str) -> None:
    sdk, model = sdks[name], model_of("anthropic")
    history = sdk.said(SAID)
    heard = sdk.ask(model, history, stream=True, tools=True)
    first = town.last("anthropic")
    history = [*history, *heard.turn, *sdk.results(heard, f"sent to {MAIL}, as {MAIL.upper()} asked")]
    answer = sdk.ask(model, history, stream=True, tools=True)
    sent = town.last("anthropic")
    assert answer.text == SAID
    assert values_in(sent) == []
    assert "sent to <EMAIL_1>, as <EMAIL_2> asked" in json.dumps(sent)
    assert sent["messages"][: len(first["messages"])] == first["messages"]
    assert json.dumps(sent).count(json.dumps(MASKED)[1:-1]) >= 3


def test_signed_thinking_goes_back_as_it_was_signed(town: House, sdks: dict[str, Any]) -> None:
    sdk, model = sdks["anthropic_messages"], model_of("anthropic")
    heard = sdk.ask(model, sdk.said(SAID), stream=True, tools=True)
    assert heard.reasoning == SAID
    sdk.ask(model, [*sdk.said(SAID), *heard.turn, *sdk.results(heard, "done")], stream=False, tools=True)
    blocks = [
        block for turn in town.last("anthropic")["messages"] for block in turn["content"] if isinstance(block, dict)
    ]
    [thinking] = [block for block in blocks if block["type"] == "thinking"]
    assert thinking["thinking"] == MASKED
    assert thinking["signature"]


@whole_and_streamed
@pytest.mark.parametrize("name", ["openai_chat", "openai_responses"])
def test_thinking_that_bardo_puts_back_is_masked(name: str, stream: bool) -> None:
    with (
        house([simulator("anthropic")], toml=TOML, replay=ReplayKeeper(MemoryStore())) as running,
        closing(SDKS[name](running.address)) as sdk,
    ):
        model = model_of("anthropic")
        heard = sdk.ask(model, sdk.said(SAID), stream=stream, tools=True)
        turn = [{key: value for key, value in one.items() if "reasoning" not in key} for one in heard.turn]
        turn = [one for one in turn if one.get("type") != "reasoning"]
        sdk.ask(model, [*sdk.said(SAID), *turn, *sdk.results(heard, f"sent to {MAIL}")], stream=stream, tools=True)
        sent = running.last("anthropic")
        blocks = [block for one in sent["messages"] for block in one["content"] if isinstance(block, dict)]
        [thinking] = [block for block in blocks if block["type"] == "thinking"]
        assert thinking["thinking"] == MASKED
        assert thinking["signature"]
        assert values_in(sent) == []


@whole_and_streamed
def test_a_typed_answer_is_restored(town: House, stream: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema, "strict": True}}
    answer = ask(
        town.address, "openai_chat", model_of("openai_responses"), stream=stream, question=SAID, response_format=form
    )
    assert answer.status == 200
    if stream:
        said = "".join(
            one["choices"][0]["delta"].get("content") or "" for one in answer.payloads[:-1] if one["choices"]
        )
    else:
        said = answer.json["choices"][0]["message"]["content"]
    assert json.loads(said) == {"city": SAID}


def settings(**keys: Any) -> str:
    return (
        TOML
        + "[inference.pipeline.privacy]\n"
        + "".join(f"{name} = {json.dumps(value)}\n" for name, value in keys.items())
    )


def asked(toml: str, question: str = SAID, **further: Any) -> tuple[Any, Any, Any]:
    """Return the answer, what the provider got, and the row in the log."""
    with house([simulator()], toml=toml, keep_content=True) as running:
        answer = ask(running.address, "openai_chat", model_of("deepseek"), question=question, **further)
        arrived = running.arrived("deepseek")
        return answer, arrived[-1].body if arrived else None, running.log.row(answer.headers["x-bardo-request-id"])


def test_the_receipt_counts_kinds_and_holds_no_value() -> None:
    answer, _, row = asked(TOML, bardo={"include": ["receipt"]})
    [receipt] = answer.json["bardo"]["receipt"]["pipeline"]["layers"]
    assert receipt["saw"] == {"texts": 1, "CREDIT_CARD": 1, "EMAIL_ADDRESS": 1, "PHONE_NUMBER": 1}
    assert receipt["did"] == "masked 3 values"
    assert values_in(receipt) == []
    assert values_in(row.pipeline) == []


@pytest.mark.parametrize("stream", [False, True])
def test_the_log_keeps_what_was_masked(stream: bool) -> None:
    answer, _, row = asked(TOML, stream=stream)
    assert MAIL in answer.text or stream
    assert MASKED in row.request_content
    assert MASKED in row.reply_content
    assert values_in(row.request_content + row.reply_content + row.sent_content) == []


def test_report_sends_the_values_and_counts_them() -> None:
    _, sent, row = asked(settings(mode="report"))
    assert values_in(sent) == [MAIL, CARD, PHONE]
    [receipt] = row.pipeline["layers"]
    assert (receipt["did"], receipt["saw"]["EMAIL_ADDRESS"]) == ("found 3 values", 1)


def test_block_refuses_the_call_and_says_why_without_the_values() -> None:
    answer, sent, row = asked(settings(mode="block"))
    assert (answer.status, sent) == (400, None)
    assert "CREDIT_CARD (1), EMAIL_ADDRESS (1), PHONE_NUMBER (1)" in answer.text
    assert values_in(answer.text) == []
    assert row.request_content is None
    harmless, _, _ = asked(settings(mode="block"), question="Hello")
    assert harmless.status == 200


def test_a_request_without_personal_data_is_not_changed() -> None:
    answer, sent, row = asked(TOML, question="What is 27 * 43?")
    assert sent["messages"] == [{"role": "user", "content": "What is 27 * 43?"}]
    [receipt] = row.pipeline["layers"]
    assert "did" not in receipt
    assert "What is" in row.request_content
    assert answer.status == 200


def test_only_what_is_configured_is_masked() -> None:
    _, sent, _ = asked(settings(entities=["CREDIT_CARD"], allowed=[]))
    assert values_in(sent) == [MAIL, PHONE]
    _, sent, _ = asked(settings(allowed=["*@EXAMPLE.org"], never=["PHONE_NUMBER"]))
    assert values_in(sent) == [MAIL, PHONE]
    own = '[inference.pipeline.privacy.patterns.STAFF]\nmatch = "E-[0-9]{6}"\nlabel = "STAFF"\n'
    _, sent, _ = asked(TOML + own, question="Ask E-123456 and E-1234567.")
    assert "Ask <STAFF_1> and E-1234567." in json.dumps(sent)


def test_words_of_the_client_are_not_taken_for_placeholders() -> None:
    question = f"Copy EMAIL_1 and <email_2> for {MAIL}."
    answer, sent, _ = asked(TOML, question=question)
    assert "Copy EMAIL_1 and <email_2> for <EMAIL_3>." in json.dumps(sent)
    assert answer.json["choices"][0]["message"]["content"] == question


def test_a_picture_is_sent_and_said_not_to_be_searched() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    with house([simulator()], toml=TOML) as running:
        body = {"role": "user", "content": [{"type": "text", "text": SAID}, picture]}
        answer = ask(running.address, "openai_chat", model_of("deepseek"), messages=[body])
        assert "privacy.pictures" in answer.headers["x-bardo-degraded"]


def test_a_call_that_could_not_be_searched_is_not_sent() -> None:
    def broken(parts: Any) -> Any:
        from bardo.context.privacy.layer import PrivacyLayer

        return PrivacyLayer("mask", ["EMAIL"])  # Nobody performs its effect.

    with house([simulator()], toml=TOML, layers={"privacy": broken}) as running:
        answer = ask(running.address, "openai_chat", model_of("deepseek"), question=SAID)
        assert answer.status == 500
        assert values_in(answer.text) == []
        assert running.arrived("deepseek") == []


def test_a_caller_cannot_turn_it_off_where_the_profile_has_it() -> None:
    answer, sent, _ = asked(TOML, bardo={"layers": {"privacy": False}})
    assert values_in(sent) == []
    assert "pipeline.privacy" in answer.headers["x-bardo-degraded"]


@pytest.mark.parametrize("named", ["off", "minimal", "standard"])
def test_a_caller_cannot_leave_it_by_another_profile(named: str) -> None:
    answer, sent, row = asked(TOML, bardo={"pipeline": named})
    assert values_in(sent) == []
    assert answer.json["choices"][0]["message"]["content"] == SAID
    assert "pipeline.privacy" in answer.headers["x-bardo-degraded"]
    assert row.pipeline["profile"] == named
    _, sent, _ = asked(TOML.replace("profile =", "locked = []\nprofile ="), bardo={"pipeline": named})
    assert values_in(sent) == [MAIL, CARD, PHONE]


FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "contact",
        "schema": {
            "type": "object",
            "properties": {"mail": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["mail", "count"],
            "additionalProperties": False,
        },
    },
}


@whole_and_streamed
def test_a_model_that_is_asked_again_for_a_typed_answer_sees_no_value(stream: bool) -> None:
    wrong, right = Turn(text='{"mail": "<EMAIL_1>", "count": "many"}'), Turn(text='{"mail": "<EMAIL_1>", "count": 2}')
    plain = Simulator("deepseek", script=Script(turns=(wrong, right), in_order=True), delta_size=1)
    with house([plain], toml=TOML) as running:
        answer = ask(
            running.address, "openai_chat", model_of("deepseek"), stream=stream, question=SAID, response_format=FORM
        )
        assert answer.status == 200
        assert json.loads(text_of("openai_chat", answer, stream=stream)) == {"mail": MAIL, "count": 2}
        asked = running.arrived("deepseek")
        assert len(asked) == 2
        assert [values_in(one.body) for one in asked] == [[], []]
        assert json.dumps(asked[1].body).count("<EMAIL_1>") > json.dumps(asked[0].body).count("<EMAIL_1>")


def test_a_model_that_judges_an_answer_sees_no_value() -> None:
    judge = "anthropic/claude-haiku-4-5"
    verdict = Turn(text='{"agrees": true, "why": "it does"}')
    simulators = [simulator(), Simulator("anthropic", script=Script(turns=(verdict,)))]
    with house(simulators, toml=TOML) as running:
        answer = ask(running.address, "openai_chat", model_of("deepseek"), question=SAID, bardo={"verify": judge})
        assert answer.json["choices"][0]["message"]["content"] == SAID
        [judged] = running.arrived("anthropic")
        assert values_in(judged.body) == []
        assert json.dumps(judged.body).count("<EMAIL_1>") >= 2
