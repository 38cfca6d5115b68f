"""Searching calls are counted by provider and by day in UTC."""

from __future__ import annotations

import msgspec

from bardo.edge.daily_searches import DailySearches
from bardo.engine.attempt import Attempt
from bardo.engine.route import Provider, Target
from bardo.surfaces.library.decoding import provider_row
from bardo.values.wire import WireRequest

BODY = b'{"venice_parameters":{"enable_web_search":"on"}}'


def attempt(body: bytes = BODY, most: int | None = 1) -> Attempt:
    row = msgspec.structs.replace(provider_row("venice"), searches_per_day=most)
    provider = Provider(id="v", row=row, base_url="https://v.example")
    return Attempt(target=Target(provider=provider, model="m"), wire=WireRequest(path="x", body=body))


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
