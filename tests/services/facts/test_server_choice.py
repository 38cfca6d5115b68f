"""The servers of a provider with several addresses: each is asked what it knows, checked by itself, and named where a call is explained."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from bardo import explain
from bardo.adapters.config.settings import Settings, parse_settings, provider_of
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.planning.route import Provider, Target
from bardo.routing.circuit import AttemptOutcome
from bardo.services.facts.directory import Placement, ProviderDirectory
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.introspect import Introspector
from bardo.services.facts.server_choice import MOST_SERVERS_TRIED, ServerChoice
from bardo.surfaces.cli.provider_checks import check_providers
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, Request
from support.any_model import Simulator

pytestmark = pytest.mark.each_python


def settings(*urls: str, preset: str = "vllm", models: str = 'models = ["m"]') -> Settings:
    return parse_settings(
        f'[[providers]]\nid = "pods"\npreset = "{preset}"\nbase_urls = {json.dumps(urls)}\n{models}\n'
    )


def pods(count: int, preset: str = "vllm") -> Provider:
    urls = [f"http://pod-{place}:1/v1" for place in range(count)]
    return provider_of(settings(*urls, preset=preset).providers[0])


def request(said: str) -> Request:
    return Request(model="m", messages=(Message("user", (TextBlock(said),)),))


def at_servers(choice: ServerChoice, provider: Provider, said: str = "Hello", **options: Any) -> list[str]:
    placement = Placement((Target(provider=provider, model="m"),))
    found = asyncio.run(choice.at_servers(placement, request(said), **options))
    return [one.provider.address for one in found.targets]


def test_a_provider_with_one_address_is_left_as_it_is() -> None:
    choice, placement = ServerChoice(HealthKeeper(), lambda: 0.0), Placement((Target(provider=pods(1), model="m"),))
    assert asyncio.run(choice.at_servers(placement, request("Hello"))) is placement


def test_a_call_is_put_to_few_of_many_servers_and_a_layer_chooses_among_all() -> None:
    choice, provider = ServerChoice(HealthKeeper(), lambda: 0.0), pods(9)
    few = at_servers(choice, provider)
    assert len(few) == MOST_SERVERS_TRIED
    assert at_servers(choice, provider) == few
    assert at_servers(choice, provider, every=True)[:MOST_SERVERS_TRIED] == few
    assert len(at_servers(choice, provider, every=True)) == 9
    assert len({at_servers(choice, provider, f"talk {number}")[0] for number in range(60)}) == 9


def test_tenants_with_equal_conversations_are_spread_too() -> None:
    choice, provider = ServerChoice(HealthKeeper(), lambda: 0.0), pods(6)
    assert len({at_servers(choice, provider, tenant=f"tenant {number}")[0] for number in range(40)}) == 6


def test_servers_that_are_down_are_not_among_the_few() -> None:
    health, provider = HealthKeeper(), pods(9)
    choice = ServerChoice(health, lambda: 10.0)
    down = at_servers(choice, provider)[:3]
    for server in provider.servers:
        if server.address in down:
            for _ in range(20):
                health.note(server.place, "m", AttemptOutcome(error="connection"), 9.0)
    after = at_servers(choice, provider)
    assert len(after) == MOST_SERVERS_TRIED
    assert not set(after) & set(down)


def test_calls_under_way_move_conversations_only_beyond_the_bound() -> None:
    health, provider = HealthKeeper(), pods(3)
    choice = ServerChoice(health, lambda: 0.0)
    first = at_servers(choice, provider)[0]
    place = next(one.place for one in provider.servers if one.address == first)
    health.count_in_flight(place, 3)
    assert at_servers(choice, provider)[0] == first
    health.count_in_flight(place, 3)
    assert at_servers(choice, provider)[0] != first
    health.count_in_flight(place, -6)
    assert at_servers(choice, provider)[0] == first
    assert health.in_flight(place) == 0


def test_each_server_is_asked_what_it_knows_of_its_models() -> None:
    def answer(call: Call) -> FakeReply:
        options = ["off", "on"] if "pod-0" in call.url else ["off", "low", "high"]
        listed = {"models": [{"key": "m", "capabilities": {"reasoning": {"allowed_options": options}}}]}
        return FakeReply(chunks=[json.dumps(listed).encode()])

    async def scenario() -> Any:
        transport = FakeTransport(answer)
        introspector = Introspector(transport, Keyring({}))
        provider = pods(2, "lmstudio")
        await introspector.ask_before([Target(provider=provider, model="m")])
        await introspector.settle()
        asked = len(transport.calls)
        servers = [Target(provider=one, model="m") for one in provider.servers]
        await introspector.ask_before(servers)
        await introspector.settle()
        found = [introspector.facts(one.provider, "m") for one in servers]
        await introspector.close()
        return asked, *found

    asked, first, second = asyncio.run(scenario())
    assert asked == 0
    assert first is not None
    assert second is not None
    assert first != second


def test_the_list_of_models_is_that_of_all_servers_that_answer() -> None:
    def answer(call: Call) -> FakeReply:
        if "pod-1" in call.url:
            return FakeReply(status=503, chunks=[b"{}"])
        name = "adapter" if "pod-2" in call.url else "base"
        return FakeReply(chunks=[json.dumps({"data": [{"id": "m"}, {"id": name}]}).encode()])

    async def listed() -> tuple[str, ...]:
        urls = [f"http://pod-{place}:1/v1" for place in range(3)]
        directory = ProviderDirectory.of(
            settings(*urls, models=""), FakeTransport(answer), Keyring({}), clock=lambda: 0.0
        )
        return (await directory.models())[0].models

    assert asyncio.run(listed()) == ("m", "base", "adapter")


def test_doctor_checks_each_server() -> None:
    with Simulator("vllm").running() as gone:
        pass
    with Simulator("vllm").running() as server:
        found = asyncio.run(check_providers(settings(server.base_url, gone.base_url, models=""), Keyring({})))
    areas = {one.area: one.status for one in found if one.area.startswith("provider ")}
    names = [one.root.removeprefix("http://") for one in (server, gone)]
    assert areas == {f"provider pods at {names[0]}": "ok", f"provider pods at {names[1]}": "problem"}


def test_an_explanation_names_the_server_that_a_new_conversation_goes_to() -> None:
    config = settings("http://a:1/v1", "http://me:quiet-word@b:1/v1", "http://c:1/v1")
    chosen = set()
    for number in range(20):
        body = {"model": "pods/m", "messages": [{"role": "user", "content": f"talk {number}"}]}
        found = explain(body, config=config)
        assert found.route.address in found.url
        assert found.route.candidates[0].address == found.route.address
        assert "quiet-word" not in found.url
        chosen.add(found.route.address)
    assert chosen == {"a:1", "b:1", "c:1"}


def test_an_explanation_shows_all_servers_that_a_call_may_be_put_to() -> None:
    config = settings(*[f"http://{name}:1/v1" for name in "abcdef"])
    body = {"model": "pods/m", "messages": [{"role": "user", "content": "hello"}]}
    assert len({one.address for one in explain(body, config=config).route.candidates}) == 4
    pipeline = explain({**body, "bardo": {"layers": {"affinity": True}}}, config=config).pipeline
    assert pipeline is not None
    [affinity] = pipeline["layers"]
    assert affinity["saw"]["servers"] == 6
