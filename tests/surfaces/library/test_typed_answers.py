"""Ask once, with a type, and get a value of it, from models of every mode."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bardo
from bardo.adapters.config.settings import InferenceSettings, LogSettings, Settings
from bardo.golem.schemas import LayerResult, RiskAssessment
from bardo.simulators import Conversation, Running, Script, Turn, running_many
from bardo.structured import StructuredSettings, UnusableAnswer
from bardo.values.errors import InvalidRequest
from bardo.values.request import StructuredOptions
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE, entry
from support.typed import GOOD, PLACE, SCRIPT

pytestmark = pytest.mark.each_python

MODELS = {
    "openai_responses/gpt-5": "schema_enforced",
    "gemini/gemini-2.5-flash": "schema_enforced",
    "deepseek/deepseek-chat": "prompt_guided",
    "minimax/MiniMax-M2": "tool_use_workaround",
    "anthropic/claude-3-5-haiku-latest": "tool_use_workaround",
}
PRESETS = tuple(dict.fromkeys(model.partition("/")[0] for model in MODELS))
each_model = pytest.mark.parametrize("model", MODELS)


@dataclasses.dataclass
class Dataclass:
    city: str
    size: int


class Struct(msgspec.Struct):
    city: str
    size: int


class Model(pydantic.BaseModel):
    city: str
    size: int


class Dictionary(TypedDict):
    city: str
    size: int


TYPES: dict[str, tuple[Any, Any]] = {
    "dataclass": (Dataclass, Dataclass("Paris", 3)),
    "msgspec": (Struct, Struct("Paris", 3)),
    "pydantic": (Model, Model(city="Paris", size=3)),
    "typed dict": (Dictionary, GOOD),
    "schema": (PLACE, GOOD),
}


def settings_for(servers: dict[str, Running], structured: StructuredSettings | None = None) -> Settings:
    return Settings(
        providers=tuple(entry(Simulator(name), server.base_url) for name, server in servers.items()),
        inference=InferenceSettings(structured_outputs=structured or StructuredSettings()),
        log=LogSettings(enabled=False),
    )


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Running]]:
    simulators = [Simulator(name, script=SCRIPT) for name in PRESETS]
    with pytest.MonkeyPatch.context() as patch, running_many(simulators) as running:
        patch.setenv(KEY_VARIABLE, "k")
        yield dict(running)


@pytest.fixture(scope="module")
def client(servers: dict[str, Running]) -> Iterator[bardo.Client]:
    with bardo.Client(settings_for(servers)) as made:
        yield made


@each_model
@pytest.mark.parametrize(("wanted", "value"), TYPES.values(), ids=TYPES)
def test_any_type_is_answered_by_any_model(client: bardo.Client, model: str, wanted: Any, value: Any) -> None:
    response = client.respond("good", model=model, response_type=wanted)
    assert response.parsed == value
    assert type(response.parsed) is type(value)
    assert response.provenance is not None
    assert (response.provenance.mode, response.provenance.attempts) == (MODELS[model], 1)
    assert response.bardo["structured"]["mode"] == MODELS[model]


@each_model
def test_asyncio_gets_the_same(servers: dict[str, Running], model: str) -> None:
    async def run() -> Any:
        async with bardo.AsyncClient(settings_for(servers)) as made:
            response = await made.respond("bad then good", model=model, response_type=Struct)
            async with made.stream("good", model=model, response_type=Struct) as reply:
                return response.parsed, response.provenance, await reply.parsed

    whole, provenance, streamed = asyncio.run(run())
    assert whole == streamed == Struct("Paris", 3)
    assert provenance.attempts == 2


@each_model
def test_an_answer_that_stays_bad_is_an_error_with_its_path_and_text(client: bardo.Client, model: str) -> None:
    with pytest.raises(UnusableAnswer) as caught:
        client.respond("bad", model=model, response_type=Struct, structured=StructuredOptions(retries=0))
    found = caught.value.extraction
    assert (caught.value.code, found.path) == ("invalid", "/size")
    assert "many" in found.text


ENDS = {
    "a refusal": ("deepseek/deepseek-chat", "refuse", "refusal"),
    "cut": ("deepseek/deepseek-chat", "cut", "truncated"),
    "cut although enforced": ("openai_responses/gpt-5", "cut", "truncated"),
}


@pytest.mark.parametrize(("model", "question", "code"), ENDS.values(), ids=ENDS)
def test_what_a_model_will_not_or_cannot_finish_is_told_apart(
    client: bardo.Client, model: str, question: str, code: str
) -> None:
    with pytest.raises(UnusableAnswer) as caught:
        client.respond(question, model=model, response_type=Struct, structured=StructuredOptions(retries=0))
    assert caught.value.code == code
    assert caught.value.extraction.text


@each_model
def test_partial_answers_only_grow_up_to_the_whole(client: bardo.Client, model: str) -> None:
    with client.stream("good", model=model, response_type=Struct) as reply:
        partials = list(reply.partial_stream)
        assert partials[-1] == GOOD
        assert all(before.items() <= after.items() for before, after in pairwise(partials))
        assert reply.parsed == Struct("Paris", 3)
        assert msgspec.json.decode(reply.response().text) == GOOD


@pytest.mark.parametrize("model", ["deepseek/deepseek-chat", "minimax/MiniMax-M2"])
def test_a_streamed_answer_is_asked_for_again_before_it_is_shown(client: bardo.Client, model: str) -> None:
    with client.stream("bad then good", model=model, response_type=Struct) as reply:
        assert msgspec.json.decode("".join(reply.text_stream)) == GOOD
        typed = reply.typed_response()
    assert (typed.parsed, typed.provenance and typed.provenance.attempts) == (Struct("Paris", 3), 2)


@pytest.mark.parametrize("model", ["deepseek/deepseek-chat", "openai_responses/gpt-5"])
def test_a_stream_that_gave_no_value_raises(client: bardo.Client, model: str) -> None:
    with (
        client.stream("bad", model=model, response_type=Struct, structured=StructuredOptions(retries=0)) as reply,
        pytest.raises(UnusableAnswer, match="/size"),
    ):
        _ = reply.parsed


def test_a_value_needs_a_type(client: bardo.Client) -> None:
    with (
        client.stream("good", model="deepseek/deepseek-chat") as reply,
        pytest.raises(TypeError, match="response_type"),
    ):
        _ = reply.parsed


def test_a_call_of_a_tool_has_no_value_yet(client: bardo.Client) -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": PLACE}}
    for model in ("deepseek/deepseek-chat", "minimax/MiniMax-M2", "openai_responses/gpt-5"):
        response = client.respond("call", model=model, response_type=Struct, tools=[tool])
        assert (response.parsed, response.provenance) == (None, None)
        assert [call.name for call in response.tool_calls] == ["weather"]


def test_the_types_own_checks_are_fed_back_too(client: bardo.Client) -> None:
    class Large(pydantic.BaseModel):
        city: str
        size: int

        @pydantic.field_validator("size")
        @classmethod
        def large(cls, value: int) -> int:
            if value < 100:
                raise ValueError("too small to be true")
            return value

    with pytest.raises(UnusableAnswer, match=r"/size: .*too small to be true"):
        client.respond("good", model="deepseek/deepseek-chat", response_type=Large)


def test_what_is_no_type_is_refused_before_anybody_is_asked(client: bardo.Client, servers: dict[str, Running]) -> None:
    before = len(servers["deepseek"].requests)
    for wanted in (3, object, {"type": "nonsense"}, {"$ref": "https://example.org/x.json"}):
        with pytest.raises(InvalidRequest):
            client.respond("good", model="deepseek/deepseek-chat", response_type=wanted)  # type: ignore[arg-type]
    assert len(servers["deepseek"].requests) == before


LAYER = {"passed": True, "score": 0.5, "detail": "fine"}
LAYERS = ("hard_shields", "position_sizing", "adaptive_guardrails", "observation", "defi_threats")
RISK = {
    "approved": True,
    "adjusted_size_usd": 10.0,
    "layers": dict.fromkeys(LAYERS, LAYER),
    "warnings": [],
    "reasoning": None,
}


def playing(preset: str, turn: Turn) -> Simulator:
    return Simulator(preset, script=Script((turn,)))


def test_the_documents_types_come_back_as_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "k")
    text = msgspec.json.encode(RISK).decode()
    simulator = playing("openai_responses", Turn(reasoning="Hm.", text=text))
    with running_many([simulator]) as running, bardo.Client(settings_for(dict(running))) as made:
        response = made.respond("May I?", model="openai_responses/gpt-5", response_type=RiskAssessment)
    assert isinstance(response.parsed, RiskAssessment)
    assert response.parsed.layers.observation == LayerResult(passed=True, score=0.5, detail="fine")


def test_a_range_that_does_not_hold_is_fed_back_and_then_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "k")
    wrong = {**RISK, "layers": {**RISK["layers"], "observation": {**LAYER, "score": 7.0}}}  # type: ignore[dict-item]
    simulator = playing("deepseek", Turn(text=msgspec.json.encode(wrong).decode()))
    with running_many([simulator]) as running, bardo.Client(settings_for(dict(running))) as made:
        with pytest.raises(UnusableAnswer, match=r"score 7\.0 out of range"):
            made.respond("May I?", model="deepseek/deepseek-chat", response_type=RiskAssessment)
        first, second = (one for one in running["deepseek"].requests if one.method == "POST")
    assert "out of range" not in first.raw.decode()
    assert "out of range" in second.raw.decode()


def test_a_model_that_knows_no_json_is_heard_by_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "k")
    simulator = playing("deepseek", Turn(text="I reject this trade; the size is far too large."))
    with running_many([simulator]) as running, bardo.Client(settings_for(dict(running))) as made:
        response = made.respond("May I?", model="deepseek/deepseek-chat", response_type=RiskAssessment)
    assert response.parsed is not None
    assert response.parsed.approved is False
    assert any(one.what == "answer.text" and one.sent == "words" for one in response.degraded)


CUT_WORDS = {
    "in words": "I reject this trade; the size is far too",
    "in JSON": '{"approved": false, "reasoning": "the size',
}


@pytest.mark.parametrize("text", CUT_WORDS.values(), ids=CUT_WORDS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_model_that_was_cut_is_not_heard_by_its_words(
    text: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "k")
    simulator = playing("deepseek", Turn(text=text, finish="length"))
    asked: dict[str, Any] = {"model": "deepseek/deepseek-chat", "response_type": RiskAssessment}

    def ask(client: bardo.Client) -> None:
        if not stream:
            client.respond("May I?", **asked)
            return
        with client.stream("May I?", **asked) as reply:
            _ = reply.parsed

    with running_many([simulator]) as running, bardo.Client(settings_for(dict(running))) as made:
        with pytest.raises(UnusableAnswer) as caught:
            ask(made)
        assert caught.value.code == "truncated"
        assert len([one for one in running["deepseek"].requests if one.method == "POST"]) == 1


def test_where_structured_outputs_are_off_no_schema_is_sent(servers: dict[str, Running]) -> None:
    with bardo.Client(settings_for(servers, StructuredSettings(enabled=False))) as made:
        response = made.respond("good", model="openai_responses/gpt-5", response_type=Struct)
    assert response.parsed == Struct("Paris", 3)
    assert response.provenance is not None
    assert response.provenance.mode == "none"
    assert b"place" not in servers["openai_responses"].requests[-1].raw.lower()
    assert any(one.what == "response_format" for one in response.degraded)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.fixed_dictionaries(
    {"name": TEXTS, "count": st.integers(-(2**53), 2**53), "tags": st.lists(TEXTS, max_size=3)},
    optional={"note": st.none() | TEXTS, "scores": st.dictionaries(TEXTS, st.integers(0, 9), max_size=3)},
)


SAID: dict[str, dict[str, Any]] = {"now": {}}


def _speak(conversation: Conversation) -> Turn:
    return Turn(text=msgspec.json.encode(SAID["now"]).decode())


@pytest.fixture(scope="module")
def echo() -> Iterator[bardo.Client]:
    simulator = Simulator("deepseek", script=Script(otherwise=_speak))
    with pytest.MonkeyPatch.context() as patch, running_many([simulator]) as running:
        patch.setenv(KEY_VARIABLE, "k")
        with bardo.Client(settings_for(dict(running))) as made:
            yield made


@given(VALUES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_said_is_what_is_parsed(echo: bardo.Client, value: dict[str, Any]) -> None:
    SAID["now"] = value
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["name"],
    }
    assert echo.respond("Say it.", model="deepseek/deepseek-chat", response_type=schema).parsed == value
