"""What a client is told beside the answer: headers, the `bardo` object, and what it may ask to have left out (GW4)."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.simulators import presets
from support.gateway import House, model_of
from support.talk import CLIENTS, Answer, ask
from surfaces.gateway.cells import SPEAKERS, whole_and_streamed

each_client = pytest.mark.parametrize("client", CLIENTS)
INCLUDE = {"include": ["reasoning_chain", "receipt"]}


def told(answer: Answer, *, stream: bool) -> Any:
    """Return the `bardo` object of an answer; in a stream it stands in one event, and nothing but the end follows."""
    if not stream:
        return answer.json.get("bardo")
    places = [place for place, payload in enumerate(answer.payloads) if _extension(payload)]
    assert len(places) <= 1
    assert all(place >= len(answer.payloads) - 2 for place in places)
    return _extension(answer.payloads[places[0]]) if places else None


def _extension(payload: Any) -> Any:
    if not isinstance(payload, dict):
        return None
    return payload.get("bardo") or payload.get("response", {}).get("bardo")


@each_client
@whole_and_streamed
@pytest.mark.parametrize("provider", SPEAKERS)
def test_headers_say_who_answered(town: House, client: str, provider: str, stream: bool) -> None:
    answer = ask(town.address, client, model_of(provider), stream=stream, thinks=True)
    assert answer.status == 200
    assert answer.headers["x-bardo-provider"] == provider
    assert answer.headers["x-bardo-model"] == model_of(provider).removeprefix(f"{provider}/")
    assert town.log.row(answer.headers["x-bardo-request-id"]).provider == provider
    # How much was thought is known once it is over: a stream's headers are gone by then.
    assert ("x-bardo-reasoning-tokens" in answer.headers) is not stream


@pytest.mark.parametrize(
    ("provider", "tokens", "approximate"),
    [("deepseek", "30", None), ("inline_think", "30", "true"), ("inline_think_implicit", "30", "true")],
)
def test_reasoning_tokens_are_reported_estimated_or_unknown(
    town: House, provider: str, tokens: str, approximate: str | None
) -> None:
    answer = ask(town.address, "openai_chat", model_of(provider))
    assert answer.headers["x-bardo-reasoning-tokens"] == tokens
    assert answer.headers.get("x-bardo-reasoning-tokens-approx") == approximate


@whole_and_streamed
def test_what_could_not_be_honoured_is_in_the_headers(town: House, stream: bool) -> None:
    answer = ask(town.address, "openai_chat", model_of("anthropic"), stream=stream, seed=7, logit_bias={"50256": -100})
    assert answer.status == 200
    assert {"seed", "logit_bias"} <= set(answer.headers["x-bardo-degraded"].split(", "))


@each_client
@whole_and_streamed
@pytest.mark.parametrize("provider", SPEAKERS)
def test_the_chain_is_in_the_body_on_request(town: House, client: str, provider: str, stream: bool) -> None:
    answer = ask(town.address, client, model_of(provider), stream=stream, thinks=True, bardo=INCLUDE)
    assert answer.status == 200
    extension = told(answer, stream=stream)
    assert extension["request_id"] == answer.headers["x-bardo-request-id"]
    assert extension["provider"] == provider
    assert extension["reasoning_chain"]["content"].startswith("I need to work out 27 * 43.")
    assert extension["reasoning_chain"]["reasoning_tokens"] == 30
    steps = extension["reasoning_chain"]["steps"]
    assert "".join(step["content"] for step in steps) == extension["reasoning_chain"]["content"]
    assert extension["receipt"]["observed"]["reasoning_tokens"] == 30
    assert extension["receipt"]["forwarded"] is False


@each_client
@whole_and_streamed
def test_the_header_asks_as_the_body_does(town: House, client: str, stream: bool) -> None:
    headers = {"X-Bardo-Include": "receipt, reasoning_chain"}
    answer = ask(town.address, client, model_of("deepseek"), stream=stream, headers=headers)
    extension = told(answer, stream=stream)
    assert {"receipt", "reasoning_chain"} <= set(extension)


@each_client
@whole_and_streamed
@pytest.mark.parametrize("provider", ["anthropic", "deepseek"])
def test_without_asking_there_is_no_extension(town: House, client: str, provider: str, stream: bool) -> None:
    assert told(ask(town.address, client, model_of(provider), stream=stream), stream=stream) is None


def test_the_extension_lists_degradations_with_reasons(town: House) -> None:
    answer = ask(town.address, "openai_chat", model_of("anthropic"), seed=7, bardo={"include": ["receipt"]})
    (seed,) = [one for one in answer.json["bardo"]["degraded"] if one["what"] == "seed"]
    assert seed["asked"] == 7
    assert seed["why"]


WAYS_TO_OMIT: dict[str, dict[str, Any]] = {
    "header": {"headers": {"X-Bardo-Reasoning": "omit"}},
    "body": {"bardo": {"reasoning": "omit"}},
}


@each_client
@whole_and_streamed
@pytest.mark.parametrize("way", WAYS_TO_OMIT)
@pytest.mark.parametrize("provider", SPEAKERS)
def test_reasoning_is_left_out_where_the_client_says_so(
    town: House, client: str, provider: str, stream: bool, way: str
) -> None:
    answer = ask(town.address, client, model_of(provider), stream=stream, **WAYS_TO_OMIT[way])
    assert answer.status == 200
    assert "1161" in answer.text
    assert "work out" not in answer.text
    assert '"signature' not in answer.text
    assert "reasoning_content" not in answer.text


@whole_and_streamed
@pytest.mark.parametrize("provider", presets())
def test_openrouters_exclude_is_honoured_for_every_provider(town: House, provider: str, stream: bool) -> None:
    answer = ask(town.address, "openai_chat", model_of(provider), stream=stream, reasoning={"exclude": True})
    assert answer.status == 200
    assert "reasoning_content" not in answer.text
    # What the model is called says nothing of its thinking, so that its stream is not held: only a whole reply is read to its end first.
    if provider != "inline_think_implicit" or not stream:
        assert "work out" not in answer.text


@each_client
@whole_and_streamed
@pytest.mark.parametrize(
    "asked",
    [
        {"bardo": {"include": ["everything"]}},
        {"bardo": {"include": "receipt"}},
        {"bardo": {"include": [1]}},
        {"bardo": {"reasoning": "hide"}},
        {"bardo": []},
        {"headers": {"X-Bardo-Include": "everything"}},
        {"headers": {"X-Bardo-Reasoning": "hide"}},
    ],
    ids=str,
)
def test_an_option_bardo_does_not_know_is_refused(
    town: House, client: str, stream: bool, asked: dict[str, Any]
) -> None:
    before = len(town.arrived("deepseek"))
    answer = ask(town.address, client, model_of("deepseek"), stream=stream, **asked)
    assert answer.status == 400
    assert answer.headers["x-bardo-error"] == "invalid_request"
    assert "bardo" in answer.text.lower()
    assert len(town.arrived("deepseek")) == before


def test_a_model_name_cannot_add_a_header(town: House) -> None:
    answer = ask(town.address, "openai_chat", "deepseek/m – ü")
    assert answer.status == 200
    assert answer.headers["x-bardo-model"] == "m ? ?"
    refused = ask(town.address, "openai_chat", "deepseek/m\r\nX-Evil: 1")
    assert refused.status == 400
    assert "x-evil" not in refused.headers
