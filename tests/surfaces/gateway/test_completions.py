"""OpenAI's older completions, over chat: prompts in, text completions out, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from bardo.simulators import Script, Turn
from bardo.simulators.faults import Fault
from support.any_model import Simulator
from support.gateway import House, house, model_of
from support.sdk import openai_client
from support.talk import QUESTION, request

PROVIDERS = ("anthropic", "gemini", "openai_responses", "openai_chat", "deepseek", "ollama_native", "cohere", "bedrock")


@pytest.fixture(scope="module")
def sdk(town: House) -> Iterator[Any]:
    with closing(openai_client(town.address)) as client:
        yield client


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_prompt_is_completed_by_every_provider(town: House, sdk: Any, provider: str) -> None:
    reply = sdk.completions.with_raw_response.create(model=model_of(provider), prompt=QUESTION)
    done = reply.parse()
    assert done.object == "text_completion"
    [choice] = done.choices
    assert (choice.index, choice.text.strip(), choice.finish_reason, choice.logprobs) == (0, "1161", "stop", None)
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens
    row = town.log.row(reply.headers["x-bardo-request-id"])
    assert (row.operation, row.outcome, row.provider) == ("complete", "ok", provider)
    assert row.input_tokens == done.usage.prompt_tokens


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_streamed_completion_says_the_same(sdk: Any, provider: str) -> None:
    asked = {"model": model_of(provider), "prompt": QUESTION}
    whole = sdk.completions.create(**asked)
    chunks = list(sdk.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert {chunk.object for chunk in chunks} == {"text_completion"}
    assert len({chunk.id for chunk in chunks}) == 1
    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(choice.text for choice in choices) == whole.choices[0].text
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["stop"]
    assert [chunk.usage.total_tokens for chunk in chunks if chunk.usage] == [whole.usage.total_tokens]


def test_a_stream_without_usage_has_none(sdk: Any) -> None:
    chunks = list(sdk.completions.create(model="deepseek/m1", prompt=QUESTION, stream=True))
    assert [chunk for chunk in chunks if chunk.usage or not chunk.choices] == []


@pytest.mark.parametrize("stream", [False, True])
def test_several_prompts_are_completed_in_order(town: House, sdk: Any, stream: bool) -> None:
    prompts = ["one", "two", "three"]
    before = len(town.arrived("deepseek"))
    asked = {"model": "deepseek/m1", "prompt": prompts, "echo": True, "stream": stream}
    if stream:
        chunks = list(sdk.completions.create(**asked, stream_options={"include_usage": True}))
        texts = ["".join(c.text for chunk in chunks for c in chunk.choices if c.index == at) for at in range(3)]
        usages = [chunk.usage for chunk in chunks if chunk.usage]
        assert len({chunk.id for chunk in chunks}) == 1
    else:
        whole = sdk.completions.create(**asked)
        assert [choice.index for choice in whole.choices] == [0, 1, 2]
        texts, usages = [choice.text for choice in whole.choices], [whole.usage]
    sent = [incoming.fields["messages"] for incoming in town.arrived("deepseek")[before:]]
    assert sent == [[{"role": "user", "content": prompt}] for prompt in prompts]
    assert all(text.startswith(prompt) and len(text) > len(prompt) for text, prompt in zip(texts, prompts, strict=True))
    [usage] = usages
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_thinking_stands_beside_the_text(sdk: Any) -> None:
    whole = sdk.completions.create(model="deepseek/m1", prompt=QUESTION)
    thought = whole.choices[0].reasoning_content
    chunks = list(sdk.completions.create(model="deepseek/m1", prompt=QUESTION, stream=True))
    streamed = [getattr(choice, "reasoning_content", None) or "" for chunk in chunks for choice in chunk.choices]
    assert thought
    assert "".join(streamed) == thought


def test_parameters_reach_the_provider(town: House, sdk: Any) -> None:
    sdk.completions.create(
        model="vllm/m1",
        prompt="x",
        max_tokens=50,
        temperature=0.5,
        stop=["\n"],
        seed=3,
        user="u",
        logit_bias={"1": 2},
    )
    body = town.last("vllm")
    assert (body["max_tokens"], body["temperature"], body["stop"], body["seed"]) == (50, 0.5, ["\n"], 3)
    assert (body["user"], body["logit_bias"]) == ("u", {"1": 2})
    sdk.completions.create(model="openai_chat/gpt-4o", prompt="x", logprobs=2, n=2)
    body = town.last("openai_chat")
    assert (body["logprobs"], body["top_logprobs"], body["n"]) == (True, 2, 2)


def test_what_a_chat_cannot_do_is_reported(town: House) -> None:
    body = {"model": "deepseek/m1", "prompt": "x", "best_of": 3, "n": 1, "echo": True, "logprobs": 1}
    answer = request(town.address, "POST", "/v1/completions", body)
    assert {"best_of", "logprobs"} <= set(answer.headers["x-bardo-degraded"].split(", "))
    whats = {one["what"] for one in town.log.row(answer.headers["x-bardo-request-id"]).degraded}
    assert {"best_of", "logprobs"} <= whats


def test_the_messages_of_a_chat_are_refused(town: House) -> None:
    body = {"model": "deepseek/m1", "prompt": "x", "messages": [{"role": "user", "content": "y"}]}
    refused = request(town.address, "POST", "/v1/completions", body)
    assert (refused.status, refused.json["error"]["param"]) == (400, "messages")


def test_a_field_that_chat_has_no_name_for_is_sent_on_or_reported(town: House) -> None:
    body = {"prompt": "x", "unheard_of": 1}
    request(town.address, "POST", "/v1/completions", {**body, "model": "vllm/m1"})
    assert town.last("vllm")["unheard_of"] == 1
    answer = request(town.address, "POST", "/v1/completions", {**body, "model": model_of("anthropic")})
    assert "unheard_of" in answer.headers["x-bardo-degraded"]


def test_several_prompts_are_answered_with_the_headers_of_all_their_calls() -> None:
    script = Script((Turn(text="one", reasoning="12345678"), Turn(text="two", reasoning="1234")))
    body = {"model": "vllm/m", "prompt": ["x", "y"], "best_of": 2, "bardo": {"include": ["receipt"]}}
    with house([Simulator("vllm", script=script)]) as running:
        answer = request(running.address, "POST", "/v1/completions", body)
        ids = answer.headers["x-bardo-request-id"].split(", ")
        assert [running.log.row(one).operation for one in ids] == ["complete", "complete"]
    assert (answer.headers["x-bardo-provider"], answer.headers["x-bardo-model"]) == ("vllm", "m")
    assert answer.headers["x-bardo-degraded"] == "best_of"
    calls = answer.json["bardo"]["calls"]
    assert [call["request_id"] for call in calls] == ids
    tokens = [call["receipt"]["observed"]["reasoning_tokens"] for call in calls]
    assert answer.headers["x-bardo-reasoning-tokens"] == str(sum(tokens))
    assert answer.headers["x-bardo-reasoning"].count("intent=none") == 1


def test_a_suffix_is_refused_unless_its_loss_is_allowed(town: House) -> None:
    body = {"model": "deepseek/m1", "prompt": "x", "suffix": "end"}
    refused = request(town.address, "POST", "/v1/completions", body)
    assert (refused.status, refused.json["error"]["param"]) == (400, "suffix")
    assert "/api/generate" in refused.json["error"]["message"], "where the model is asked to fill the gap"
    allowed = request(town.address, "POST", "/v1/completions", {**body, "bardo": {"allow_loss": ["suffix"]}})
    assert allowed.status == 200
    assert "suffix" in allowed.headers["x-bardo-degraded"]


@pytest.mark.parametrize(
    ("prompt", "status"), [(None, 400), ([], 400), ([1, 2], 400), ([[1]], 400), (["x", 5], 400), (["x"] * 65, 400)]
)
def test_a_prompt_that_is_none_is_refused(town: House, prompt: Any, status: int) -> None:
    answer = request(town.address, "POST", "/v1/completions", {"model": "deepseek/m1", "prompt": prompt})
    assert (answer.status, answer.json["error"]["param"].partition("[")[0]) == (status, "prompt")


def test_a_stream_that_breaks_ends_with_an_error(sdk: Any) -> None:
    import openai

    with pytest.raises(openai.APIError):
        list(sdk.completions.create(model="deepseek/m1+fault:cut,after=3", prompt="x", stream=True))


def test_an_error_raises_the_librarys_own(sdk: Any) -> None:
    import openai

    with pytest.raises(openai.NotFoundError):
        sdk.completions.create(model="nobody-has-this", prompt="x")
    with pytest.raises(openai.RateLimitError):
        sdk.completions.create(model="deepseek/m1+fault:status=429", prompt="x")


def test_a_provider_that_fails_is_followed_by_the_next() -> None:
    first = Simulator("vllm", models=["m"])
    second = Simulator("ollama_native", models=["m"], script=Script((Turn(text="from the second"),)))
    with house([first, second], each={"models": ("m",)}) as running, closing(openai_client(running.address)) as client:
        first.fail(Fault(kind="status", status=503))
        done = client.completions.with_raw_response.create(model="m", prompt="x")
        assert done.headers["x-bardo-provider"] == "ollama_native"
        assert done.parse().choices[0].text == "from the second"
