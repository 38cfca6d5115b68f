"""Options of one call against real sockets: a bound on its time, a stream that is iterated, a chosen tool; and how a reply is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

import bardo
from bardo import explain
from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings
from bardo.simulators import SimulatedProvider, simulate
from bardo.structured import extract
from bardo.values.errors import UpstreamTimeout
from bardo.values.events import ContentChunk, Finish
from bardo.values.response import Response
from bardo.values.usage import Usage

pytestmark = pytest.mark.each_python


def asked(provider: SimulatedProvider, path: str = "/chat/completions") -> Any:
    """Return the body of the last question: servers are also asked what they know of their models."""
    return next(one.body for one in reversed(provider.requests) if one.path.endswith(path))


def weather(city: str) -> str:
    """Give the weather of a city."""
    return city


@pytest.fixture
def provider() -> Iterator[SimulatedProvider]:
    with simulate("vllm", models=[]) as running:
        yield running


@pytest.fixture
def client(provider: SimulatedProvider) -> Iterator[bardo.Client]:
    entry = ProviderEntry(id="lab", preset="vllm", base_url=provider.base_url, models=("qwen",))
    with bardo.Client(Settings(providers=(entry,), log=LogSettings(enabled=False))) as made:
        yield made


def test_a_call_that_takes_longer_than_its_timeout_ends(client: bardo.Client, provider: SimulatedProvider) -> None:
    gate = provider.hold()
    with pytest.raises(UpstreamTimeout, match=r"longer than 0\.2 seconds"):
        client.respond("Hello.", model="qwen", timeout=0.2)
    gate.release()
    assert client.respond("Hello.", model="qwen", timeout=60).text


def test_a_stream_that_takes_longer_than_its_timeout_ends(client: bardo.Client, provider: SimulatedProvider) -> None:
    gate = provider.hold(after=2)
    with pytest.raises(UpstreamTimeout), client.stream("Hello.", model="qwen", timeout=0.5) as reply:
        list(reply)
    gate.release()


def test_a_stream_gives_its_events(client: bardo.Client) -> None:
    with client.stream("Hello.", model="qwen") as reply:
        events = list(reply)
        assert "".join(event.text for event in events if isinstance(event, ContentChunk)) == reply.response().text
    assert any(isinstance(event, Finish) for event in events)


def test_a_function_is_a_tool_that_the_model_calls(client: bardo.Client, provider: SimulatedProvider) -> None:
    reply = client.respond("What is it like in Ulm?", model="qwen", tools=[weather], tool_choice=weather, max_tokens=99)
    assert [call.name for call in reply.tool_calls] == ["weather"]
    assert list(reply.tool_calls[0].arguments) == ["city"]
    body = asked(provider)
    assert body["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    assert body["max_tokens"] == 99


def test_penalties_and_further_fields_reach_the_provider(client: bardo.Client, provider: SimulatedProvider) -> None:
    client.respond("x", model="qwen", presence_penalty=0.5, frequency_penalty=0.25, n=2, extra={"priority": 3})
    body = asked(provider)
    assert (body["presence_penalty"], body["frequency_penalty"], body["n"], body["priority"]) == (0.5, 0.25, 2, 3)


def test_models_are_listed(client: bardo.Client) -> None:
    assert [model.id for model in client.models() if not model.route] == ["qwen"]


def test_a_reply_is_one_short_line() -> None:
    reply = bardo.parse(f"<think>Hm.</think>{'long ' * 100}", model="Qwen/Qwen3-32B")
    shown = repr(reply)
    assert shown.startswith("Response(model='Qwen/Qwen3-32B', text='long long")
    assert len(shown) < 200


def test_a_notebook_folds_the_thinking_and_takes_nothing_for_markup() -> None:
    reply = bardo.parse("<think>Is <b>that</b> it?</think><script>alert(1)</script>", model="Qwen/Qwen3-32B")
    shown = reply._repr_html_()
    assert "<details><summary>Thinking</summary>" in shown
    assert "&lt;b&gt;that&lt;/b&gt;" in shown
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


def test_an_empty_reply_is_shown_too() -> None:
    assert repr(Response()) == "Response(finish='unknown')"
    assert Response()._repr_html_().startswith("<div")


class Point(BaseModel):
    north: int
    names: list[str] = []


def test_a_type_may_stand_in_the_place_of_a_schema() -> None:
    found = extract('Here: ```json\n{"north": "5"}\n```', Point)
    assert found.ok
    assert found.value == Point(north=5)
    wrong = extract('{"north": "far"}', Point)
    assert not wrong.ok


@pytest.mark.parametrize("stream", [False, True])
def test_a_second_model_judges_the_answer(provider: SimulatedProvider, stream: bool) -> None:
    with simulate("deepseek", models=[]) as second:
        second.play('{"agrees": false, "why": "It is cold."}')
        provider.play("It is warm.")
        entries = (
            ProviderEntry(id="lab", preset="vllm", base_url=provider.base_url, models=("qwen",)),
            ProviderEntry(id="other", preset="deepseek", base_url=second.base_url, api_key_env="PATH", models=("m1",)),
        )
        with bardo.Client(Settings(providers=entries, log=LogSettings(enabled=False))) as client:
            if stream:
                with client.stream("Is it warm?", model="qwen", verify="other/m1") as events:
                    reply = events.response()
            else:
                reply = client.respond("Is it warm?", model="qwen", verify="other/m1")
    assert reply.text == "It is warm."
    assert reply.bardo["verification"]["agrees"] is False
    assert "verification" in [one.what for one in reply.degraded]


def test_further_fields_of_chat_reach_a_provider_of_another_dialect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAB_KEY", "any")
    with simulate("openai_responses", models=[]) as running:
        entry = ProviderEntry(
            id="lab", preset="openai", dialect="openai_responses", base_url=running.base_url, api_key_env="LAB_KEY"
        )
        settings = Settings(providers=(entry,), log=LogSettings(enabled=False))
        extra = {"store": True, "user": "u", "verbosity": "low", "web_search_options": {}}
        with bardo.Client(settings) as client:
            reply = client.respond("Hello.", model="lab/gpt-4.1", extra=extra)
        body: Any = asked(running, "/responses")
    assert reply.degraded == ()
    assert (body["store"], body["user"], body["text"]) == (True, "u", {"verbosity": "low"})
    assert body["tools"] == [{"type": "web_search"}]


def test_chains_and_streams_are_shown_in_one_short_line(client: bardo.Client) -> None:
    chain = client.respond("Hello.", model="qwen", reasoning="low").reasoning
    assert repr(chain).startswith("ReasoningChain(visibility='visible', content=")
    assert len(repr(chain)) < 300
    assert repr(client.stream("Hello.", model="qwen")) == "<bardo.ReplyStream>"


def test_a_repr_of_counts_explanations_and_typed_answers_is_short() -> None:
    assert (
        repr(Usage(input_tokens=0, output_tokens=5, raw={"a": "b" * 5000})) == "Usage(input_tokens=0, output_tokens=5)"
    )
    assert repr(extract("[0]", {"type": "array"})) == "Extraction(value=[0])"
    assert len(repr(extract("x" * 9000, {"type": "array"}))) < 400
    body = {
        "model": "claude-opus-4-8",
        "messages": [{"role": "user", "content": "word " * 5000}],
        "reasoning_effort": "low",
    }
    shown = repr(explain(body, dialect="openai_chat", provider="anthropic"))
    assert shown.startswith(
        "Explanation(provider='anthropic', model='claude-opus-4-8', path='/v1/messages', intent='low'"
    )
    assert len(shown) < 400
    found = explain(body, dialect="openai_chat", provider="anthropic")
    assert (
        repr(found.route)
        == "Route(provider='anthropic', model='claude-opus-4-8', dialect='anthropic_messages', candidates=1)"
    )
    assert repr(found.receipt).startswith("PlannedReceipt(intent='low', emitted={")
    assert "assumed" not in repr(found.receipt)
    assert repr(found.reading) == "TextReading()"
    off = explain({**body, "reasoning_effort": "none"}, dialect="openai_chat", provider="anthropic")
    assert "thinks=False" in repr(off.receipt)
    assert repr(Finish("stop", "end_turn")) == "Finish(reason='stop', raw='end_turn')"
    assert repr(Finish("stop", choice=1)) == "Finish(reason='stop', choice=1)"
