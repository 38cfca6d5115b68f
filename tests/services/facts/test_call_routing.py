"""Calls that say what they need: whom they are put to, what is reported, and that other calls do not notice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.call.open import open_call
from bardo.planning.knowledge import TargetFacts
from bardo.planning.route import Target
from bardo.routing.circuit import AttemptOutcome
from bardo.routing.decision import Strategy
from bardo.services.facts.call_routing import CallRouting
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.facts.model_facts import ModelFacts
from bardo.surfaces.library.explaining import explain
from bardo.values.blocks import TextBlock
from bardo.values.errors import BardoError, UnknownModel, Unsupported, UpstreamRefused
from bardo.values.request import BardoOptions, Intent, Message, Request
from bardo.values.response import Response
from bardo.wiring import make_services

CONFIGURATION = """
[[providers]]
id = "market"
preset = "blockrun"
dialect = "openai_chat"
models = ["claude-opus-4-6", "claude-sonnet-4-6", "gemini-3-flash"]

[[providers]]
id = "quiet"
preset = "venice"
models = ["deepseek-r1-671b", "llama-3.3-70b"]

[aliases]
either = ["market/gemini-3-flash", "quiet/deepseek-r1-671b"]
"""
SECRETS = {"BLOCKRUN_API_KEY": "sk-1", "VENICE_API_KEY": "sk-2"}
WHOLE = {
    "id": "c1",
    "object": "chat.completion",
    "model": "real",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Four."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}


@dataclass
class House:
    """The services over two providers, which answer or fail by their ids, and what they were asked."""

    failures: Mapping[str, BardoError] = field(default_factory=dict)
    strategy: Strategy = "order"
    private: tuple[str, ...] = ()
    configuration: str = CONFIGURATION
    asked: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        transport, keyring = FakeTransport(self._answer), Keyring(SECRETS)
        directory = ProviderDirectory.of(parse_settings(self.configuration), transport, keyring, clock=lambda: 0.0)
        facts = ModelFacts()
        routing = CallRouting(directory, facts, strategy=self.strategy, private=self.private)
        self.services = make_services(directory, transport, keyring, facts=facts, routing=routing)

    def _answer(self, call: Call) -> FakeReply:
        self.asked.append((call.provider, msgspec.json.decode(call.body)["model"]))
        if call.provider in self.failures:
            raise self.failures[call.provider]
        return FakeReply(headers={"content-type": "application/json"}, chunks=(msgspec.json.encode(WHOLE),))

    def ask(self, intent: Intent | None, model: str = "") -> Response:
        async def run() -> Response:
            live = await open_call(self.services, request(intent, model))
            async for _ in live.updates():
                pass
            return live.response_with_receipt()

        return asyncio.run(run())


def request(intent: Intent | None, model: str = "") -> Request:
    options = BardoOptions(intent=intent, include=("receipt",))
    return Request(model=model, messages=(Message("user", (TextBlock("2+2?"),)),), options=options)


def route_of(response: Response) -> dict[str, Any]:
    assert response.bardo is not None
    route: dict[str, Any] = response.bardo["receipt"]["route"]
    return route


def test_a_required_feature_leads_past_the_first_provider() -> None:
    house = House()
    response = house.ask(Intent(require=("visible_thinking",), quality="maximum", cost_sensitivity=0.0))
    assert house.asked == [("quiet", "deepseek-r1-671b")]
    route = route_of(response)
    assert (route["provider"], route["model"], route["relaxed"]) == ("quiet", "deepseek-r1-671b", False)
    assert [(one["provider"], one["model"]) for one in route["candidates"]] == [
        ("quiet", "deepseek-r1-671b"),
        ("market", "claude-opus-4-6"),
    ]
    assert route["candidates"][1]["reasons"] == ["lacks:visible_thinking"]
    assert {one["model"]: one["reasons"] for one in route["refused"]}["gemini-3-flash"] == ["lacks:visible_thinking"]
    assert route["estimated_cost_usd"] is None


def test_what_the_chosen_one_lacks_is_reported() -> None:
    house = House(configuration=CONFIGURATION.replace('"deepseek-r1-671b", ', ""))
    response = house.ask(Intent(require=("visible_thinking", "privacy"), prefer=("citations",), quality="maximum"))
    assert house.asked == [("market", "claude-opus-4-6")]
    lost = {one.what: one.asked for one in response.degraded}
    assert lost == {"visible_thinking": "required", "privacy": "required"}
    assert route_of(response)["degraded"] == ["visible_thinking", "privacy"]
    assert route_of(response)["relaxed"] is True


def test_a_target_that_fails_is_followed_by_the_next_of_the_route_with_its_own_losses() -> None:
    house = House(failures={"market": UpstreamRefused("busy", status=529, provider="market")})
    response = house.ask(Intent(prefer=("citations", "interleaved_thinking"), quality="maximum", cost_sensitivity=0.0))
    assert list(dict.fromkeys(house.asked)) == [("market", "claude-opus-4-6"), ("quiet", "deepseek-r1-671b")]
    lost = [one.what for one in response.degraded]
    assert {"provider", "citations", "interleaved_thinking", "quality"} <= {*lost}


def test_a_score_chooses_where_the_order_does_not() -> None:
    intent = Intent(prefer=("privacy",), quality="low", cost_sensitivity=0.5)
    assert route_of(House().ask(intent))["model"] == "gemini-3-flash"
    by_score = House(strategy="score")
    route = route_of(by_score.ask(intent))
    scores = [one["score"] for one in route["candidates"]]
    assert scores == sorted(scores, reverse=True)
    assert route["strategy"] == "score"
    assert by_score.asked == [(route["provider"], route["model"])]


def test_models_of_an_alias_are_candidates_in_their_order() -> None:
    house = House()
    house.ask(Intent(model="either"))
    house.ask(Intent(model="either", require=("privacy",)))
    assert house.asked == [("market", "gemini-3-flash"), ("quiet", "deepseek-r1-671b")]


def test_an_operator_may_say_that_a_provider_is_private() -> None:
    house = House(private=("market",))
    response = house.ask(Intent(require=("privacy",), quality="maximum", cost_sensitivity=0.0))
    assert house.asked == [("market", "claude-opus-4-6")]
    assert "privacy" not in {one.what for one in response.degraded}


def test_what_a_call_would_cost_is_estimated() -> None:
    route = route_of(House().ask(Intent(model="market/claude-sonnet-4-6")))
    # A few tokens of the prompt at $3 a million, and 500 of the answer at $15.
    assert route["estimated_cost_usd"] == pytest.approx(0.0075, rel=0.02)


def test_nobody_for_an_intent_is_the_callers_error() -> None:
    with pytest.raises(UnknownModel):
        House().ask(Intent(model="gpt-17"))
    house = House(configuration='[[providers]]\nid = "bare"\npreset = "venice"\nmodels = []\n')
    with pytest.raises(Unsupported, match="no provider here has a model"):
        house.ask(Intent())


def test_a_call_without_an_intent_has_no_route() -> None:
    house = House()
    response = house.ask(None, model="claude-opus-4-6")
    assert response.bardo is not None
    assert "route" not in response.bardo["receipt"]
    assert house.asked == [("market", "claude-opus-4-6")]


def test_candidates_are_made_once() -> None:
    house = House()

    async def twice() -> bool:
        return await house.services.routing.index() is await house.services.routing.index()

    assert asyncio.run(twice())


def test_explain_tells_the_route_without_sending() -> None:
    body = {
        "messages": [{"role": "user", "content": "2+2?"}],
        "model": "bardo/auto",
        "bardo": {"intent": {"require": ["visible_thinking"], "quality": "maximum", "cost_sensitivity": 0.0}},
    }
    found = explain(body, config=parse_settings(CONFIGURATION))
    route = found.route
    assert (route.provider, route.model, route.strategy) == ("quiet", "deepseek-r1-671b", "order")
    assert found.body["model"] == "deepseek-r1-671b"
    first, second, *refused = route.candidates
    assert (first.why, first.passed_over, first.reasons) == ("every requirement is met", "", ())
    assert (second.model, second.relaxed, second.reasons) == ("claude-opus-4-6", True, ("lacks:visible_thinking",))
    assert second.estimated_cost_usd is not None
    assert all(one.reasons == ("lacks:visible_thinking",) for one in refused)
    assert all(one.passed_over == "it does not have visible_thinking" for one in refused)


def test_a_private_call_goes_to_private_providers_or_to_nobody() -> None:
    house = House()
    asked = request(Intent(quality="maximum", cost_sensitivity=0.0))
    private = msgspec.structs.replace(asked, options=msgspec.structs.replace(asked.options, private=True))
    found = asyncio.run(house.services.routing.route(private))
    assert {at.provider.id for at in found.targets} == {"quiet"}
    without = House(configuration=CONFIGURATION.replace('preset = "venice"', 'preset = "openrouter"'))
    with pytest.raises(Unsupported, match="private"):
        asyncio.run(without.services.routing.route(private))


def test_how_long_calls_took_decides_of_later_ones() -> None:
    house = House()
    quick = Intent(quality="maximum", cost_sensitivity=0.0, max_latency_ms=1000)
    assert route_of(house.ask(quick))["model"] == "claude-opus-4-6"
    for _ in range(10):
        house.services.routing.health.note("market", "claude-opus-4-6", AttemptOutcome(seconds=2.5), 0.0)
    route = route_of(house.ask(quick))
    assert route["model"] == "claude-sonnet-4-6"
    assert {one["model"]: one["reasons"] for one in route["refused"]}["claude-opus-4-6"] == ["latency:2500"]
    response = house.ask(Intent(model="market/claude-opus-4-6", max_latency_ms=2000))
    assert [(one.what, one.asked, one.sent) for one in response.degraded] == [("max_latency_ms", 2000, 2500)]


def test_plans_that_are_kept_mix_no_two_intents_up() -> None:
    """Calls of one shape take turns at a provider with two endpoints; each gets the losses of its own intent."""
    both = CONFIGURATION.replace('dialect = "openai_chat"\n', "")
    house = House(configuration=both)
    cited = Intent(model="market/gemini-3-flash", prefer=("citations",))
    seen = Intent(model="market/gemini-3-flash", prefer=("visible_thinking",))
    for _ in range(3):
        assert "citations" in lost_by(house.ask(cited))
        assert "citations" not in lost_by(house.ask(seen))
        assert "visible_thinking" in lost_by(house.ask(seen))
        assert not {"citations", "visible_thinking"} & lost_by(house.ask(None, model="market/gemini-3-flash"))


def test_what_a_server_says_anew_is_heeded() -> None:
    house = House()
    facts = house.services.facts
    intent = Intent(model="market/gemini-3-flash", prefer=("citations",))
    assert "citations" in lost_by(house.ask(intent))
    known = facts.of

    def with_citations(target: Target, *, asks: bool = True) -> TargetFacts:
        return msgspec.structs.replace(known(target, asks=asks), features={"citations": True})

    facts.of = with_citations  # type: ignore[method-assign]
    assert "citations" not in lost_by(house.ask(intent))


def lost_by(response: Response) -> set[str]:
    return {one.what for one in response.degraded}


def test_a_model_that_is_down_is_not_chosen_and_where_all_are_one_is_asked() -> None:
    house = House()
    best = Intent(quality="maximum", cost_sensitivity=0.0)
    first = route_of(house.ask(best))
    health = house.services.routing.health
    for _ in range(5):
        health.note(first["provider"], first["model"], AttemptOutcome(error="server"), time.monotonic())
    second = route_of(house.ask(best))
    assert (second["provider"], second["model"]) != (first["provider"], first["model"])
    assert {one["model"]: one["reasons"] for one in second["refused"]}[first["model"]] == ["down"]
    for provider in ("market", "quiet"):
        for _ in range(10):
            health.note(provider, "", AttemptOutcome(error="connection"), time.monotonic())
    assert house.ask(best).text == "Four."


def test_a_provider_whose_key_is_refused_is_not_chosen_until_its_rest_is_over() -> None:
    house = House()
    best = Intent(quality="maximum", cost_sensitivity=0.0)
    first = route_of(house.ask(best))
    refused = AttemptOutcome(error="key_refused", status=401)
    house.services.routing.health.note(first["provider"], first["model"], refused, time.monotonic())
    assert route_of(house.ask(best))["provider"] != first["provider"]
    house.services.routing.health.note(first["provider"], first["model"], AttemptOutcome(seconds=1.0), time.monotonic())
    assert route_of(house.ask(best))["model"] == first["model"]


def test_diem_pays_only_as_long_as_some_is_known_to_be_left() -> None:
    services = House().services
    quiet = next(one for one in services.directory.providers if one.id == "quiet")
    target = Target(provider=quiet, model="llama-3.3-70b")

    async def payments() -> set[tuple[str, ...]]:
        known = [*services.routing.named([target]), *await services.routing.index()]
        return {one.payments for one in known if one.provider == "quiet"}

    async def after(left: str) -> set[tuple[str, ...]]:
        services.routing.health.balances.note("quiet", quiet.row, {"x-venice-balance-diem": left}, services.clock())
        return await payments()

    async def all_of_them() -> list[set[tuple[str, ...]]]:
        return [await after(left) for left in ("", "0", "3.5")]

    assert asyncio.run(all_of_them()) == [{("diem", "api_key")}, {("api_key",)}, {("diem", "api_key")}]
