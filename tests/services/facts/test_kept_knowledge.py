"""What the plans of calls are made from is the same value until something new is known, and then another one at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.catalog.load import builtin
from bardo.catalog.models import Facts
from bardo.planning.hosted_search import SearchPolicy
from bardo.planning.knowledge import (
    CachingPolicy,
    Knowledge,
    Lesson,
    MissingEndpoint,
    RefusedForm,
    RefusedThinking,
    control_target,
)
from bardo.planning.route import Provider, Target
from bardo.reasoning.control import RouteFact
from bardo.services.facts.introspect import Introspector, LiveFacts
from bardo.services.facts.listings import ListedModel, Listing, Listings
from bardo.services.facts.listings.store import ListingStore
from bardo.services.facts.model_facts import ModelFacts
from bardo.values.request import Request
from support import exchanges

DAY = 86_400.0
ASKED = Request(model="m", messages=())


def target(preset: str = "anthropic", model: str = "claude-opus-5") -> Target:
    row = builtin().provider(preset)
    assert row is not None
    return Target(provider=Provider(id=preset, row=row, base_url="http://host/v1"), model=model)


class Server(Introspector):
    """What a server says now."""

    said: LiveFacts | None = None

    def __init__(self, transport: FakeTransport, keyring: Keyring) -> None:
        super().__init__(transport, keyring)
        self.asked: list[str] = []

    def facts(self, provider: Provider, model: str) -> LiveFacts | None:
        self.asked.append(provider.base_url)
        return self.said


class Known:
    """The facts of one target, and all that may change of them."""

    def __init__(self) -> None:
        self.now = 10 * DAY
        self.at = target()
        self.listings = Listings()
        self.facts = ModelFacts(listings=self.listings, clock=lambda: self.now)

    def next_day(self) -> None:
        self.now += DAY

    def list_models(self) -> None:
        self.listings.take(self.at.provider, Listing(source="s", at=0, models={}))

    def learn_control(self) -> None:
        fact = RouteFact(target=control_target(self.at), facts=Facts(control=("none",)), date=self.facts.today())
        self.learn(RefusedThinking(self.at, fact, "high"))

    def learn_form(self) -> None:
        self.learn(RefusedForm(self.at, "json_schema"))

    def learn_endpoint(self) -> None:
        self.learn(MissingEndpoint(self.at))

    def learn(self, lesson: Lesson) -> None:
        exchanges.learn(self.facts, lesson, ASKED)

    def knowledge(self) -> Knowledge:
        return self.facts.knowledge([self.at], request=ASKED)

    def learn_start(self) -> None:
        self.facts.learn_start(self.at, False, "separated")


@pytest.mark.parametrize(
    "change",
    [
        Known.next_day,
        Known.list_models,
        Known.learn_control,
        Known.learn_form,
        Known.learn_endpoint,
        Known.learn_start,
    ],
    ids=lambda change: change.__name__,
)
def test_it_is_another_one_once_something_is_known(change: Callable[[Known], None]) -> None:
    known = Known()
    before = known.knowledge()
    assert known.knowledge() is before
    change(known)
    after = known.knowledge()
    assert after is not before
    assert known.knowledge() is after


def test_what_is_learned_of_one_target_is_in_what_is_known_of_it() -> None:
    known = Known()
    assert not known.knowledge().of(known.at).missing
    known.learn_endpoint()
    assert known.knowledge().of(known.at).missing
    known.now += 3 * DAY
    assert not known.knowledge().of(known.at).missing


def test_other_targets_and_other_tenants_have_their_own() -> None:
    at, facts = target(), ModelFacts(settings=Knowledge(caching=CachingPolicy(), search=SearchPolicy(service="s")))
    mine, yours = facts.knowledge([at], "mine"), facts.knowledge([at], "yours")
    assert (mine.caching, yours.caching) == (CachingPolicy(tenant="mine"), CachingPolicy(tenant="yours"))
    assert facts.knowledge([at], "mine") is mine
    assert mine.search == SearchPolicy(service="s")
    other = target(model="claude-sonnet-5")
    assert set(facts.knowledge([at, other], "mine").facts) > set(mine.facts)


def test_what_a_server_says_now_is_in_it() -> None:
    server, at = Server(FakeTransport(lambda _: FakeReply()), Keyring({})), target("vllm", "m")
    facts = ModelFacts(introspector=server)
    before = facts.knowledge([at])
    assert facts.knowledge([at]) is before
    server.said = LiveFacts(control=("none",))
    assert facts.knowledge([at]).of(at).known.facts.control == ("none",)
    server.said = None
    assert facts.knowledge([at]).of(at) == before.of(at)


def test_the_servers_of_all_targets_are_asked() -> None:
    server, near = Server(FakeTransport(lambda _: FakeReply()), Keyring({})), target("vllm", "m")
    far = msgspec.structs.replace(near, provider=msgspec.structs.replace(near.provider, base_url="http://far/v1"))
    facts = ModelFacts(introspector=server)
    facts.knowledge([near, far])
    server.asked.clear()
    facts.knowledge([near, far])
    assert server.asked == ["http://host/v1", "http://far/v1"]


def test_a_list_that_is_gone_is_no_longer_in_it(tmp_path: Path) -> None:
    known, store = Known(), ListingStore(tmp_path)
    known.at = target("openrouter", "a/m")
    known.facts = ModelFacts(listings=(listings := Listings(store)))
    listings.take(
        known.at.provider,
        Listing(source="openrouter", at=0, models={"a/m": ListedModel(facts=LiveFacts(control=("none",)))}),
    )
    before = known.facts.knowledge([known.at])
    for file in tmp_path.rglob("*.json*"):
        file.unlink()
    listings.renew(known.at.provider)
    assert known.facts.knowledge([known.at]).of(known.at) != before.of(known.at)


def test_what_is_kept_of_targets_that_come_once_is_bounded() -> None:
    facts = ModelFacts()
    for number in range(600):
        facts.knowledge([target(model=f"m{number}")])
    assert len(facts._known) <= 256
