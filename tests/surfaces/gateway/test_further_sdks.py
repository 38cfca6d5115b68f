"""The official libraries of Ollama, AWS, Cohere and Interactions over every kind of provider: answers, thinking, counts and tool loops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
from bardo.simulators import Script
from support.any_model import Simulator
from support.further_sdks import FURTHER_SDKS
from support.gateway import House, Remembering, house, model_of
from support.sdk import Sdk
from support.talk import QUESTION, THOUGHT
from surfaces.gateway.cells import SPEAKERS, whole_and_streamed
from surfaces.gateway.test_sdk_answers import COUNTED
from surfaces.gateway.test_sdk_tool_loops import first_half, sealed_in, second_half

# One provider for each dialect, those of these clients among them.
EACH_DIALECT = (*SPEAKERS, "bedrock", "cohere", "gemini_interactions", "ollama_native")
SEALING = ("anthropic", "bedrock", "gemini", "gemini_interactions", "openai_responses", "openrouter")
# Its message has no field for opaque state, and its library drops what it does not know: the gateway remembers it.
FORGETFUL = "ollama"


@pytest.fixture(scope="module")
def town() -> Iterator[House]:
    with house([Remembering(name) for name in EACH_DIALECT]) as running:
        yield running


@pytest.fixture(scope="module")
def further(town: House) -> Iterator[dict[str, Sdk]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(closing(kind(town.address))) for name, kind in FURTHER_SDKS.items()}


@pytest.fixture
def sdk(request: pytest.FixtureRequest, further: dict[str, Sdk]) -> Sdk:
    return further[request.param]


each_sdk = pytest.mark.parametrize("sdk", list(FURTHER_SDKS), indirect=True)
each_provider = pytest.mark.parametrize("provider", EACH_DIALECT)


@each_sdk
@whole_and_streamed
@each_provider
def test_answer_and_thinking_arrive(sdk: Sdk, provider: str, stream: bool) -> None:
    heard = sdk.ask(model_of(provider), sdk.said(QUESTION), stream=stream)
    assert heard.text.strip() == "1161"
    assert heard.stop == sdk.stops[0]
    assert THOUGHT in heard.reasoning
    assert heard.input_tokens
    assert heard.output_tokens
    assert heard.output_tokens > (heard.reasoning_tokens or 0)


@each_sdk
@whole_and_streamed
@each_provider
def test_a_plain_question_is_answered(sdk: Sdk, provider: str, stream: bool) -> None:
    heard = sdk.ask(model_of(provider), sdk.said("Say hello."), stream=stream, reasoning=False)
    assert heard.text == "This is a simulated answer to: Say hello."
    assert heard.stop == sdk.stops[0]


@each_sdk
@whole_and_streamed
@each_provider
def test_a_tool_loop_reaches_its_answer(sdk: Sdk, provider: str, stream: bool) -> None:
    second_half(sdk, provider, first_half(sdk, provider, stream=stream), stream=stream)


@pytest.mark.parametrize("name", list(FURTHER_SDKS))
@whole_and_streamed
@pytest.mark.parametrize("provider", SEALING)
def test_what_a_provider_sealed_comes_back_unchanged(
    town: House, further: dict[str, Sdk], name: str, provider: str, stream: bool
) -> None:
    if name == FORGETFUL:
        with (
            house([Remembering(provider)], replay=ReplayKeeper(MemoryStore())) as remembering,
            closing(FURTHER_SDKS[name](remembering.address)) as sdk,
        ):
            _check_seals(remembering, sdk, provider, stream=stream)
    else:
        _check_seals(town, further[name], provider, stream=stream)


def _check_seals(running: House, sdk: Sdk, provider: str, *, stream: bool) -> None:
    first = first_half(sdk, provider, stream=stream)
    sealed = sealed_in(running.sent(provider))
    second_half(sdk, provider, first, stream=stream)
    returned = sealed_in(running.arrived(provider)[-1].raw)
    assert sealed[-1] in returned
    assert set(returned) <= set(sealed)


@pytest.fixture(scope="module")
def counting() -> Iterator[dict[str, Sdk]]:
    simulators = [Simulator(name, script=Script((COUNTED,))) for name in SPEAKERS]
    with house(simulators) as running, ExitStack() as stack:
        yield {name: stack.enter_context(closing(kind(running.address))) for name, kind in FURTHER_SDKS.items()}


@pytest.mark.parametrize("name", list(FURTHER_SDKS))
@whole_and_streamed
@pytest.mark.parametrize("provider", SPEAKERS)
def test_counts_mean_the_same_in_every_library(
    counting: dict[str, Sdk], name: str, provider: str, stream: bool
) -> None:
    sdk = counting[name]
    heard = sdk.ask(model_of(provider), sdk.said("Hello."), stream=stream)
    assert (heard.input_tokens, heard.output_tokens) == (100, 50)
    assert heard.cached_tokens in (40, None)
    assert heard.reasoning_tokens in (30, None)
