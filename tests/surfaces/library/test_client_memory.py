"""`client.memory`: what a client asked and how its models thought is found again, in asyncio and without."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import bardo
from bardo.adapters.config.settings import LogSettings, MemorySettings, Settings
from bardo.simulators import Running, running_many
from bardo.values.errors import ClientMisuse, ConfigError, NotStored
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE, entry, model_of

pytestmark = pytest.mark.each_python

QUESTION = "What is 27 * 43?"
PRESETS = ("anthropic", "deepseek", "openai_responses")


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Running]]:
    with pytest.MonkeyPatch.context() as patch, running_many(map(Simulator, PRESETS)) as running:
        patch.setenv(KEY_VARIABLE, "k")
        yield dict(running)


@pytest.fixture
def settings(servers: dict[str, Running], tmp_path: Path) -> Settings:
    entries = tuple(entry(Simulator(name), server.base_url) for name, server in servers.items())
    log = LogSettings(path=str(tmp_path / "log.db"), content=True)
    return Settings(providers=entries, log=log, memory=MemorySettings(enabled=True))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "k")


def test_past_thinking_is_found_shown_and_forgotten(settings: Settings) -> None:
    with bardo.Client(settings) as client:
        replies = [client.respond(QUESTION, model=model_of(name), reasoning="high", session="s") for name in PRESETS]
        client.feedback(replies[1].bardo["request_id"], score=1.0)
        found = client.memory.search("27 43", model="m1")
        assert [one.request_id for one in found] == [replies[1].bardo["request_id"]]
        assert found[0].question == QUESTION
        assert "words" in found[0].found_by
        episode = client.memory.show(found[0].id)
        assert isinstance(episode, bardo.Episode)
        assert episode.reasoning.content == replies[1].reasoning.content
        assert [step.content for step in episode.reasoning.steps]
        assert (episode.answer, episode.feedback, episode.outcome) == (replies[1].text, (1.0,), "ok")
        assert len(client.memory.search(QUESTION, session="s", since=datetime(2020, 1, 1, tzinfo=UTC))) == 3
        assert client.memory.search(QUESTION, session="other") == []
        assert client.memory.stats().episodes == 3
        assert client.memory.forget(found[0].id).episodes == 1
        with pytest.raises(NotStored, match="no episode"):
            client.memory.show(found[0].id)
        erased = client.memory.forget(everything=True)
        assert (erased.episodes, erased.calls) == (2, 2)


def test_what_signs_thinking_is_in_no_episode(settings: Settings) -> None:
    with bardo.Client(settings) as client:
        reply = client.respond(QUESTION, model=model_of("anthropic"), reasoning="high")
        [state] = [one.data for block in reply.reasoning.blocks for one in block.opaque]
        [found] = client.memory.search(QUESTION)
        episode = client.memory.show(found.id)
        assert state
        assert state not in repr(episode)
        assert client.memory.search(f'"{state}"', by="words") == []


def test_typed_answers_say_whether_they_fitted(settings: Settings) -> None:
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    with bardo.Client(settings) as client:
        reply = client.respond(QUESTION, model=model_of("deepseek"), reasoning="high", response_type=schema)
        assert client.memory.show(reply.bardo["request_id"]).schema_ok is True


def test_asyncio_programs_have_the_same(settings: Settings) -> None:
    async def work() -> None:
        async with bardo.AsyncClient(settings) as client:
            async with client.stream(QUESTION, model=model_of("deepseek"), reasoning="high") as reply:
                async for _ in reply:
                    pass
            [found] = await client.memory.search("what is")
            assert (await client.memory.show(found.request_id)).question == QUESTION
            assert (await client.memory.stats(tenant="nobody")).episodes == 0
            assert (await client.memory.forget(before=datetime(2020, 1, 1, tzinfo=UTC))).episodes == 0
            assert (await client.memory.forget(session=found.session)).episodes == 1

    asyncio.run(work())


def test_what_is_forgotten_must_be_said(settings: Settings) -> None:
    with bardo.Client(settings) as client:
        with pytest.raises(ClientMisuse, match="must be said"):
            client.memory.forget()
        with pytest.raises(ClientMisuse, match="must be said"):
            client.memory.forget("ep_1", everything=True)
    with pytest.raises(ClientMisuse, match="closed"):
        client.memory.stats()


def test_without_consent_nothing_is_kept(servers: dict[str, Running], tmp_path: Path) -> None:
    log = LogSettings(path=str(tmp_path / "log.db"), content=True)
    entries = (entry(Simulator("deepseek"), servers["deepseek"].base_url),)
    with bardo.Client(Settings(providers=entries, log=log)) as client:
        client.respond(QUESTION, model=model_of("deepseek"), reasoning="high")
        with pytest.raises(ClientMisuse, match="no reasoning memory"):
            client.memory.search("x")
    wanted = MemorySettings(enabled=True)
    for lacking, name in ((LogSettings(path=log.path), "content"), (LogSettings(enabled=False), "enabled")):
        with pytest.raises(ConfigError, match=f"{name} is off"):
            bardo.Client(Settings(providers=entries, log=lacking, memory=wanted))


def test_a_call_without_thinking_has_no_episode(settings: Settings) -> None:
    with bardo.Client(settings) as client:
        client.respond(QUESTION, model=model_of("anthropic"), reasoning="off")
        assert client.memory.stats().episodes == 0
