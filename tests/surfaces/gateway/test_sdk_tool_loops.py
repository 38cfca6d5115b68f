"""A whole tool loop with every official library over every provider: call, result, answer.

The second request is made of the library's own objects of the first reply, so what a provider signed travels through the client and back.
"""

from __future__ import annotations

import re

import pytest

from bardo.simulators import PRESETS
from support.gateway import House, model_of
from support.sdk import Heard, Sdk
from support.talk import WEATHER
from surfaces.gateway.cells import PROVIDERS, each_sdk, each_sdk_and_provider, whole_and_streamed

_SEALED = re.compile(rb'"(?:signature|thoughtSignature|thought_signature|encrypted_content|data)":\s*"([\w+/=-]{24,})"')
# What gives thinking back as text, by the field it stands in.
_PLAIN = {
    "cerebras": "reasoning",
    "deepseek": "reasoning_content",
    "fireworks": "reasoning_content",
    "groq": "reasoning",
    "ollama": "reasoning",
    "qwen": "reasoning_content",
    "venice": "reasoning_content",
    "vllm": "reasoning",
    "zai": "reasoning_content",
}


def sealed_in(body: bytes) -> list[str]:
    """Return the signatures and ciphertexts in a body, in order; Google's library writes base64 with other letters."""
    return [found.decode().replace("-", "+").replace("_", "/") for found in _SEALED.findall(body)]


def first_half(sdk: Sdk, provider: str, *, stream: bool) -> Heard:
    heard = sdk.ask(model_of(provider), sdk.said(WEATHER), stream=stream, tools=True)
    assert [(call.name, call.arguments) for call in heard.calls] == [("weather", {"city": "Paris"})]
    assert heard.calls[0].id or sdk.name == "ollama", "only Ollama matches results to calls by their names"
    assert heard.stop == sdk.stops[1]
    return heard


def second_half(sdk: Sdk, provider: str, first: Heard, *, stream: bool) -> Heard:
    history = [*sdk.said(WEATHER), *first.turn, *sdk.results(first, "sunny")]
    heard = sdk.ask(model_of(provider), history, stream=stream, tools=True)
    assert "The tool says: " in heard.text
    assert "sunny" in heard.text
    assert heard.stop == sdk.stops[0]
    return heard


@each_sdk_and_provider([name for name in PROVIDERS if PRESETS[name].has_tools])
@whole_and_streamed
def test_a_tool_loop_reaches_its_answer(town: House, sdk: Sdk, provider: str, stream: bool) -> None:
    first = first_half(sdk, provider, stream=stream)
    second_half(sdk, provider, first, stream=stream)


@each_sdk
@whole_and_streamed
@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai_responses", "openrouter"])
def test_what_a_provider_sealed_comes_back_unchanged(town: House, sdk: Sdk, provider: str, stream: bool) -> None:
    first = first_half(sdk, provider, stream=stream)
    sealed = sealed_in(town.sent(provider))
    second_half(sdk, provider, first, stream=stream)
    returned = sealed_in(town.arrived(provider)[-1].raw)
    # OpenAI streams a first state of its ciphertext and then the final one, which is what counts.
    assert sealed[-1] in returned
    assert set(returned) <= set(sealed)


@each_sdk_and_provider(_PLAIN)
@whole_and_streamed
def test_thinking_comes_back_where_the_provider_reads_it(town: House, sdk: Sdk, provider: str, stream: bool) -> None:
    first = first_half(sdk, provider, stream=stream)
    second_half(sdk, provider, first, stream=stream)
    turn = next(message for message in town.last(provider)["messages"] if message["role"] == "assistant")
    assert turn[_PLAIN[provider]].strip() == first.reasoning.strip() != ""
