"""Layers work on calls through the gateway: before they are sent, on their replies, and in the place of a provider."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from bardo.context.layer import Answered, Effect, KeptReply, LayerFacts, LayerSteps, Passed, Receipt, changed
from bardo.services.pipeline.parts import LayerParts
from bardo.values.blocks import TextBlock
from bardo.values.errors import InvalidRequest
from bardo.values.events import ContentChunk, Event
from bardo.values.request import Message, Request
from bardo.values.response import Response
from support.any_model import Simulator
from support.gateway import Remembering, house
from support.talk import CLIENTS, ask
from surfaces.gateway.cells import whole_and_streamed

MODEL = "deepseek/m"
OWN = '[inference.pipeline.profiles.own]\nlayers = ["cache", "privacy"]\n'
each_client = pytest.mark.parametrize("client", CLIENTS)


class Keep(Effect, frozen=True):
    reply: KeptReply


class Find(Effect, frozen=True):
    pass


class Louder:
    """A stage that writes all text in capitals."""

    def feed(self, item: Event) -> Sequence[Event]:
        return (
            (ContentChunk(item.block, item.text.upper(), item.choice),) if isinstance(item, ContentChunk) else (item,)
        )

    def finish(self) -> Sequence[Event]:
        return ()


class LoudPart:
    most_bytes = 0

    def stage(self) -> Louder:
        return Louder()

    def ended(self, request: Request, response: Response, kept: KeptReply | None) -> Iterable[Effect]:
        assert kept is None
        return ()

    def failed(self) -> Iterable[Effect]:
        return ()


class Privacy:
    """Adds a system message, and has the reply written in capitals."""

    name = "privacy"

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        yield from ()
        assert facts.targets[0].provider == "deepseek"
        messages = (Message("system", (TextBlock("Be brief."),)), *request.messages)
        receipt = Receipt(layer=self.name, did="added a sentence", saw={"messages": len(request.messages)}, off="x")
        return Passed(request=changed(request, messages=messages), receipt=receipt, reply=LoudPart())


class KeepingPart:
    most_bytes = 100_000

    def stage(self) -> None:
        return None

    def ended(self, request: Request, response: Response, kept: KeptReply | None) -> Iterable[Effect]:
        return () if kept is None else (Keep(kept),)

    def failed(self) -> Iterable[Effect]:
        return ()


class Cache:
    """Answers with the last reply there was."""

    name = "cache"

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        found = yield Find()
        receipt = Receipt(layer=self.name, did="answered", off="x")
        return (
            Answered(reply=found, receipt=receipt)
            if found
            else Passed(request=request, receipt=receipt, reply=KeepingPart())
        )


def cache(parts: LayerParts) -> Cache:
    kept: list[KeptReply] = []

    async def keep(effect: Keep) -> None:
        kept.append(effect.reply)

    async def find(_: Find) -> Any:
        return kept[-1] if kept else None

    parts.effects.register(Keep, keep, writes=True)
    parts.effects.register(Find, find)
    return Cache()


@each_client
@whole_and_streamed
def test_a_layer_changes_the_request_and_the_reply(client: str, stream: bool) -> None:
    layers = {"privacy": lambda _: Privacy()}
    with house([Simulator("deepseek")], toml=OWN, layers=layers) as running:
        plain = ask(running.address, client, MODEL, stream=stream)
        assert "Be brief." not in str(running.last("deepseek"))
        asked: dict[str, Any] = {"pipeline": "own", "include": ["receipt"]}
        loud = ask(running.address, client, MODEL, stream=stream, bardo=asked)
        assert "Be brief." in str(running.last("deepseek"))
        assert loud.status == plain.status == 200
        assert "added a sentence" in loud.text
        row = running.log.row(loud.headers["x-bardo-request-id"])
        assert row.pipeline is not None
        [made] = [one for one in row.pipeline["layers"] if one["layer"] == "privacy"]
        assert row.pipeline["profile"] == "own"
        assert (made["layer"], made["did"], made["off"]) == ("privacy", "added a sentence", "x")
        assert made["microseconds"] >= 0
        assert running.log.row(plain.headers["x-bardo-request-id"]).pipeline is None
        assert "added a sentence" not in plain.text


@each_client
@whole_and_streamed
@pytest.mark.parametrize("earlier", [False, True], ids=["after whole", "after streamed"])
def test_a_kept_reply_is_given_as_if_it_came_now(client: str, stream: bool, earlier: bool) -> None:
    with house([Remembering("deepseek")], toml=OWN, layers={"cache": cache}) as running:
        first = ask(running.address, client, MODEL, stream=earlier, bardo={"layers": {"cache": True}})
        again = ask(running.address, client, MODEL, stream=stream, bardo={"layers": {"cache": True}})
        assert first.status == again.status == 200
        assert "1161" in first.text
        assert "1161" in again.text
        assert len(running.arrived("deepseek")) == 1
        row = running.log.row(again.headers["x-bardo-request-id"])
        assert (row.outcome, row.attempts, row.cost_nanos) == ("ok", 0, 0)
        assert running.log.row(first.headers["x-bardo-request-id"]).attempts == 1


class Failing:
    name = "privacy"

    def __init__(self, problem: Exception) -> None:
        self._problem = problem

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        yield from ()
        raise self._problem


def test_a_layer_that_fails_is_passed_over_and_one_that_refuses_is_heeded() -> None:
    broken = {"privacy": lambda _: Failing(ValueError("what the user said"))}
    with house([Simulator("deepseek")], toml=OWN, layers=broken) as running:
        answer = ask(running.address, "openai_chat", MODEL, bardo={"pipeline": "own", "include": ["receipt"]})
        assert answer.status == 200
        assert "pipeline.privacy" in answer.headers["x-bardo-degraded"]
        assert "what the user said" not in answer.text
    refusing = {"privacy": lambda _: Failing(InvalidRequest("not like this"))}
    with house([Simulator("deepseek")], toml=OWN, layers=refusing) as running:
        answer = ask(running.address, "openai_chat", MODEL, bardo={"pipeline": "own"})
        assert answer.status == 400
        assert "not like this" in answer.text
        assert not running.arrived("deepseek")


class FailingMask(Failing):
    masks = True


def test_nothing_is_sent_where_the_layer_that_masks_fails() -> None:
    broken = {"privacy": lambda _: FailingMask(ValueError("what the user said"))}
    with house([Simulator("deepseek")], toml=OWN, layers=broken) as running:
        answer = ask(running.address, "openai_chat", MODEL, bardo={"pipeline": "own"})
        assert answer.status == 503
        assert "what the user said" not in answer.text
        assert not running.arrived("deepseek")


@pytest.mark.parametrize("bardo", [{"pipeline": "fats"}, {"layers": {"cahce": True}}, {"layers": {"cache": 1}}])
def test_a_name_that_nobody_knows_is_refused(bardo: dict[str, Any]) -> None:
    with house([Simulator("deepseek")]) as running:
        answer = ask(running.address, "openai_chat", MODEL, bardo=bardo)
        assert answer.status == 400
        assert ("did you mean" in answer.text) or ("true or false" in answer.text)
