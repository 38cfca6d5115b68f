"""What every store of replies does: one suite, run against each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bardo.context.cache.entries import CacheBounds, CacheEntry, ReplyStore, Selection, decode_kept, encode_kept
from bardo.context.layer import KeptReply
from bardo.services.pipeline.reply_cache.opening import MemoryReplies, open_replies

pytestmark = pytest.mark.each_python

Make = Callable[[CacheBounds], ReplyStore]
ROOMY = CacheBounds()


@pytest.fixture(params=["memory", "sqlite", "postgres_url", "redis_url"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Open stores of one kind, which are closed after the test."""
    opened: list[ReplyStore] = []
    places = {"memory": "memory", "sqlite": str(tmp_path / "replies.db")}
    place = places.get(request.param) or str(request.getfixturevalue(request.param))

    def opening(bounds: CacheBounds) -> ReplyStore:
        opened.append(open_replies(place, bounds))
        return opened[-1]

    yield opening
    for store in opened:
        store.close()


def entry(name: str, tenant: str = "t", value: bytes = b"reply", expires: float = 100.0, **more: object) -> CacheEntry:
    return CacheEntry(tenant=tenant, identity=identity(name, tenant), value=value, expires=expires, **more)  # type: ignore[arg-type]


def identity(name: str, tenant: str = "t") -> bytes:
    return blake2b(f"{tenant}/{name}".encode(), digest_size=32).digest()


def test_what_was_kept_is_found_until_it_expires(make: Make) -> None:
    store = make(ROOMY)
    assert store.find("t", identity("a"), now=0) is None
    assert store.put(entry("a", value=bytes(range(256))), now=0)
    assert store.find("t", identity("a"), now=99.9) == bytes(range(256))
    assert store.find("t", identity("a"), now=100) is None


def test_a_later_reply_takes_the_place_of_an_earlier_one(make: Make) -> None:
    store = make(ROOMY)
    store.put(entry("a", value=b"old"), now=0)
    store.put(entry("a", value=b"newer"), now=1)
    assert store.find("t", identity("a"), now=2) == b"newer"
    assert store.totals() == (1, entry("a", value=b"newer").size)


def test_nobody_finds_what_another_tenant_keeps(make: Make) -> None:
    store = make(ROOMY)
    store.put(entry("a", tenant="one"), now=0)
    assert store.find("two", identity("a", "one"), now=1) is None
    assert store.find("one", identity("a", "one"), now=1) == b"reply"
    assert store.totals("two") == (0, 0)


def test_the_oldest_make_room_of_their_own_tenant_first(make: Make) -> None:
    store = make(CacheBounds(entries=4, tenant_entries=2))
    store.put(entry("x", tenant="other"), now=0)
    for place, name in enumerate("abc"):
        store.put(entry(name), now=place)
    found = [store.find("t", identity(name), now=5) is not None for name in "abc"]
    assert found == [False, True, True]
    assert store.find("other", identity("x", "other"), now=5) is not None
    assert store.totals("t")[0] == 2


def test_no_more_bytes_are_held_than_allowed(make: Make) -> None:
    one = entry("a", value=b"x" * 100).size
    store = make(CacheBounds(tenant_bytes=2 * one, bytes=3 * one))
    for name in "abc":
        assert store.put(entry(name, value=b"x" * 100), now=0)
    assert store.totals("t") == (2, 2 * one)
    for name in "ab":
        store.put(entry(name, tenant="u", value=b"x" * 100), now=1)
    assert store.totals()[1] <= 3 * one
    assert not store.put(entry("big", value=b"x" * (3 * one)), now=2)
    assert store.find("t", identity("big"), now=2) is None


def test_a_reply_that_is_too_large_removes_the_earlier_one(make: Make) -> None:
    store = make(CacheBounds(tenant_bytes=400))
    store.put(entry("a", value=b"old"), now=0)
    assert not store.put(entry("a", value=b"x" * 500), now=1)
    assert store.find("t", identity("a"), now=2) is None


