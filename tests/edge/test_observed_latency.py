"""The time in which nine of ten of a target's latest calls were answered."""

from __future__ import annotations

from bardo.edge.observed_latency import ObservedLatency


def noted(*seconds: float, times: int = 1) -> ObservedLatency:
    latency = ObservedLatency()
    for one in seconds * times:
        latency.note("p", "m", one)
    return latency


def test_nothing_is_said_of_few_calls() -> None:
    assert noted(*[1.0] * 9).p90_ms("p", "m") is None
    assert noted(*[1.0] * 10).p90_ms("p", "m") == 1000
    assert noted(*[1.0] * 10).p90_ms("p", "other") is None


def test_nine_of_ten_calls_decide() -> None:
    assert noted(*[1.0] * 9, 8.0).p90_ms("p", "m") == 1000
    assert noted(*[1.0] * 8, 8.0, 8.0).p90_ms("p", "m") == 8000


def test_the_latest_calls_count() -> None:
    latency = noted(9.0, times=50)
    for _ in range(50):
        latency.note("p", "m", 1.0)
    assert latency.p90_ms("p", "m") == 1000


def test_a_small_change_is_none() -> None:
    latency = noted(1.0, times=10)
    before = latency.revision
    for _ in range(50):
        latency.note("p", "m", 1.2)
    assert (latency.p90_ms("p", "m"), latency.revision) == (1000, before)
    for _ in range(50):
        latency.note("p", "m", 1.3)
    assert (latency.p90_ms("p", "m"), latency.revision) == (1300, before + 1)


def test_the_number_of_targets_is_bounded() -> None:
    latency = ObservedLatency()
    for place in range(3000):
        for _ in range(10):
            latency.note("p", f"m{place}", 1.0)
    assert latency.p90_ms("p", "m0") is None
    assert sum(latency.p90_ms("p", f"m{place}") is not None for place in range(3000)) == 1024
