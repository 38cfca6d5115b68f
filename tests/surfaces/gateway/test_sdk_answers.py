"""Every official library gets the answer, the thinking and the counts of every provider, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from bardo.simulators import Script, Turn, Usage
from support.any_model import Simulator
from support.gateway import House, house, model_of
from support.sdk import SDKS, Sdk
from support.talk import QUESTION, SCHEMA, THOUGHT, WEATHER, request
from surfaces.gateway.cells import PROVIDERS, SPEAKERS, each_sdk, each_sdk_and_provider, whole_and_streamed

pytestmark = pytest.mark.each_python

# OpenAI's Chat Completions never shows thinking, it only counts it.
COUNTS_ONLY = "openai_chat"
# A stream whose prompt held the opening tag looks like plain text until the closing one comes.
OPENED_IN_THE_PROMPT = "inline_think_implicit"


@each_sdk_and_provider([name for name in PROVIDERS if name != OPENED_IN_THE_PROMPT])
@whole_and_streamed
def test_answer_and_thinking_arrive(town: House, sdk: Sdk, provider: str, stream: bool) -> None:
    heard = sdk.ask(model_of(provider), sdk.said(QUESTION), stream=stream)
    assert heard.text.strip() == "1161"
    assert heard.stop == sdk.stops[0]
    assert (THOUGHT in heard.reasoning) is (provider != COUNTS_ONLY)
    assert heard.input_tokens
    assert heard.output_tokens
    assert heard.output_tokens > (heard.reasoning_tokens or 0)


@each_sdk
@whole_and_streamed
def test_text_without_an_opening_tag_arrives_whole(town: House, sdk: Sdk, stream: bool) -> None:
    heard = sdk.ask(model_of(OPENED_IN_THE_PROMPT), sdk.said(QUESTION), stream=stream)
    assert THOUGHT in heard.text + heard.reasoning
    assert heard.text.endswith("1161")


@each_sdk
@whole_and_streamed
@pytest.mark.parametrize("provider", SPEAKERS)
def test_a_plain_question_is_answered(town: House, sdk: Sdk, provider: str, stream: bool) -> None:
    heard = sdk.ask(model_of(provider), sdk.said("Say hello."), stream=stream, reasoning=False)
    assert heard.text == "This is a simulated answer to: Say hello."
    assert heard.stop == sdk.stops[0]


COUNTED = Turn(
    reasoning="Thought.",
    text="Said.",
    usage=Usage(100, 20, 30, cached_input_tokens=40, cache_write_tokens=10),
)


@pytest.fixture(scope="module")
def counting() -> Iterator[dict[str, Sdk]]:
    simulators = [Simulator(name, script=Script((COUNTED,))) for name in SPEAKERS]
    with house(simulators) as running, ExitStack() as stack:
        yield {name: stack.enter_context(closing(kind(running.address))) for name, kind in SDKS.items()}


@pytest.mark.parametrize("name", list(SDKS))
@whole_and_streamed
@pytest.mark.parametrize("provider", SPEAKERS)
def test_counts_mean_the_same_in_every_library(
    counting: dict[str, Sdk], name: str, provider: str, stream: bool
) -> None:
    sdk = counting[name]
    heard = sdk.ask(model_of(provider), sdk.said("Hello."), stream=stream)
    assert (heard.input_tokens, heard.output_tokens, heard.cached_tokens) == (100, 50, 40)
    assert heard.reasoning_tokens == 30


def test_libraries_list_the_models_of_all_providers(town: House, sdks: dict[str, Sdk]) -> None:
    lists = {name: sdk.models() for name, sdk in sdks.items()}
    shown = lists.pop("anthropic_messages")
    assert all(listed == lists["openai_chat"] for listed in lists.values())
    # Agents that keep Claude's names alone find every model in the list of Anthropic's form, behind `anthropic/` too.
    assert sorted(one for one in shown if one in lists["openai_chat"]) == sorted(lists["openai_chat"])
    assert all(one.startswith("anthropic/") for one in shown if one not in lists["openai_chat"])
    assert len(set(lists["openai_chat"])) == len(lists["openai_chat"]) > len(PROVIDERS)


@each_sdk
def test_every_listed_model_can_be_asked(town: House, sdk: Sdk) -> None:
    for model in sdk.models():
        assert sdk.ask(model, sdk.said(QUESTION), stream=False).text.strip().endswith("1161")


def test_anthropics_library_counts_tokens(town: House, sdks: dict[str, Sdk]) -> None:
    client = sdks["anthropic_messages"].client  # type: ignore[attr-defined]
    turns = [{"role": "user", "content": "What is the weather in Paris?"}]
    alone = client.messages.count_tokens(model="claude-sonnet-4-5", messages=turns)
    tool = {"name": "weather", "description": "Tell the weather", "input_schema": {"type": "object"}}
    beside_a_tool = client.messages.count_tokens(model="claude-sonnet-4-5", messages=turns, tools=[tool])
    assert beside_a_tool.input_tokens > alone.input_tokens > 0


@pytest.mark.parametrize("provider", SPEAKERS)
@pytest.mark.parametrize("question", [QUESTION, WEATHER])
def test_a_chunk_of_gemini_has_thoughts_text_or_calls_alone(town: House, provider: str, question: str) -> None:
    # A client that keeps one of them for each chunk lost the others (google-genai-haystack 7.0, 2026).
    function = {"name": "weather", "parametersJsonSchema": SCHEMA}
    body = {
        "contents": [{"role": "user", "parts": [{"text": question}]}],
        "tools": [{"functionDeclarations": [function]}] if question == WEATHER else [],
        "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    }
    path = f"/v1beta/models/{model_of(provider)}:streamGenerateContent?alt=sse"
    answer = request(town.address, "POST", path, body)
    kinds = [
        {
            "thought" if part.get("thought") else "call" if "functionCall" in part else "text"
            for part in candidate["content"]["parts"]
        }
        for _, chunk in answer.events
        for candidate in chunk.get("candidates", ())
    ]
    assert {name for one in kinds for name in one} >= {"thought", "call" if question == WEATHER else "text"}
    assert [one for one in kinds if len(one) > 1] == []
