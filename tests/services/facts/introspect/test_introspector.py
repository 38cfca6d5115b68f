"""Live facts: asked before the first call, kept while the server is there, and never a reason for anything to fail."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport, Handler
from bardo.adapters.net.keys import Keyring
from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.planning.route import Provider, Target
from bardo.services.facts.introspect import READERS, Introspector, LiveFacts, builtin_adapters
from bardo.services.facts.introspect.adapters import Adapter, Question, by_provider
from bardo.services.facts.introspect.live import NO_THINKING
from bardo.values.errors import ConfigError, Unreachable
from support.patience import PATIENCE

pytestmark = pytest.mark.each_python

LISTED = {"models": [{"key": "m", "capabilities": {"reasoning": {"allowed_options": ["off", "on"]}}}]}
MODEL = {"capabilities": ["completion"]}
_NEITHER = (("tool_calling", False), ("vision", False))


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def provider(preset: str = "lmstudio") -> Provider:
    row = builtin().provider(preset)
    assert row is not None
    return Provider(id=preset, row=row, base_url=row.base_url)


def answering(body: Any = LISTED, status: int = 200) -> Handler:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda call: FakeReply(status=status, chunks=[content])


def run(
    scenario: Callable[[Introspector, FakeTransport, Clock], Awaitable[Any]], handler: Handler, **options: Any
) -> Any:
    async def whole() -> Any:
        transport, clock = FakeTransport(handler), Clock()
        introspector = Introspector(transport, Keyring({}), clock=clock, watch=clock, **options)
        try:
            return await scenario(introspector, transport, clock)
        finally:
            await introspector.close()
            assert transport.open_calls == []

    return asyncio.run(whole())


def test_a_call_goes_on_without_facts_and_a_later_one_has_them() -> None:
    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> None:
        assert introspector.facts(provider(), "m") is None
        await introspector.settle()
        assert introspector.facts(provider(), "m") == LiveFacts(control=("toggle",), off=True)

    run(scenario, answering())


def at(name: str = "m", preset: str = "lmstudio") -> Target:
    return Target(provider=provider(preset), model=name)


def test_a_server_is_asked_before_its_first_call_and_never_waited_for_again() -> None:
    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> list[int]:
        counts = []
        for _ in range(3):
            await introspector.ask_before([at(), at(preset="groq")])
            assert introspector.layers(at()) != ()
            counts.append(len(transport.calls))
        return counts

    assert run(scenario, answering()) == [1, 1, 1]


def test_a_call_waits_only_for_the_first_of_its_servers() -> None:
    async def handler(call: Call) -> FakeReply:
        if "11434" in call.url:
            await asyncio.Event().wait()
        return FakeReply(chunks=[json.dumps(LISTED).encode()])

    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> int:
        await introspector.ask_before([at(), at(preset="ollama")])
        assert introspector.layers(at()) != ()
        return len(transport.calls)

    assert run(scenario, handler) == 2, "the other one is being asked beside the call"


def test_a_server_that_does_not_answer_is_given_up_before_the_first_call_too() -> None:
    async def never(call: Call) -> FakeReply:
        await asyncio.Event().wait()
        raise AssertionError

    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> None:
        await introspector.ask_before([at()])
        assert introspector.layers(at()) == ()
        await introspector.ask_before([at()])
        assert len(transport.calls) == 1, "it rests"

    run(scenario, never, seconds=0.01)


def test_what_a_server_said_holds_until_it_is_gone() -> None:
    now = {"toggle": LISTED, "none": {"models": [{"key": "m", "capabilities": {}}]}}
    said = ["toggle"]

    def handler(call: Call) -> FakeReply:
        return FakeReply(chunks=[json.dumps(now[said[0]]).encode()])

    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> None:
        await introspector.ask_before([at()])
        said[0] = "none"
        assert introspector.facts(provider(), "m") == LiveFacts(control=("toggle",), off=True)
        introspector.note_loss(provider())
        assert introspector.layers(at()) == ()
        await introspector.ask_before([at()])
        assert introspector.facts(provider(), "m") == NO_THINKING

    run(scenario, handler)


def test_what_a_server_said_that_was_lost_before_its_answer_came_does_not_hold() -> None:
    asked, answers = asyncio.Event(), asyncio.Event()

    async def handler(call: Call) -> FakeReply:
        asked.set()
        await answers.wait()
        return FakeReply(chunks=[json.dumps(LISTED).encode()])

    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> None:
        introspector.facts(provider(), "m")
        await asked.wait()
        introspector.note_loss(provider())
        answers.set()
        await introspector.settle()
        assert introspector.facts(provider(), "m") is None
        await introspector.settle()
        assert introspector.facts(provider(), "m") == LiveFacts(control=("toggle",), off=True)

    run(scenario, handler)


def test_a_call_that_is_answered_while_its_server_is_asked_anew_leaves_the_question_after_it() -> None:
    asked, answers = asyncio.Event(), asyncio.Event()
    answers.set()

    async def handler(call: Call) -> FakeReply:
        asked.set()
        await answers.wait()
        return FakeReply(status=503)

    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> None:
        target = Target(provider=provider(), model="m")
        introspector.facts(provider(), "m")
        await introspector.settle()
        clock.now += 301
        asked.clear()
        answers.clear()
        introspector.facts(provider(), "m")
        await asked.wait()
        introspector.note_answer(target)
        answers.set()
        await introspector.settle()
        introspector.note_answer(target)
        introspector.facts(provider(), "m")
        await introspector.settle()
        assert len(transport.calls) == 3

    run(scenario, handler)


def test_a_server_of_weights_is_asked_again_beside_calls_and_a_hosted_one_is_not() -> None:
    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> list[int]:
        counts = []
        for clock.now in (0.0, 30.0, 31.0):
            introspector.facts(provider("ollama"), "m")
            await introspector.settle()
            counts.append(len(transport.calls))
        introspector.facts(provider("venice"), "m")
        return counts

    assert run(scenario, answering(MODEL)) == [1, 1, 2]


def test_a_server_that_was_started_anew_is_found_out_before_a_call() -> None:
    said = [MODEL]

    def handler(call: Call) -> FakeReply:
        return FakeReply(chunks=[json.dumps(said[0]).encode()])

    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> None:
        await introspector.ask_before([at(preset="ollama")])
        assert introspector.facts(provider("ollama"), "m") == msgspec.structs.replace(NO_THINKING, features=_NEITHER)
        said[0] = {"capabilities": ["completion", "thinking"]}
        clock.now += 31
        await introspector.ask_before([at(preset="ollama")])
        assert introspector.facts(provider("ollama"), "m") == LiveFacts(omit="on", features=_NEITHER)

    run(scenario, handler)


def test_a_router_is_asked_again_once_it_has_loaded_the_model() -> None:
    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> list[int]:
        counts = []
        for _ in range(3):
            await introspector.ask_before([at()])
            introspector.note_answer(at())
            counts.append(len(transport.calls))
        return counts

    assert run(scenario, answering({}, 503)) == [1, 2, 2], "once, and then it rests"


def test_a_list_is_asked_for_once_for_all_its_models() -> None:
    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> list[str]:
        for model in ("m", "other", "m"):
            introspector.facts(provider(), model)
            await introspector.settle()
        await asyncio.gather(*(introspector.learn(provider(), "m") for _ in range(3)))
        return [call.url for call in transport.calls]

    assert run(scenario, answering()) == ["http://127.0.0.1:1234/api/v1/models"]


def test_a_server_that_answers_for_one_model_is_asked_once_for_each() -> None:
    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> list[Any]:
        names = ("a", "b", "a", "b")
        await asyncio.gather(*(introspector.learn(provider("ollama"), name) for name in names))
        return [(call.method, call.url, json.loads(call.body)) for call in transport.calls]

    address = "http://127.0.0.1:11434/api/show"
    assert run(scenario, answering(MODEL)) == [("POST", address, {"model": name}) for name in ("a", "b")]


def test_callers_that_come_together_share_one_question() -> None:
    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> int:
        learned = await asyncio.gather(*(introspector.learn(provider(), "m") for _ in range(5)))
        assert {one.facts for one in learned} == {LiveFacts(control=("toggle",), off=True)}
        return len(transport.calls)

    assert run(scenario, answering()) == 1


def refusing(call: Call) -> FakeReply:
    raise Unreachable("no connection to the server", provider=call.provider)


def mistaken(call: Call) -> FakeReply:
    raise RuntimeError("a mistake with sk-secret in it")


BAD: dict[str, tuple[Handler, str]] = {
    "unreachable": (refusing, "no connection"),
    "missing": (answering({}, 404), "status 404"),
    "broken": (answering(b'{"models": ['), "no JSON"),
    "a page": (answering(b"<html>"), "no JSON"),
    "something else": (answering({"object": "list"}), "no list"),
    "a mistake of ours": (mistaken, "RuntimeError"),
    "too large": (answering(b" " * (16 * 1024 * 1024) + b"{}"), "16"),
}


@pytest.mark.parametrize(("handler", "why"), BAD.values(), ids=BAD)
def test_a_bad_answer_is_one_warning_and_leaves_the_word_to_the_catalog(
    handler: Handler, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> None:
        for _ in range(3):
            assert introspector.facts(provider(), "m") is None
            await introspector.settle()
        learned = await introspector.learn(provider(), "m")
        assert learned.facts is None
        assert why in learned.problem

    with caplog.at_level(logging.WARNING, logger="bardo.introspection"):
        run(scenario, handler)
    (record,) = caplog.records
    assert vars(record)["provider"] == "lmstudio"
    assert vars(record)["address"] == "127.0.0.1:1234"
    assert why in vars(record)["why"]
    assert "sk-secret" not in caplog.text


def test_a_missing_key_is_no_failure() -> None:
    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> str:
        return (await introspector.learn(provider("anthropic"), "claude-sonnet-5")).problem

    assert "no key for anthropic" in run(scenario, answering())


def test_a_server_that_failed_is_asked_again_after_its_rest() -> None:
    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> list[int]:
        counts = []
        for clock.now in (0.0, 300.0, 300.1):
            await introspector.learn(provider(), "m")
            counts.append(len(transport.calls))
        return counts

    assert run(scenario, answering({}, 500)) == [1, 1, 2]


def test_a_slow_server_is_given_up() -> None:
    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> str:
        return (await introspector.learn(provider(), "m")).problem

    async def never(call: Call) -> FakeReply:
        await asyncio.Event().wait()
        raise AssertionError

    assert run(scenario, never, seconds=0.01)


def test_a_cancelled_caller_takes_the_question_from_nobody() -> None:
    asked, opened = asyncio.Event(), asyncio.Event()

    async def gated(call: Call) -> FakeReply:
        asked.set()
        await opened.wait()
        return FakeReply(chunks=[json.dumps(LISTED).encode()])

    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> int:
        waiting = [asyncio.create_task(introspector.learn(provider(), "m")) for _ in range(2)]
        await asked.wait()
        waiting[0].cancel()
        opened.set()
        assert (await waiting[1]).facts is not None
        return len(transport.calls)

    assert run(scenario, gated) == 1


def test_closing_ends_what_is_being_asked() -> None:
    asked = asyncio.Event()

    async def never(call: Call) -> FakeReply:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> None:
        introspector.facts(provider(), "m")
        await asked.wait()

    run(scenario, never)


def test_a_provider_that_says_nothing_of_thinking_is_not_asked() -> None:
    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> None:
        assert introspector.facts(provider("groq"), "m") is None
        assert "nothing of thinking" in (await introspector.learn(provider("groq"), "m")).problem
        assert transport.calls == []

    run(scenario, answering())


def test_an_optional_question_may_be_unknown_there() -> None:
    def handler(call: Call) -> FakeReply:
        props = {"default_generation_settings": {"params": {}}, "chat_template": "x"}
        known = call.url.startswith("http://127.0.0.1:8080/props")
        return FakeReply(status=200 if known else 404, chunks=[json.dumps(props).encode()])

    async def scenario(introspector: Introspector, transport: FakeTransport, clock: Clock) -> None:
        assert (await introspector.learn(provider("llama-server"), "m")).facts == LiveFacts()
        assert len(transport.calls) == 6

    run(scenario, handler)


def test_every_adapter_has_a_reader_and_a_known_provider() -> None:
    adapters = builtin_adapters()
    assert {adapter.name for adapter in adapters.values()} == set(READERS)
    assert all(builtin().provider(name) is not None for name in adapters)


def test_an_adapter_nobody_reads_is_a_wrong_configuration() -> None:
    with pytest.raises(ConfigError, match="no reader is called"):
        by_provider([Adapter(name="nobody", providers=("x",), questions=())])


PLACES = {
    "below the base": ("http://h:1/v1", "models", "http://h:1/v1/models"),
    "beside the base": ("http://h:1/v1/", "../props", "http://h:1/props"),
    "behind a prefix": ("http://h:1/llama/v1", "../props", "http://h:1/llama/props"),
    "at the root already": ("http://h:1", "../props", "http://h:1/props"),
    "the model escaped": ("http://h:1/v1", "../props?model=$model", "http://h:1/props?model=a%2Fb%26c"),
}


@pytest.mark.parametrize(("base", "path", "url"), PLACES.values(), ids=PLACES)
def test_a_path_is_relative_to_the_base_url(base: str, path: str, url: str) -> None:
    row = ProviderRow(id="x", name="x", dialect="openai_chat")
    assert Question(name="q", path=path).url(Provider(id="x", row=row, base_url=base), "a/b&c") == url


def test_closing_as_a_question_ends_comes_to_an_end() -> None:
    """The question has ended, and its note is still to be made, when closing looks for what is being asked."""

    async def scenario() -> None:
        gate = asyncio.Event()

        async def wait(call: Call) -> FakeReply:
            await gate.wait()
            raise ConfigError("the server says nothing")

        introspector = Introspector(FakeTransport(wait), Keyring({}))
        introspector.facts(provider(), "m")
        [question] = introspector._asking.values()
        for _ in range(20):
            await asyncio.sleep(0)
        gate.set()
        closing = asyncio.get_running_loop().create_task(close_with_bound(introspector, question))
        await asyncio.wait_for(closing, PATIENCE)

    asyncio.run(scenario())


async def close_with_bound(introspector: Introspector, question: asyncio.Task[Any]) -> None:
    """Settle with a bound on its rounds, since one that never ends lets nothing else have its turn."""
    assert question.done()
    rounds, gather = 0, asyncio.gather

    def counted(*tasks: Any, **options: Any) -> Any:
        nonlocal rounds
        rounds += 1
        assert rounds < 10, "it goes round without an end"
        return gather(*tasks, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "gather", counted)
        await introspector.close()
