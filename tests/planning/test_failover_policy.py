"""What follows an attempt that failed, as a table: the same target again, the next one, or the end."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.planning.refusals import (
    FailedAttempt,
    FailoverPolicy,
    error_to_tell,
    moves_on,
    pause_before_retry,
    retry_after_seconds,
)
from bardo.values.errors import (
    BardoError,
    BrokenStream,
    ConfigError,
    EmptyReply,
    InternalError,
    InvalidRequest,
    MalformedReply,
    MissingKey,
    Unreachable,
    UpstreamRefused,
    UpstreamTimeout,
)

POLICY = FailoverPolicy()
NOW = 1_795_000_000.0


def refused(status: int, message: str = "no", **fields: object) -> UpstreamRefused:
    return UpstreamRefused(message, status=status, **fields)  # type: ignore[arg-type]


def pause(error: BardoError, **fields: object) -> float | None:
    return pause_before_retry(FailedAttempt(error=error, **fields), POLICY, now=NOW)  # type: ignore[arg-type]


TRANSIENT = [
    Unreachable("x"),
    BrokenStream("x"),
    EmptyReply("x"),
    *(refused(status) for status in (409, 425, 500, 502, 503, 504, 520, 529)),
]


@pytest.mark.parametrize("error", TRANSIENT, ids=lambda error: f"{error.code}-{error.status}")
def test_a_fault_that_mends_itself_is_tried_once_more_and_then_elsewhere(error: BardoError) -> None:
    assert pause(error) is not None
    assert pause(error, retries=1) is None
    assert moves_on(error)


@pytest.mark.parametrize("error", [UpstreamTimeout("x"), refused(408), refused(524)], ids=lambda one: f"{one.status}")
def test_who_was_too_slow_is_asked_again_only_where_nobody_else_is_left(error: BardoError) -> None:
    assert pause(error) is None
    assert pause(error, alone=True, seconds=5) is not None
    assert pause(error, alone=True, seconds=POLICY.patient_seconds) is None
    assert moves_on(error)


def test_a_rate_limit_is_waited_for_only_where_it_is_short_and_nobody_else_is_left() -> None:
    short = refused(429, retry_after="1")
    assert pause(short) is None
    assert pause(short, alone=True) == 1.0
    assert pause(refused(429), alone=True) is None
    assert pause(refused(429, retry_after="30"), alone=True) is None
    assert moves_on(short)


def test_a_provider_that_asks_to_wait_long_is_not_asked_again() -> None:
    assert pause(refused(503, retry_after="0.5")) == 0.5
    assert pause(refused(503, retry_after="120")) is None


STAYS = [
    refused(400),
    refused(413),
    refused(422),
    refused(400, "prompt is too long: 210000 tokens > 200000 maximum"),
    refused(400, "The response was filtered", upstream_code="content_filter"),
    refused(403, "Your chosen model requires moderation and your input was flagged"),
    refused(403, "no", detail={"metadata": {"reasons": ["violence"], "flagged_input": "x"}}),
    refused(400, "Output data may contain inappropriate content.", upstream_code="data_inspection_failed"),
    InvalidRequest("x"),
    ConfigError("x"),
    InternalError("x"),
]


@pytest.mark.parametrize("error", STAYS, ids=lambda error: f"{error.code}-{error.status}")
def test_what_the_caller_must_change_ends_the_call(error: BardoError) -> None:
    assert not moves_on(error)
    assert pause(error, alone=True) is None


OPERATORS = [
    *(refused(status) for status in (401, 402, 403, 404)),
    refused(400, "API key not valid. Please pass a valid API key."),
    refused(400, "bad", detail={"details": [{"reason": "API_KEY_INVALID"}]}),
    refused(400, "Incorrect API key provided: xai-***"),
    refused(400, "Your credit balance is too low to access the Anthropic API."),
    refused(400, "some/model is not a valid model ID"),
    refused(400, "The provided model identifier is invalid."),
    refused(400, "Model Not Exist"),
    refused(400, "x", upstream_code="model_not_found"),
    MissingKey("x"),
]


@pytest.mark.parametrize("error", OPERATORS, ids=lambda error: error.message[:30] + str(error.status))
def test_a_key_an_account_or_a_model_that_is_wrong_there_leads_to_the_next(error: BardoError) -> None:
    assert moves_on(error)
    assert pause(error, alone=True) is None


@pytest.mark.parametrize("error", [MalformedReply("x"), refused(501)], ids=["malformed", "501"])
def test_what_the_same_server_would_do_again_leads_to_the_next(error: BardoError) -> None:
    assert moves_on(error)
    assert pause(error, alone=True) is None


def test_the_error_that_is_told_is_the_last_that_is_no_fault_of_the_operators() -> None:
    limit, key = refused(429, retry_after="9"), refused(401)
    assert error_to_tell([limit, key]) is limit
    assert error_to_tell([key, limit]) is limit
    assert error_to_tell([key, MissingKey("x")]).code == "missing_key"


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("2", 2.0),
        (" 1.5 ", 1.5),
        ("34s", 34.0),
        ("Wed, 18 Nov 2026 11:06:40 GMT", 0.0),
        ("-3", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("1 Feb 99999999999999999999 12:00:00", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(said: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(refused(429, retry_after=said), NOW) == seconds


def test_a_date_in_the_future_is_the_time_until_then() -> None:
    at = retry_after_seconds(refused(429, retry_after="Fri, 01 Jan 2027 00:00:00 GMT"), 1_798_761_590.0)
    assert at == 10.0


errors = st.sampled_from([*TRANSIENT, *STAYS, *OPERATORS, UpstreamTimeout("x"), refused(429, retry_after="0")])


@given(
    errors,
    st.integers(0, 20),
    st.floats(0, 1),
    st.floats(0, 1e6),
    st.booleans(),
    st.floats(0.001, 1e6),
    st.floats(0, 100),
    st.integers(0, 10),
)
def test_pauses_are_bounded_and_fit_into_the_time_that_is_left(
    error: BardoError,
    retries: int,
    jitter: float,
    seconds: float,
    alone: bool,
    time_left: float,
    backoff: float,
    most: int,
) -> None:
    policy = FailoverPolicy(retries=most, backoff_seconds=backoff)
    failed = FailedAttempt(error=error, retries=retries, seconds=seconds, alone=alone)
    found = pause_before_retry(failed, policy, now=NOW, jitter=jitter, time_left=time_left)
    if found is not None:
        assert 0 <= found < time_left
        assert found <= policy.longest_pause_seconds
        assert retries < most
        assert found < math.inf


@given(st.text(max_size=40))
def test_no_retry_after_breaks_anything(said: str) -> None:
    seconds = retry_after_seconds(refused(429, retry_after=said), NOW)
    assert seconds is None or 0 <= seconds < math.inf
