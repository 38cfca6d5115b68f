"""A prompt that no model can take is refused before it is sent, in the words and by the exceptions of each client's API."""

from __future__ import annotations

import anthropic
import openai
import pytest

from bardo.simulators import Script, Turn, Usage
from support.any_model import Simulator
from support.gateway import house
from support.talk import CLIENTS, ask
from surfaces.gateway.cells import whole_and_streamed

WINDOW = '[inference.pipeline]\nprofile = "fast"\n[[models]]\nprovider = "deepseek"\nmatch = ["m"]\ncontext = 50\n'
LONG = "What is the product of 27 and 43? " * 40


@pytest.mark.parametrize("client", CLIENTS)
@whole_and_streamed
def test_a_prompt_that_is_too_long_is_refused_with_the_limit(client: str, stream: bool) -> None:
    with house([Simulator("deepseek")], toml=WINDOW) as running:
        assert ask(running.address, client, "deepseek/m", stream=stream).status == 200
        refused = ask(running.address, client, "deepseek/m", stream=stream, question=LONG)
        assert refused.status == 400
        assert "50" in refused.text
        assert len(running.arrived("deepseek")) == 1


def test_official_sdks_raise_their_own_error() -> None:
    with house([Simulator("deepseek")], toml=WINDOW) as running:
        with (
            openai.OpenAI(base_url=f"{running.address}/v1", api_key="k", max_retries=0) as client,
            pytest.raises(openai.BadRequestError) as refused,
        ):
            client.chat.completions.create(model="deepseek/m", messages=[{"role": "user", "content": LONG}])
        assert refused.value.code == "context_length_exceeded"
        assert "maximum context length is 50 tokens" in refused.value.message
        with (
            anthropic.Anthropic(base_url=running.address, api_key="k", max_retries=0) as other,
            pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 50 maximum"),
        ):
            other.messages.create(model="deepseek/m", max_tokens=9, messages=[{"role": "user", "content": LONG}])


def test_a_long_prompt_goes_to_the_model_that_takes_it() -> None:
    toml = WINDOW + '[aliases]\nboth = ["deepseek/m", "mistral/m"]\n'
    with house([Simulator("deepseek"), Simulator("mistral")], toml=toml) as running:
        assert ask(running.address, "openai_chat", "both").headers["x-bardo-provider"] == "deepseek"
        long = ask(running.address, "openai_chat", "both", question=LONG)
        assert long.headers["x-bardo-provider"] == "mistral"
        assert "model" in long.headers["x-bardo-degraded"].split(", ")
        row = running.log.row(long.headers["x-bardo-request-id"])
        assert row.pipeline is not None
        assert [one["did"] for one in row.pipeline["layers"] if one["layer"] == "prefilter"] == [
            "passed over deepseek/m"
        ]


def test_what_a_provider_counts_corrects_the_estimate_of_the_next_prompt() -> None:
    few = Script((Turn(text="1161", usage=Usage(20, 4)),))
    with house([Simulator("deepseek", script=few)], toml=WINDOW.replace("50", "500")) as running:
        assert ask(running.address, "openai_chat", "deepseek/m", question=LONG * 2).status == 400
        assert ask(running.address, "openai_chat", "deepseek/m", question=LONG).status == 200
        assert ask(running.address, "openai_chat", "deepseek/m", question=LONG * 2).status == 200
