"""How long a provider asks to wait: every form in which it is written, and what is none."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.load import builtin
from bardo.catalog.rows import USUAL_LIMITS, LimitHeaders
from bardo.routing.rest_headers import MOST_REST_SECONDS, parse_wait, rest_seconds

NOW = 1_795_000_000.0


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(NOW + seconds, UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("12", 12.0),
        (" 7.66 ", 7.66),
        ("20ms", 0.02),
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("2m59.56s", 179.56),
        ("1h2m3s", 3723.0),
        (at(90).isoformat(), 90.0),
        (at(90).strftime("%Y-%m-%dT%H:%M:%SZ"), 90.0),
        (at(90).strftime("%Y-%m-%dT%H:%M:%S"), 90.0),
        (format_datetime(at(120), usegmt=True), 120.0),
        (f"{NOW + 30:.0f}", 30.0),
        (f"{1000 * (NOW + 30):.0f}", 30.0),
        (f"{NOW - 30:.0f}", 0.0),
        (at(-60).isoformat(), 0.0),
        ("999999999", MOST_REST_SECONDS),
    ],
)
def test_a_wait_tells_its_own_form(value: str, seconds: float) -> None:
    assert parse_wait(value, NOW) == pytest.approx(seconds, abs=0.001)


@pytest.mark.parametrize(
    "value", [None, "", "soon", "-5", "1e3", "nan", "inf", "5 apples", "6m0s!", "9" * 80, "0x10", "٣"]
)
def test_what_is_no_wait_is_none(value: str | None) -> None:
    assert parse_wait(value, NOW) is None


@given(st.text(max_size=80))
def test_any_text_is_a_bounded_wait_or_none(value: str) -> None:
    found = parse_wait(value, NOW)
    assert found is None or 0.0 <= found <= MOST_REST_SECONDS


def test_milliseconds_go_before_seconds() -> None:
    assert rest_seconds({"retry-after-ms": "1500", "retry-after": "2"}, USUAL_LIMITS, NOW) == 1.5
    assert rest_seconds({"retry-after-ms": "x", "retry-after": "2"}, USUAL_LIMITS, NOW) == 2.0


def test_the_limit_with_nothing_left_counts() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "41",
        "x-ratelimit-reset-requests": "1h",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "7.5s",
    }
    assert rest_seconds(headers, USUAL_LIMITS, NOW) == 7.5
    headers["x-ratelimit-remaining-requests"] = "0"
    assert rest_seconds(headers, USUAL_LIMITS, NOW) == 3600.0


def test_a_limit_that_is_not_used_up_is_nothing_to_wait_for() -> None:
    headers = {"x-ratelimit-remaining-requests": "41", "x-ratelimit-reset-requests": "1h"}
    assert rest_seconds(headers, USUAL_LIMITS, NOW) is None
    assert rest_seconds({}, USUAL_LIMITS, NOW) is None


def test_where_nothing_says_what_is_left_the_first_reset_counts() -> None:
    headers = {"x-ratelimit-reset-requests": "20s", "x-ratelimit-reset-tokens": "3s"}
    assert rest_seconds(headers, USUAL_LIMITS, NOW) == 3.0


@pytest.mark.parametrize(
    ("provider", "headers", "seconds"),
    [
        (
            "anthropic",
            {
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": at(40).isoformat(),
            },
            40.0,
        ),
        ("groq", {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2m59.56s"}, 179.56),
        (
            "cerebras",
            {"x-ratelimit-remaining-tokens-minute": "0", "x-ratelimit-reset-tokens-minute": "11.382"},
            11.382,
        ),
        ("openrouter", {"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{1000 * (NOW + 12):.0f}"}, 12.0),
    ],
)
def test_the_rows_of_providers_name_their_headers(provider: str, headers: dict[str, str], seconds: float) -> None:
    row = builtin().provider(provider)
    assert row is not None
    assert rest_seconds(headers, row.limit_headers, NOW) == pytest.approx(seconds, abs=0.001)


def test_a_limit_may_name_its_reset_alone() -> None:
    assert rest_seconds({"ratelimitbysize-reset": "9"}, [LimitHeaders(reset="ratelimitbysize-reset")], NOW) == 9.0


ENDLESS = "1 Feb 99999999999999999999 12:00:00"


@pytest.mark.parametrize("said", [ENDLESS, "Jan 30 1e999", "Mon, 01 Jan 0001 00:00:00 +2359", "9" * 64, "\u00b2"])
def test_no_time_of_a_provider_breaks_anything(said: str) -> None:
    waits = rest_seconds({"retry-after": said, "retry-after-ms": said, "r": said}, [LimitHeaders(reset="r")], NOW)
    assert waits is None or 0 <= waits <= MOST_REST_SECONDS