def test_entries_are_removed_by_tag_model_and_tenant(make: Make) -> None:
    store = make(ROOMY)
    store.put(entry("a", tags=("news", "eu"), model="fast", answered_by="openai/gpt-5"), now=0)
    store.put(entry("b", tags=("news",), model="anthropic/claude", answered_by="anthropic/claude"), now=0)
    store.put(entry("c", tenant="u", tags=("news",), model="fast", answered_by="openai/gpt-5"), now=0)
    assert store.purge(Selection(tag="nobody")) == 0
    assert store.purge(Selection(tag="news", tenant="u")) == 1
    assert store.purge(Selection(model="gpt-5")) == 1
    assert store.purge(Selection(model="anthropic/claude")) == 1
    assert store.totals() == (0, 0)


@pytest.mark.parametrize("selection", [Selection(), Selection(tenant="t")], ids=["all", "tenant"])
def test_everything_can_be_removed(make: Make, selection: Selection) -> None:
    store = make(ROOMY)
    for place in range(20):
        store.put(entry(str(place), tags=("x",)), now=0)
    assert store.purge(selection) == 20
    assert store.totals() == (0, 0)
    assert store.find("t", identity("3"), now=1) is None


def test_indexed_entries_are_told_in_the_order_they_came(make: Make) -> None:
    store = make(ROOMY)
    for name in "abcd":
        store.put(entry(name, index=name.encode() if name != "b" else b""), now=0)
    first = store.indexed(0, 2, now=1)
    assert [one.index for one in first] == [b"a", b"c"]
    rest = store.indexed(first[-1].number, 10, now=1)
    assert [(one.index, one.identity, one.tenant) for one in rest] == [(b"d", identity("d"), "t")]
    store.put(entry("a", index=b"a again"), now=2)
    assert [one.index for one in store.indexed(rest[-1].number, 10, now=3)] == [b"a again"]
    assert store.indexed(0, 10, now=100) == []
    store.purge(Selection())
    assert store.indexed(0, 10, now=3) == []


def test_expired_entries_do_not_stay_for_ever(make: Make) -> None:
    store = make(ROOMY)
    for place in range(5):
        store.put(entry(str(place), expires=10), now=0)
    for place in range(5):
        store.put(entry(f"later{place}", expires=100), now=20 + place)
    assert store.totals()[0] == 5


names = st.sampled_from("abcdefgh")
tenants = st.sampled_from(["t", "u"])
puts = st.tuples(st.just("put"), names, tenants, st.integers(0, 120))
purges = st.tuples(st.just("purge"), names, tenants, st.just(0))


@given(st.lists(puts | purges, max_size=40))
@settings(max_examples=60, deadline=None)
def test_figures_are_those_of_what_is_held(steps: list[tuple[str, str, str, int]]) -> None:
    bounds = CacheBounds(entries=6, tenant_entries=4, bytes=600, tenant_bytes=400)
    store = MemoryReplies(bounds)
    for now, (what, name, tenant, size) in enumerate(steps):
        if what == "put":
            store.put(entry(name, tenant, b"x" * size, expires=now + 9, tags=(name,)), now=now)
        else:
            store.purge(Selection(tag=name, tenant=tenant))
        kept = [store.totals("t"), store.totals("u")]
        assert tuple(map(sum, zip(*kept, strict=True))) == store.totals()
        assert all(entries <= bounds.tenant_entries and size <= bounds.tenant_bytes for entries, size in kept)
        assert store.totals()[0] <= bounds.entries
        assert store.totals()[1] <= bounds.bytes


kept_replies = st.builds(
    KeptReply,
    provider=st.text(),
    model=st.text(),
    dialect=st.text(),
    content_type=st.text(),
    body=st.binary(),
    streamed=st.booleans(),
    kept_at=st.floats(allow_nan=False),
    cost_nanos=st.none() | st.integers(0, 2**60),
)


@given(kept_replies)
def test_a_kept_reply_reads_back_as_it_was(reply: KeptReply) -> None:
    assert decode_kept(encode_kept(reply)) == reply


@given(st.binary())
def test_what_is_no_kept_reply_is_none(value: bytes) -> None:
    assert decode_kept(value) is None or value[:1] == b"\x01"
    assert decode_kept(b"\x02" + value) is None
    whole = encode_kept(msgspec.structs.replace(KEPT, body=value))
    assert decode_kept(whole[:-1]) is None


KEPT = KeptReply(provider="p", model="m", dialect="openai_chat", content_type="", body=b"", streamed=False, kept_at=0.0)
