"""Searching calls are counted by provider and by day in UTC."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from bardo.call.open import with_daily_search_limit
from bardo.call.services import Limits
from bardo.planning.attempt import Attempt
from bardo.planning.route import Provider, Target
from bardo.services.facts.model_facts import DailySearches
from bardo.surfaces.library.decoding import provider_row
from bardo.values.request import BardoOptions, Request, SearchLimit
from bardo.values.wire import WireRequest

BODY = b'{"venice_parameters":{"enable_web_search":"on"}}'


def attempt(body: bytes = BODY, most: int | None = 1, limits: tuple[SearchLimit, ...] = ()) -> Attempt:
    row = msgspec.structs.replace(provider_row("venice"), searches_per_day=most)
    provider = Provider(id="v", row=row, base_url="https://v.example")
    request = Request(model="m", messages=(), options=BardoOptions(search_limits=limits))
    return Attempt(target=Target(provider=provider, model="m"), wire=WireRequest(path="x", body=body), request=request)


def test_a_day_ends_at_midnight_in_utc() -> None:
    now = [86_400.0 * 20_000 - 1]
    counted = DailySearches(lambda: now[0])
    counted.note(attempt())
    counted.note(attempt())
    assert (counted.today("v"), counted.today("other")) == (2, 0)
    now[0] += 1
    assert counted.today("v") == 0
    counted.note(attempt())
    assert counted.today("v") == 1


def test_what_has_no_search_or_no_budget_is_not_counted() -> None:
    counted = DailySearches(lambda: 0.0)
    counted.note(attempt(b"{}"))
    counted.note(attempt(most=None))
    assert counted.today("v") == 0


def limit(key: str) -> SearchLimit:
    return SearchLimit(setting="s", key=key, usd=1.0)


def test_a_search_costs_each_of_its_limits_and_none_is_counted_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bardo.services.facts.model_facts._MOST_KEYS", 2)
    counted = DailySearches(lambda: 0.0)
    counted.note(attempt(most=None, limits=(limit("a"), limit("b"))))
    counted.note(attempt(most=None, limits=(limit("a"),)))
    counted.note(attempt(b"{}", most=None, limits=(limit("a"),)))
    # Venice: $10 for 1,000 searches.
    assert (counted.cost("a"), counted.cost("b"), counted.cost("c")) == (20_000_000, 10_000_000, 0)
    counted.note(attempt(most=None, limits=(limit("c"),)))
    assert (counted.cost("a"), counted.cost("b"), counted.cost("c")) == (20_000_000, 0, 10_000_000)


def test_each_key_has_its_own_money_for_searches_and_each_day_too() -> None:
    now = [86_400.0 * 20_000]
    services: Any = SimpleNamespace(limits=Limits(search_usd_per_day=0.5), clock=lambda: now[0])

    def limits(account: str | None, tenant: str = "") -> tuple[SearchLimit, ...]:
        key: Any = None if account is None else SimpleNamespace(id=account)
        request = with_daily_search_limit(services, Request(model="m", messages=()), key, tenant)
        return request.options.search_limits

    assert limits("ann") == limits("ann", "team")
    assert [one.usd for one in limits("ann")] == [0.5]
    seen = {*limits("ann"), *limits("bob"), *limits(None)}
    now[0] += 86_400
    assert not seen & {*limits("ann"), *limits("bob"), *limits(None)}
    assert len(seen) == 3
    services.limits = Limits()
    assert limits("ann") == ()
