"""What every store of state promises: in memory, in a file, in PostgreSQL and in Redis."""

from __future__ import annotations

import pkgutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bardo.adapters.config.mistakes import Place
from bardo.adapters.config.storage import check_store
from bardo.adapters.stores import state
from bardo.adapters.stores.state import Bounds, KeyedStore, open_store
from support.offenders import offenders

pytestmark = pytest.mark.each_python

Make = Callable[..., KeyedStore]
PLACES = {"memory": "", "sqlite": "", "sql": "postgres_url", "redis": "redis_url"}
"""The fixture that has the server of each module of a store, where it needs one."""


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The place of a store, as a configuration names it."""
    places = {"memory": "memory", "sqlite": str(tmp_path / "store.db")}
    return places.get(request.param) or str(request.getfixturevalue(PLACES[request.param]))


@pytest.fixture
def make(place: str) -> Iterator[Make]:
    opened: list[KeyedStore] = []

    def opening(**bounds: float) -> KeyedStore:
        store = open_store(place, Bounds(**bounds))  # type: ignore[arg-type]
        assert store is not None
        opened.append(store)
        return store

    yield opening
    for store in opened:
        store.close()


def test_each_store_of_state_runs_these_tests() -> None:
    modules = {one.name for one in pkgutil.iter_modules(state.__path__)}
    offenders(
        modules - {"store", "calls"} - PLACES.keys(),
        "store without tests: open it in open_store of adapters/stores/state, and name it in PLACES and in `place` of this file",
    )


def test_a_place_leads_to_its_store(make: Make, request: pytest.FixtureRequest) -> None:
    assert type(make()).__module__ == f"{state.__name__}.{request.node.callspec.params['place']}"


def test_a_configuration_may_name_the_place_of_each_store(place: str) -> None:
    check_store(place, Place("", "store"))


def test_what_is_not_in_memory_is_there_when_it_is_opened_again(make: Make, place: str) -> None:
    first = make()
    first.put("a", ["x"], b"value", now=0)
    first.close()
    assert make().find("a", ["x"], now=1) == ({} if place == "memory" else {"x": b"value"})


def test_a_value_is_found_by_each_of_its_keys_and_by_no_other(make: Make) -> None:
    store = make()
    store.put("a", ["x", "y"], b"value", now=0)
    assert store.find("a", ["y", "x", "z"], now=1) == {"x": b"value", "y": b"value"}


def test_a_key_of_two_different_replies_leads_to_neither(make: Make) -> None:
    store = make()
    store.put("a", ["x", "y"], b"one", now=0, reply="1")
    store.put("a", ["x", "z"], b"other", now=1, reply="2")
    assert store.find("a", ["x", "y", "z"], now=2) == {"y": b"one", "z": b"other"}


def test_a_key_stays_ambiguous_when_the_first_of_its_replies_is_gone(make: Make) -> None:
    store = make(seconds=60)
    store.put("a", ["x"], b"one", now=0)
    store.put("a", ["x"], b"other", now=50)
    store.put("a", ["y"], b"third", now=70)
    assert store.find("a", ["x", "y"], now=70) == {"y": b"third"}


def test_a_key_leads_somewhere_again_when_all_its_replies_are_gone(make: Make) -> None:
    store = make(seconds=60)
    store.put("a", ["x"], b"one", now=0)
    store.put("a", ["x"], b"other", now=0)
    store.put("a", ["x"], b"new", now=100)
    assert store.find("a", ["x"], now=100) == {"x": b"new"}


@pytest.mark.parametrize("reply", ["", "1"], ids=["the same words", "the same reply"])
def test_what_is_put_again_of_one_reply_is_no_other_reply(make: Make, reply: str) -> None:
    store = make()
    store.put("a", ["x", "y"], b"new" if not reply else b"old", now=0, reply=reply)
    store.put("a", ["x"], b"new", now=1, reply=reply)
    assert store.find("a", ["x"], now=2) == {"x": b"new"}


@pytest.mark.parametrize("tenant", ["b", "", "*", "t:a"])
def test_no_tenant_finds_what_another_put_in(make: Make, tenant: str) -> None:
    store = make()
    store.put("a", ["x"], b"of a", now=0)
    assert store.find(tenant, ["x"], now=0) == {}
    store.put(tenant, ["x"], b"of the other", now=0)
    assert store.find("a", ["x"], now=0) == {"x": b"of a"}
    assert store.totals("a")[0] == store.totals(tenant)[0] == 1


def test_a_value_is_gone_when_its_time_is_over(make: Make) -> None:
    store = make(seconds=60)
    store.put("a", ["x"], b"value", now=100)
    assert store.find("a", ["x"], now=159.9)
    assert not store.find("a", ["x"], now=160)
    store.put("a", ["y"], b"other", now=160)
    assert store.totals()[0] == 1


@pytest.mark.parametrize("bound", [{"entries": 3}, {"tenant_entries": 3}])
def test_the_oldest_value_gives_way_where_there_are_too_many(make: Make, bound: dict[str, float]) -> None:
    store = make(**bound)
    for place in range(10):
        store.put("a", [f"k{place}"], b"v", now=place)
        assert store.totals()[0] <= 3
    assert sorted(store.find("a", [f"k{place}" for place in range(10)], now=10)) == ["k7", "k8", "k9"]


@pytest.mark.parametrize("bound", [{"bytes": 100}, {"tenant_bytes": 100}])
def test_the_oldest_value_gives_way_where_they_are_too_large(make: Make, bound: dict[str, float]) -> None:
    store = make(**bound)
    for place in range(10):
        store.put("a", [f"k{place}"], b"v" * 30, now=place)
        assert store.totals()[1] <= 100
    assert sorted(store.find("a", [f"k{place}" for place in range(10)], now=10)) == ["k7", "k8", "k9"]


def test_a_value_larger_than_a_share_is_not_kept_and_drives_nothing_out(make: Make) -> None:
    store = make(tenant_bytes=100)
    store.put("a", ["x"], b"small", now=0)
    store.put("a", ["y"], b"v" * 200, now=1)
    assert store.find("a", ["x", "y"], now=2) == {"x": b"small"}


def test_a_busy_tenant_drives_out_its_own_values_before_those_of_others(make: Make) -> None:
    store = make(entries=10, tenant_entries=5)
    store.put("quiet", ["x"], b"value", now=0)
    for place in range(100):
        store.put("busy", [f"k{place}"], b"v", now=place)
    assert store.find("quiet", ["x"], now=100) == {"x": b"value"}
    assert store.totals("busy")[0] == 5


def test_what_is_held_counts_keys_and_values(make: Make) -> None:
    store = make()
    assert store.totals() == store.totals("a") == (0, 0)
    store.put("a", ["xy", "z"], b"12345", now=0)
    assert store.totals() == store.totals("a") == (1, 8)


def test_nothing_is_kept_under_no_key(make: Make) -> None:
    store = make()
    store.put("a", [], b"value", now=0)
    assert store.totals() == (0, 0)
    assert store.find("a", [], now=0) == {}


def test_many_keys_are_looked_for_at_once(make: Make) -> None:
    store = make()
    keys = [f"k{place}" for place in range(2000)]
    store.put("a", keys, b"value", now=0)
    assert len(store.find("a", keys, now=0)) == 2000


def test_several_threads_put_and_find_side_by_side(make: Make) -> None:
    store = make(entries=50, tenant_entries=20)
    failed: list[str] = []

    def work(name: str) -> None:
        for place in range(50):
            store.put(name, [f"k{place}"], name.encode(), now=place)
            found = store.find(name, [f"k{place}"], now=place)
            if any(value != name.encode() for value in found.values()):
                failed.append(name)

    threads = [threading.Thread(target=work, args=(f"tenant {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert store.totals()[0] <= 50


def test_a_value_is_removed_with_all_its_keys_for_its_tenant_alone(make: Make) -> None:
    store = make()
    for tenant in ("a", "b"):
        store.put(tenant, ["x", "y"], b"value", now=0)
    assert store.remove("a", "y")
    assert not store.remove("a", "x")
    assert store.find("a", ["x", "y"], now=1) == {}
    assert store.totals("a") == (0, 0)
    assert store.find("b", ["x"], now=1) == {"x": b"value"}


def test_a_later_value_of_a_reply_takes_the_place_of_the_earlier(make: Make) -> None:
    store = make()
    for number in range(5):
        store.put("a", ["x"], b"%d" % number, now=0, reply="r")
    assert store.totals("a") == (1, 2)
    store.put("a", ["x", "y"], b"5", now=0, reply="r")
    store.put("a", ["y"], b"6", now=0, reply="r")
    assert store.find("a", ["x", "y"], now=1) == {"x": b"5", "y": b"6"}


def test_a_value_larger_than_a_tenants_share_is_not_kept_and_that_is_told(make: Make) -> None:
    store = make(tenant_bytes=10)
    assert store.put("a", ["x"], b"short", now=0)
    assert not store.put("a", ["y"], b"far too long", now=0)


def test_a_value_takes_the_place_of_another_one_only_where_that_is_still_there(make: Make) -> None:
    store = make(seconds=60)
    assert not store.put("a", ["x"], b"2", now=0, reply="r", before=b"1"), "there is none"
    store.put("a", ["x"], b"1", now=0, reply="r")
    assert store.put("a", ["x"], b"2", now=1, reply="r", before=b"1")
    assert not store.put("a", ["x"], b"3", now=1, reply="r", before=b"1"), "somebody else was quicker"
    assert not store.put("b", ["x"], b"3", now=1, reply="r", before=b"2"), "another tenant has none"
    assert store.find("a", ["x"], now=2) == {"x": b"2"}
    assert store.totals("a") == (1, 2)
    assert store.put("a", ["x"], b"", now=2, reply="r", before=b"2")
    assert store.put("a", ["x"], b"4", now=2, reply="r", before=b"")


def test_of_many_who_change_one_value_at_once_none_is_lost(make: Make) -> None:
    store = make()
    store.put("a", ["x"], b"0", now=0, reply="r")

    def add_one() -> None:
        done = 0
        while done < 20:
            before = store.find("a", ["x"], now=1)["x"]
            done += store.put("a", ["x"], b"%d" % (int(before) + 1), now=1, reply="r", before=before)

    threads = [threading.Thread(target=add_one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.find("a", ["x"], now=2) == {"x": b"80"}
