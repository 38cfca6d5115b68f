"""Rendezvous hashing: the same server for a key everywhere, few moves when a server goes, and a bound on the load of each."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

from hypothesis import given
from hypothesis import strategies as st

from bardo.services.facts.server_choice import BOUND, FREE, bounded, ranked

SERVERS = [f"vllm at 10.0.0.{place}:8000" for place in range(8)]


def key(place: int) -> bytes:
    return blake2b(str(place).encode(), digest_size=16).digest()


def test_keys_are_spread_over_all_servers() -> None:
    firsts = Counter(ranked(key(place), SERVERS)[0] for place in range(4000))
    assert len(firsts) == len(SERVERS)
    assert max(firsts.values()) < 1.3 * 4000 / len(SERVERS)


def test_only_the_keys_of_a_server_that_goes_are_moved() -> None:
    rest = SERVERS[:3] + SERVERS[4:]
    for place in range(500):
        before = SERVERS[ranked(key(place), SERVERS)[0]]
        after = rest[ranked(key(place), rest)[0]]
        assert after == before or before == SERVERS[3]


def test_the_order_of_the_configuration_does_not_matter() -> None:
    turned = SERVERS[::-1]
    for place in range(100):
        assert [SERVERS[at] for at in ranked(key(place), SERVERS)] == [turned[at] for at in ranked(key(place), turned)]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.binary(max_size=20))
def test_the_first_server_is_below_its_bound_and_none_is_lost(loads: list[int], named: bytes) -> None:
    order = bounded(ranked(named, SERVERS[: len(loads)]), loads)
    assert sorted(order) == list(range(len(loads)))
    assert loads[order[0]] < max(FREE, BOUND * (sum(loads) + 1) / len(loads) + 1)


def test_one_hot_key_fills_no_server_beyond_the_bound() -> None:
    loads = [0] * len(SERVERS)
    for _ in range(400):
        loads[bounded(ranked(key(1), SERVERS), loads)[0]] += 1
    assert max(loads) <= BOUND * 400 / len(SERVERS) + 1


def test_few_calls_move_no_key() -> None:
    loads = [FREE - 1, *[0] * (len(SERVERS) - 1)]
    held = next(key(place) for place in range(100) if ranked(key(place), SERVERS)[0] == 0)
    assert bounded(ranked(held, SERVERS), loads)[0] == 0
    loads[0] = FREE
    assert bounded(ranked(held, SERVERS), loads)[0] != 0
