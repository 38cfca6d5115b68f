"""Differences are listed once, in order, and only so many of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.values.degradation import MAX_REPORTED, UNLISTED, Degradation, distinct, unlisted
from bardo.values.events import Degraded
from bardo.values.fold import fold
from support.growth import check_growth

pytestmark = pytest.mark.each_python


def _many(count: int) -> list[Degradation]:
    return [Degradation(f"field_{place}", asked=[place], why="no such field") for place in range(count)]


def test_up_to_the_bound_all_are_listed() -> None:
    assert distinct(_many(MAX_REPORTED)) == tuple(_many(MAX_REPORTED))


def test_those_after_the_bound_are_counted() -> None:
    found = distinct([*_many(16_000), *_many(16_000)])
    assert found[:-1] == tuple(_many(MAX_REPORTED))
    assert (found[-1].what, found[-1].sent) == (UNLISTED, 16_000 - MAX_REPORTED)
    assert unlisted(found) == 16_000 - MAX_REPORTED


def test_counts_of_two_lists_add_up() -> None:
    once = distinct(_many(MAX_REPORTED + 5))
    further = [Degradation(f"other_{place}") for place in range(3)]
    assert unlisted(distinct([*once, *further])) == 8


def test_what_is_asked_tells_differences_apart() -> None:
    assert len(distinct([Degradation("a", asked=1), Degradation("a", asked=2), Degradation("a", asked=1)])) == 2


@pytest.mark.parametrize(
    "value",
    ["\ud800", {"deep": [object()]}, float("nan"), b"bytes", {1: 2}, [[[]]] * 3, 10**400],
    ids=["surrogate", "object", "nan", "bytes", "number key", "lists", "huge number"],
)
def test_any_value_can_be_told(value: Any) -> None:
    assert len(distinct([Degradation("a", asked=value), Degradation("a", asked=value)])) == 1


@pytest.mark.parametrize(
    "value", ["x" * 900_000, ["x" * 10] * 90_000, {"a": "é" * 900_000}], ids=["text", "list", "object"]
)
@pytest.mark.parametrize("field", ["asked", "sent"])
def test_a_long_value_is_cut(field: str, value: Any) -> None:
    (found,) = distinct([Degradation("a", why="w", **{field: value})])
    assert len(msgspec.json.encode(found)) < 3_000
    assert "more characters" in getattr(found, field)


def test_a_long_name_and_a_long_reason_are_cut() -> None:
    (found,) = distinct([Degradation("n" * 100_000, why="w" * 100_000)])
    assert len(found.what) < 600
    assert len(found.why) < 600


def test_many_differences_take_time_in_proportion() -> None:
    check_growth(distinct, _many(4_000), _many(32_000), below=30)
    check_growth(fold, [*map(Degraded, _many(4_000))], [*map(Degraded, _many(32_000))], below=30)
