"""Wrong keys can be tried a few times, and then slowly; who has the right one signs in all the same."""

from __future__ import annotations

from typing import Any

from bardo.surfaces.panel.panel import OF_FAILED, OF_NEW, OF_ONE, SignInLimits


class Clock:
    """Seconds, as a test says."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def scope(address: str, forwarded: str = "") -> dict[str, Any]:
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    return {"client": (address, 1), "headers": headers}


def tries(limits: SignInLimits, most: int, address: str, forwarded: str = "") -> int:
    """Try wrong keys, and return how many were looked at."""
    return sum(not limits.take(scope(address, forwarded)).wait for _ in range(most))


def test_an_address_that_fails_is_slowed() -> None:
    clock = Clock()
    limits = SignInLimits(clock)
    assert tries(limits, 100, "10.0.0.1") == OF_ONE.tries
    assert limits.take(scope("10.0.0.1")).wait == OF_ONE.seconds
    clock.now += OF_ONE.seconds
    assert tries(limits, 100, "10.0.0.1") == 1
    assert tries(limits, 1, "10.0.0.2") == 1


def test_many_addresses_together_are_slowed_too() -> None:
    clock = Clock()
    limits = SignInLimits(clock)
    looked_at = sum(tries(limits, 100, f"10.0.{number // 250}.{number % 250}") for number in range(1_000))
    assert looked_at == OF_NEW.tries + OF_FAILED.tries
    clock.now += 1.0
    assert tries(limits, 1, "10.1.0.1") == 1


def test_a_right_key_is_looked_at_while_other_addresses_try_wrong_ones() -> None:
    limits = SignInLimits(Clock())
    for number in range(100):
        tries(limits, 100, f"10.0.0.{number}")
    assert not limits.take(scope("10.9.9.9")).wait


def test_right_keys_cost_nothing() -> None:
    limits = SignInLimits(Clock())
    for _ in range(1_000):
        attempt = limits.take(scope("10.0.0.1"))
        assert not attempt.wait
        attempt.was_right()


def test_a_right_key_between_wrong_ones_gives_back_only_its_own_try() -> None:
    limits = SignInLimits(Clock())
    tries(limits, OF_ONE.tries - 1, "10.0.0.1")
    limits.take(scope("10.0.0.1")).was_right()
    assert tries(limits, 100, "10.0.0.1") == 1


def test_an_address_behind_a_proxy_of_this_machine_is_the_clients() -> None:
    limits = SignInLimits(Clock())
    assert tries(limits, 100, "127.0.0.1", "10.0.0.1") == OF_ONE.tries
    assert tries(limits, 100, "127.0.0.1", "10.0.0.9, 10.0.0.2") == OF_ONE.tries
    # Only the last one is what the proxy has seen: a client writes others before it.
    assert tries(limits, 100, "127.0.0.1", "10.0.0.77, 10.0.0.1") == 0
    assert tries(limits, 100, "10.0.0.3", "10.0.0.88") == OF_ONE.tries
    assert tries(limits, 100, "10.0.0.3", "10.0.0.99") == 0


def test_all_addresses_of_one_network_are_one() -> None:
    limits = SignInLimits(Clock())
    assert sum(tries(limits, 2, f"2001:db8::{number:x}") for number in range(100)) == OF_ONE.tries
    assert tries(limits, 1, "2001:db8:0:1::1") == 1
    assert tries(limits, 100, "::ffff:10.0.0.1") == OF_ONE.tries
    assert tries(limits, 100, "10.0.0.1") == 0
